package deliveries

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

type deliveriesInput struct {
	Request string `query:"request" maxLength:"512" doc:"Only deliveries of this request."`
	Channel string `query:"channel" maxLength:"64" doc:"Only deliveries of this channel, such as slack."`
	State   string `query:"state" enum:"queued,sent,seen,failed,dead,obsolete"`
	Cursor  string `query:"cursor" maxLength:"4096" doc:"The cursor of the next page."`
	Limit   int    `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default. A page may have fewer items although there are more."`
}

type deliveryInput struct {
	ID string `path:"id" maxLength:"2048"`
}

func (h *Handlers) registerDeliveries(to huma.API) {
	huma.Register(to, endpoint.New("list-deliveries", http.MethodGet, api.Prefix+"/deliveries", "List the deliveries of notices to people", authn.RoleApprover, authn.RoleAuditor), h.listDeliveries)
	huma.Register(to, endpoint.New("send-delivery", http.MethodPost, api.Prefix+"/deliveries/{id}/send", "Send a delivery again", authn.RoleAdmin), h.sendDelivery)
	health := endpoint.New("delivery-health", http.MethodGet, api.Prefix+"/deliveries/health", "Count the deliveries of each channel", authn.RoleApprover, authn.RoleAuditor)
	huma.Register(to, health, h.deliveryHealth)
}

// deliveryOf converts a delivery. Addresses of people are shown to admins only.
func deliveryOf(v executor.DeliveryView, admin bool) api.Delivery {
	d := api.Delivery{
		ID: v.ID, Request: v.DeliveryIndex.Request, Channel: v.Channel, Kind: string(v.DeliveryIndex.Kind), State: string(v.State), Attempts: v.Attempts, Code: v.Code, Revision: v.Revision,
		Target: v.Target, Person: v.Person, Address: v.To, CreatedAt: v.Created, UpdatedAt: v.Updated,
	}
	if !v.Next.IsZero() {
		d.NextAt = &v.Next
	}
	if !admin {
		d.Address = maskAddress(v.To)
		if kind, to, ok := strings.Cut(v.Target, ":"); ok && kind == v.Channel { // it is an address
			d.Target = kind + ":" + maskAddress(to)
		}
	}
	return d
}

// maskAddress keeps the first and the last character of a long address.
func maskAddress(to string) string {
	letters := []rune(to)
	if len(letters) < 4 {
		return strings.Repeat("•", len(letters))
	}
	return string(letters[0]) + "•••" + string(letters[len(letters)-1])
}

func (h *Handlers) listDeliveries(ctx context.Context, in *deliveriesInput) (*endpoint.Page[api.Delivery], error) {
	me := endpoint.Principal(ctx)
	filter := executor.DeliveryFilter{Request: in.Request, Channel: in.Channel, State: executor.DeliveryState(in.State), Limit: endpoint.PageSize(in.Limit)}
	if err := endpoint.ReadCursor(in.Cursor, &filter.After); err != nil {
		return nil, err
	}
	list, next, err := h.Executor.Deliveries(ctx, me.Account, filter)
	if err != nil {
		return nil, problems.Of(err)
	}
	page := &endpoint.Page[api.Delivery]{Body: api.Page[api.Delivery]{Items: make([]api.Delivery, 0, len(list))}}
	for _, v := range list {
		if !me.Has(authn.RoleAdmin) {
			_, visible, err := h.Visibility.MaySeeID(ctx, me, v.DeliveryIndex.Request)
			if err != nil {
				return nil, problems.Of(err)
			}
			if !visible {
				continue
			}
		}
		page.Body.Items = append(page.Body.Items, deliveryOf(v, me.Has(authn.RoleAdmin)))
	}
	if next != "" {
		page.Body.Next, err = endpoint.Cursor(next)
	}
	return page, err
}

func (h *Handlers) sendDelivery(ctx context.Context, in *deliveryInput) (*struct{ Body api.Delivery }, error) {
	me := endpoint.Principal(ctx)
	v, err := h.Executor.SendAgain(ctx, me.Account, in.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body api.Delivery }{deliveryOf(v, true)}, nil
}

func (h *Handlers) deliveryHealth(ctx context.Context, _ *struct{}) (*endpoint.Page[api.ChannelHealth], error) {
	list, err := h.Executor.DeliveryHealth(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	page := &endpoint.Page[api.ChannelHealth]{Body: api.Page[api.ChannelHealth]{Items: make([]api.ChannelHealth, 0, len(list))}}
	for _, h := range list {
		page.Body.Items = append(page.Body.Items, api.ChannelHealth{
			Channel: h.Channel, Configured: h.Configured, Queued: h.Queued, Sent: h.Sent, Failed: h.Failed, Dead: h.Dead, Code: h.Code,
			LastSentAt: endpoint.TimeOrNil(h.LastSent), LastFailedAt: endpoint.TimeOrNil(h.LastFailed), NextAt: endpoint.TimeOrNil(h.Next),
		})
	}
	return page, nil
}
