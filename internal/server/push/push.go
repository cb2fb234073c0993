// Package push has the operations with which people choose the browsers that are notified.
package push

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// Handlers has the dependencies of the operations.
type Handlers struct {
	Executor *executor.Executor
	// Channel sends to browsers; nil if the server has none.
	Channel *webpush.Channel
}

const path = api.Prefix + "/me/push-subscriptions"

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	roles := []authn.Role{authn.RoleApprover, authn.RoleAuditor}
	key := endpoint.New("get-push-key", http.MethodGet, api.Prefix+"/me/push-key", "Get the key with which browsers subscribe to notifications", roles...)
	huma.Register(to, key, h.key)
	huma.Register(to, endpoint.New("list-push-subscriptions", http.MethodGet, path, "List your browsers that are notified", roles...), h.list)
	add := endpoint.New("add-push-subscription", http.MethodPost, path, "Notify a browser", roles...)
	add.Description = "A notification opens the request in the browser. It cannot decide."
	huma.Register(to, add, h.add)
	remove := endpoint.New("remove-push-subscription", http.MethodDelete, path+"/{id}", "End the notifications of a browser", roles...)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, h.remove)
}

// channel returns the channel, or a problem.
func (h *Handlers) channel() (*webpush.Channel, error) {
	if h.Channel == nil {
		return nil, problems.New("not_found", "this server does not notify browsers")
	}
	return h.Channel, nil
}

func (h *Handlers) key(context.Context, *struct{}) (*struct{ Body api.PushKey }, error) {
	c, err := h.channel()
	if err != nil {
		return nil, err
	}
	return &struct{ Body api.PushKey }{api.PushKey{PublicKey: c.PublicKey()}}, nil
}

func (h *Handlers) list(ctx context.Context, _ *struct{}) (*endpoint.Page[api.PushSubscription], error) {
	me := endpoint.Principal(ctx)
	person, err := h.Executor.Person(ctx, me.Account, me.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	page := &endpoint.Page[api.PushSubscription]{Body: api.Page[api.PushSubscription]{Items: []api.PushSubscription{}}}
	for _, a := range person.Addresses {
		if a.Channel == webpush.Kind {
			page.Body.Items = append(page.Body.Items, subscriptionOf(a))
		}
	}
	return page, nil
}

// subscriptionOf converts an address, without its secrets.
func subscriptionOf(a executor.PersonAddress) api.PushSubscription {
	s, _ := webpush.ParseAddress(a.To) // it was checked when it was added
	return api.PushSubscription{ID: a.ID, Name: a.Name, Service: s.Service(), Fingerprint: s.Fingerprint(), AddedAt: a.At}
}

func (h *Handlers) add(ctx context.Context, in *struct{ Body api.AddPushSubscription }) (*struct{ Body api.PushSubscription }, error) {
	c, err := h.channel()
	if err != nil {
		return nil, err
	}
	s, err := c.Subscribe(webpush.Subscription{Endpoint: in.Body.Endpoint, P256DH: in.Body.Keys.P256DH, Auth: in.Body.Keys.Auth})
	if err != nil {
		return nil, problems.New("bad_request", "the subscription is not valid: %s", strings.TrimPrefix(err.Error(), "webpush: "))
	}
	me := endpoint.Principal(ctx)
	added, err := h.Executor.AddAddress(ctx, me.Account, me.From(), webpush.Kind, s.Address(), in.Body.Name)
	switch {
	case errors.Is(err, executor.ErrTooManyAddresses):
		return nil, problems.New("action_not_allowed", "you have too many browsers and linked accounts: remove one first")
	case err != nil:
		return nil, problems.Of(err)
	}
	return &struct{ Body api.PushSubscription }{subscriptionOf(added)}, nil
}

func (h *Handlers) remove(ctx context.Context, in *struct {
	ID string `path:"id" maxLength:"512"`
}) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	if err := h.Executor.RemoveAddress(ctx, me.Account, me.From(), in.ID); err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}
