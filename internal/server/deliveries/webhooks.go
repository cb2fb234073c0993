package deliveries

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/webhook"
)

const webhooksPath = api.Prefix + "/webhooks"

type saveWebhookInput struct{ Body api.SaveWebhook }

type changeWebhookInput struct {
	ID   string `path:"id" maxLength:"512"`
	Body api.SaveWebhook
}

type webhookInput struct {
	ID string `path:"id" maxLength:"512"`
}

type (
	webhookOutput       struct{ Body api.Webhook }
	webhookSecretOutput struct{ Body api.WebhookSecret }
	webhookTestOutput   struct{ Body api.WebhookTest }
)

func (h *Handlers) registerWebhooks(to huma.API) {
	huma.Register(to, endpoint.New("list-webhooks", http.MethodGet, webhooksPath, "List the subscriptions to events", authn.RoleAdmin), h.listWebhooks)
	create := endpoint.New("create-webhook", http.MethodPost, webhooksPath, "Subscribe a URL to events", authn.RoleAdmin)
	create.DefaultStatus = http.StatusCreated
	create.Description = "Events are CloudEvents 1.0, signed as Standard Webhooks. The secret is shown once."
	huma.Register(to, create, h.createWebhook)
	huma.Register(to, endpoint.New("get-webhook", http.MethodGet, webhooksPath+"/{id}", "Show a subscription", authn.RoleAdmin), h.getWebhook)
	change := endpoint.New("change-webhook", http.MethodPut, webhooksPath+"/{id}", "Change a subscription, and enable it", authn.RoleAdmin)
	change.Description = "A disabled subscription is enabled again, and gets the events that it missed."
	huma.Register(to, change, h.changeWebhook)
	remove := endpoint.New("delete-webhook", http.MethodDelete, webhooksPath+"/{id}", "Delete a subscription", authn.RoleAdmin)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, h.deleteWebhook)
	rotate := endpoint.New("rotate-webhook", http.MethodPost, webhooksPath+"/{id}/rotate", "Create a new secret", authn.RoleAdmin)
	rotate.Description = "For 24 hours messages have the signatures of the new and of the old secret. The new secret is shown once."
	huma.Register(to, rotate, h.rotateWebhook)
	huma.Register(to, endpoint.New("test-webhook", http.MethodPost, webhooksPath+"/{id}/test", "Send a test event", authn.RoleAdmin), h.testWebhook)
}

func webhookOf(v executor.WebhookView) api.Webhook {
	return api.Webhook{
		SaveWebhook: api.SaveWebhook{URL: v.URL, Types: v.Filter.Types, Kinds: v.Filter.Kinds, Graphs: v.Filter.Graphs, Environments: v.Filter.Environments},
		ID:          v.ID, CreatedBy: v.CreatedBy, CreatedAt: v.Created, Secrets: v.Secrets, SentAt: endpoint.TimeOrNil(v.LastSent),
		Failures: v.Failures, Code: v.Code, FailingAt: endpoint.TimeOrNil(v.Since), NextAt: endpoint.TimeOrNil(v.Next), Disabled: v.Disabled,
	}
}

func filterOf(b api.SaveWebhook) webhook.Filter {
	return webhook.Filter{Types: b.Types, Kinds: b.Kinds, Graphs: b.Graphs, Environments: b.Environments}
}

func (h *Handlers) listWebhooks(ctx context.Context, _ *struct{}) (*endpoint.Page[api.Webhook], error) {
	list, err := h.Executor.ListWebhooks(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	return endpoint.Paged(list, len(list), webhookOf, nil)
}

func (h *Handlers) createWebhook(ctx context.Context, in *saveWebhookInput) (*webhookSecretOutput, error) {
	me := endpoint.Principal(ctx)
	v, secret, err := h.Executor.CreateWebhook(ctx, me.Account, me.From(), in.Body.URL, filterOf(in.Body))
	if err != nil {
		return nil, problems.Of(err)
	}
	return &webhookSecretOutput{api.WebhookSecret{Webhook: webhookOf(v), Secret: secret}}, nil
}

func (h *Handlers) getWebhook(ctx context.Context, in *webhookInput) (*webhookOutput, error) {
	v, err := h.Executor.GetWebhook(ctx, endpoint.Principal(ctx).Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &webhookOutput{webhookOf(v)}, nil
}

func (h *Handlers) changeWebhook(ctx context.Context, in *changeWebhookInput) (*webhookOutput, error) {
	me := endpoint.Principal(ctx)
	v, err := h.Executor.ChangeWebhook(ctx, me.Account, in.ID, me.From(), in.Body.URL, filterOf(in.Body))
	if err != nil {
		return nil, problems.Of(err)
	}
	return &webhookOutput{webhookOf(v)}, nil
}

func (h *Handlers) deleteWebhook(ctx context.Context, in *webhookInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	if err := h.Executor.RemoveWebhook(ctx, me.Account, in.ID, me.From()); err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}

func (h *Handlers) rotateWebhook(ctx context.Context, in *webhookInput) (*webhookSecretOutput, error) {
	me := endpoint.Principal(ctx)
	v, secret, err := h.Executor.RotateWebhook(ctx, me.Account, in.ID, me.From())
	if err != nil {
		return nil, problems.Of(err)
	}
	return &webhookSecretOutput{api.WebhookSecret{Webhook: webhookOf(v), Secret: secret}}, nil
}

func (h *Handlers) testWebhook(ctx context.Context, in *webhookInput) (*webhookTestOutput, error) {
	code, err := h.Executor.TestWebhook(ctx, endpoint.Principal(ctx).Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &webhookTestOutput{api.WebhookTest{Accepted: code == "", Code: code}}, nil
}
