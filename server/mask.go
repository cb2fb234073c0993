package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
)

// masks reports whether sensitive values of a request are masked for a caller. The agent that asked
// knows them.
func masks(me authn.Principal, doc *desk.Request) bool {
	return doc != nil && len(doc.Requirement.Sensitive) > 0 && !doc.IsAskedBy(me.Viewer())
}

// masked returns a request without its sensitive values. Of a request whose document cannot be
// decrypted it is unknown what is sensitive.
func masked(me authn.Principal, q executor.RequestView, r api.Request) api.Request {
	if q.Unreadable && q.Request == nil {
		r.Data = nil
		if r.Decision != nil {
			r.Decision.Answer = nil
		}
	}
	if !masks(me, q.Request) {
		return r
	}
	r.Masked = q.Request.SensitivePointers(r.Data)
	r.Data, _ = q.Request.MaskData(r.Data)
	if r.Decision != nil {
		r.Decision.Answer = q.Request.MaskAnswer(r.Decision.Answer)
		maskConditions(r.Decision.Conditions)
	}
	if r.Activity != nil && r.Activity.Edit != nil {
		r.Activity.Edit.Args = q.Request.MaskArgs(r.Activity.Edit.Args)
	}
	if r.Activity != nil {
		for _, v := range r.Activity.Votes {
			maskConditions(v.Conditions)
		}
	}
	return r
}

// maskConditions masks the condition of an approval: it may contain a sensitive value.
func maskConditions(c *fermata.Conditions) {
	if c != nil && c.OnlyIf != "" {
		c.OnlyIf = desk.Masked
	}
}

// maskConstraints masks the values of a grant's constraints on sensitive arguments.
func maskConstraints(args json.RawMessage, sensitive []string) json.RawMessage {
	var constraints map[string]map[string]any
	if len(sensitive) == 0 || json.Unmarshal(args, &constraints) != nil {
		return args
	}
	for pointer, constraint := range constraints {
		hides := func(p string) bool {
			return pointer == p || strings.HasPrefix(pointer, p+"/") || strings.HasPrefix(p, pointer+"/")
		}
		if !slices.ContainsFunc(sensitive, hides) {
			continue
		}
		for name := range constraint {
			if name != "op" {
				constraint[name] = desk.Masked
			}
		}
	}
	out, err := json.Marshal(constraints)
	if err != nil { // was decoded from JSON
		return args
	}
	return out
}

func (s *Server) registerReveal() {
	op := endpoint.New("reveal-request", http.MethodPost, requestPath+"/reveal", "Show the masked values of a request; the audit log records it", authn.RoleApprover, authn.RoleAuditor)
	op.Description = "Returns the request with its sensitive values. An approver must be able to decide the request. The audit line names the caller and the JSON pointers of the values, and is written before they are returned."
	endpoint.SetAction(op, executor.ActReveal)
	huma.Register(s.api, op, s.reveal)
}

func (s *Server) reveal(ctx context.Context, in *requestInput) (*requestOutput, error) {
	me := endpoint.Principal(ctx)
	q, err := s.config.Executor.Reveal(ctx, me.Account, in.ID, me.From(), me.Has(authn.RoleAuditor))
	if err != nil {
		return nil, problems.Of(err)
	}
	return s.requestPageOf(ctx, q, s.withActivity(ctx, q))
}
