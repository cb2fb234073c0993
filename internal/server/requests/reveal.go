package requests

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

func (h *Handlers) registerReveal(to huma.API) {
	op := endpoint.New("reveal-request", http.MethodPost, endpoint.RequestPath+"/reveal", "Show the masked values of a request; the audit log records it", authn.RoleApprover, authn.RoleAuditor)
	op.Description = "Returns the request with its sensitive values. An approver must be able to decide the request. The audit line names the caller and the JSON pointers of the values, and is written before they are returned."
	endpoint.SetAction(op, executor.ActReveal)
	huma.Register(to, op, h.reveal)
}

func (h *Handlers) reveal(ctx context.Context, in *requestInput) (*requestOutput, error) {
	me := endpoint.Principal(ctx)
	q, err := h.Executor.Reveal(ctx, me.Account, in.ID, me.From(), me.Has(authn.RoleAuditor))
	if err != nil {
		return nil, problems.Of(err)
	}
	return h.requestPageOf(ctx, q, presented(q, h.withActivity(ctx, q), language.Preferred(in.Language)))
}
