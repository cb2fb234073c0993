package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
)

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
