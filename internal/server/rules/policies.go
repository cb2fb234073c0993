package rules

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/replay"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

func (h *Handlers) registerPolicies(to huma.API) {
	const path = api.Prefix + "/policies"
	huma.Register(to, endpoint.New("get-policy", http.MethodGet, path, "Get the policy rules in force", authn.RoleApprover, authn.RoleAuditor), h.policies)
	huma.Register(to, endpoint.New("get-policy-text", http.MethodGet, path+"/{digest}", "Get the text of a policy: the one in force, or one that decided an action of the account", authn.RoleApprover, authn.RoleAuditor), h.policyText)
	huma.Register(to, endpoint.New("explain-policy", http.MethodPost, path+"/explain", "Explain what the policy decides for an action", authn.RoleApprover, authn.RoleAuditor), h.explainPolicy)
	huma.Register(to, endpoint.New("replay-policy", http.MethodPost, path+"/replay", "Replay past rulings with other rules", authn.RoleAuditor), h.replayPolicy)
	huma.Register(to, endpoint.New("list-routes", http.MethodGet, api.Prefix+"/routes", "List the notification routes", authn.RoleApprover, authn.RoleAuditor), h.listRoutes)
}

type policyOutput struct{ Body api.Policy }

func (h *Handlers) policies(context.Context, *struct{}) (*policyOutput, error) {
	set := h.Executor.CurrentPolicy()
	if set == nil {
		return &policyOutput{api.Policy{Rules: json.RawMessage("[]")}}, nil
	}
	rules, err := json.Marshal(set.Rules())
	return &policyOutput{api.Policy{Digest: set.Digest(), Version: set.Version(), Rules: rules}}, err
}

type policyTextInput struct {
	Digest string `path:"digest" maxLength:"512" doc:"The digest as in requests and the audit log: sha256:…"`
}

func (h *Handlers) policyText(ctx context.Context, in *policyTextInput) (*struct{ Body api.PolicyText }, error) {
	text, err := h.Executor.PolicyByDigest(ctx, endpoint.Principal(ctx).Account, in.Digest)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := &struct{ Body api.PolicyText }{api.PolicyText{Digest: text.Digest, Version: text.Version, Text: text.Text}}
	if !text.Since.IsZero() {
		out.Body.Since = &text.Since
	}
	return out, nil
}

type explainInput struct{ Body api.HypotheticalAction }

type explainOutput struct{ Body json.RawMessage }

func (h *Handlers) explainPolicy(ctx context.Context, in *explainInput) (*explainOutput, error) {
	b := in.Body
	decision, err := h.Executor.ExplainAction(ctx, executor.HypotheticalAction{
		Account: endpoint.Principal(ctx).Account, Graph: b.Graph, Node: b.Node, Tool: b.Tool, Args: b.Args, Requester: b.Requester, Agent: b.Agent,
	})
	if err != nil {
		return nil, problems.Of(err)
	}
	body, err := json.Marshal(decision)
	return &explainOutput{body}, err
}

type replayInput struct{ Body api.ReplayPolicy }

// Limits of a replay. The caller's rules determine the work for each ruling.
const (
	maxReplayRules  = 1000        // maximum number of rules
	replayTimeout   = time.Minute // timeout
	maxMistakes     = 20          // how many mistakes are listed
	maxMistakeBytes = 500         // maximum length of each
)

// replayPolicy evaluates past rulings with other rules. It changes nothing and does not return
// arguments of actions.
func (h *Handlers) replayPolicy(ctx context.Context, in *replayInput) (*struct{ Body replay.HistoryReport }, error) {
	done, err := h.HeavyRead(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	candidate, err := policy.Load("policy", []byte(in.Body.Policy), policy.Options{UnknownFields: policy.OptionalFields, MaxRules: maxReplayRules})
	if loadErr, ok := errors.AsType[*policy.LoadError](err); ok {
		return nil, problems.New("bad_request", "%s", formatMistakes(loadErr))
	}
	if err != nil {
		return nil, err
	}
	since := time.Now().Add(-time.Duration(in.Body.Seconds) * time.Second)
	limited, end := context.WithTimeout(ctx, replayTimeout)
	defer end()
	past, err := h.Executor.Replay(limited, endpoint.Principal(ctx).Account, candidate, since)
	if limited.Err() != nil && ctx.Err() == nil {
		return nil, problems.New("bad_request", "the replay takes longer than %v: choose a shorter period or fewer rules", replayTimeout)
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body replay.HistoryReport }{past}, nil
}

// formatMistakes formats the first mistakes of a policy.
func formatMistakes(loadErr *policy.LoadError) string {
	text := "policy: load failed:"
	for _, p := range loadErr.Problems[:min(len(loadErr.Problems), maxMistakes)] {
		line := p.String()
		if len(line) > maxMistakeBytes {
			line = strings.ToValidUTF8(line[:maxMistakeBytes], "") + "…"
		}
		text += "\n" + line
	}
	if more := len(loadErr.Problems) - maxMistakes; more > 0 {
		text += fmt.Sprintf("\nand %d more", more)
	}
	return text
}

func (h *Handlers) listRoutes(context.Context, *struct{}) (*explainOutput, error) {
	body, err := json.Marshal(h.Executor.Routes())
	return &explainOutput{body}, err
}
