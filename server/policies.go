package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
)

func (s *Server) registerPolicies() {
	const path = api.Prefix + "/policies"
	huma.Register(s.api, operation("get-policy", http.MethodGet, path, "The rules in force", Approver, Auditor), s.policies)
	huma.Register(s.api, operation("get-policy-text", http.MethodGet, path+"/{digest}", "The text of a policy: the one in force, or one by which an action of the account was judged", Approver, Auditor), s.policyText)
	huma.Register(s.api, operation("explain-policy", http.MethodPost, path+"/explain", "What the rules say of an action, and why", Approver, Auditor), s.explainPolicy)
	huma.Register(s.api, operation("replay-policy", http.MethodPost, path+"/replay", "What other rules would have said of what was ruled", Auditor), s.replayPolicy)
}

type policyOutput struct{ Body api.Policy }

func (s *Server) policies(context.Context, *struct{}) (*policyOutput, error) {
	set := s.config.Executor.Rules()
	if set == nil {
		return &policyOutput{api.Policy{Rules: json.RawMessage("[]")}}, nil
	}
	rules, err := json.Marshal(set.Rules())
	return &policyOutput{api.Policy{Digest: set.Digest(), Version: set.Version(), Rules: rules}}, err
}

type policyTextInput struct {
	Digest string `path:"digest" maxLength:"512" doc:"As requests and the audit log name it: sha256:…"`
}

func (s *Server) policyText(ctx context.Context, in *policyTextInput) (*struct{ Body api.PolicyText }, error) {
	text, err := s.config.Executor.Policy(ctx, who(ctx).Account, in.Digest)
	if err != nil {
		return nil, explain(err)
	}
	out := &struct{ Body api.PolicyText }{api.PolicyText{Digest: text.Digest, Version: text.Version, Text: text.Text}}
	if !text.Since.IsZero() {
		out.Body.Since = &text.Since
	}
	return out, nil
}

type explainInput struct{ Body executor.Supposed }

type explainOutput struct{ Body json.RawMessage }

func (s *Server) explainPolicy(ctx context.Context, in *explainInput) (*explainOutput, error) {
	in.Body.Account = who(ctx).Account
	decision, err := s.config.Executor.Suppose(ctx, in.Body)
	if err != nil {
		return nil, explain(err)
	}
	body, err := json.Marshal(decision)
	return &explainOutput{body}, err
}

type replayInput struct{ Body api.ReplayPolicy }

// replayPolicy judges the past by rules that somebody thinks of. Nothing is done, and nothing of an action's arguments is told.
func (s *Server) replayPolicy(ctx context.Context, in *replayInput) (*struct{ Body replay.Past }, error) {
	candidate, err := policy.Load("policy", []byte(in.Body.Policy), policy.Options{})
	if broken, ok := errors.AsType[*policy.LoadError](err); ok {
		return nil, problem("bad_request", "%v", broken)
	}
	if err != nil {
		return nil, err
	}
	since := time.Now().Add(-time.Duration(in.Body.Seconds) * time.Second)
	past, err := s.config.Executor.Replay(ctx, who(ctx).Account, candidate, since)
	if err != nil {
		return nil, explain(err)
	}
	return &struct{ Body replay.Past }{past}, nil
}
