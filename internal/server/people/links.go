package people

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

type linkInput struct{ Body api.LinkChannel }

type offerInput struct {
	Token string `path:"token" maxLength:"128"`
}

type unlinkInput struct {
	ID string `path:"id" maxLength:"2048"`
}

func (h *Handlers) registerLinks(to huma.API) {
	list := endpoint.New("list-channel-links", http.MethodGet, api.Prefix+"/me/channel-links", "List the accounts of channels that are linked to yourself", authn.RoleApprover)
	huma.Register(to, list, h.listLinks)
	offer := endpoint.New("get-link-offer", http.MethodGet, api.Prefix+"/me/channel-links/offers/{token}", "Get the account that a one-time link would link", authn.RoleApprover)
	offer.Description = "It links nothing."
	huma.Register(to, offer, h.linkOffer)
	link := endpoint.New("link-channel", http.MethodPost, api.Prefix+"/me/channel-links", "Link an account of a channel to yourself", authn.RoleApprover)
	link.Description = "The token is that of a one-time link that a channel, such as Slack, has sent to the account. Decisions from the account then count as yours. It needs a session."
	huma.Register(to, link, h.linkChannel)
	unlink := endpoint.New("unlink-channel", http.MethodDelete, api.Prefix+"/me/channel-links/{id}", "Unlink an account of a channel from yourself", authn.RoleApprover)
	unlink.DefaultStatus = http.StatusNoContent
	huma.Register(to, unlink, h.unlinkChannel)
}

// needSession rejects callers that are not a person in a browser.
func needSession(p authn.Principal) error {
	switch p.Auth.Method {
	case authn.MethodAPIKey, authn.MethodToken, authn.MethodLinked, "":
		return problems.New("bad_request", "sign in with a browser to link an account")
	}
	return nil
}

// linkProblem converts an error of a one-time link.
func linkProblem(err error) error {
	switch {
	case errors.Is(err, executor.ErrLinkInvalid):
		return problems.New("bad_request", "the link is unknown, expired or used: ask the channel for a new one")
	case errors.Is(err, executor.ErrLinkTaken):
		return problems.New("action_not_allowed", "the account is linked to another person and must be unlinked first")
	}
	return problems.Of(err)
}

func (h *Handlers) linkOffer(ctx context.Context, in *offerInput) (*struct{ Body api.LinkOffer }, error) {
	me := endpoint.Principal(ctx)
	if err := needSession(me); err != nil {
		return nil, err
	}
	t, err := h.Executor.LinkToken(ctx, me.Account, in.Token)
	if err != nil {
		return nil, linkProblem(err)
	}
	offer := api.LinkOffer{Channel: t.Channel, Sender: t.Sender, Name: t.Name, Until: t.Until}
	now, err := h.Executor.ChannelLink(ctx, channel.Sender{Account: me.Account, Channel: t.Channel, ID: t.Sender})
	if err != nil && !errors.Is(err, channel.ErrNotLinked) {
		return nil, problems.Of(err)
	}
	offer.Taken = err == nil && now.Principal != me.ID
	return &struct{ Body api.LinkOffer }{offer}, nil
}

func (h *Handlers) linkChannel(ctx context.Context, in *linkInput) (*struct{ Body api.ChannelLink }, error) {
	me := endpoint.Principal(ctx)
	if err := needSession(me); err != nil {
		return nil, err
	}
	link, err := h.Executor.UseLinkToken(ctx, me.Account, in.Body.Token, me.From(), linkableRoles(me))
	if err != nil {
		return nil, linkProblem(err)
	}
	return &struct{ Body api.ChannelLink }{linkOf(executor.ChannelLinkID(link), link)}, nil
}

func linkOf(id string, l executor.ChannelLink) api.ChannelLink {
	return api.ChannelLink{ID: id, Channel: l.Channel, Sender: l.Sender, Name: l.Name, At: l.At, Until: l.Until}
}

func (h *Handlers) listLinks(ctx context.Context, _ *struct{}) (*endpoint.Page[api.ChannelLink], error) {
	me := endpoint.Principal(ctx)
	links, err := h.Executor.ChannelLinks(ctx, me.Account, me.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	page := &endpoint.Page[api.ChannelLink]{Body: api.Page[api.ChannelLink]{Items: make([]api.ChannelLink, 0, len(links))}}
	for id, link := range links {
		page.Body.Items = append(page.Body.Items, linkOf(id, link))
	}
	slices.SortFunc(page.Body.Items, func(a, b api.ChannelLink) int {
		return cmp.Or(cmp.Compare(a.Channel, b.Channel), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return page, nil
}

func (h *Handlers) unlinkChannel(ctx context.Context, in *unlinkInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	links, err := h.Executor.ChannelLinks(ctx, me.Account, me.ID)
	if err != nil {
		return nil, problems.Of(err)
	}
	link, ok := links[in.ID]
	if !ok {
		return nil, problems.New("not_found", "no such linked account")
	}
	err = h.Executor.RevokeChannelLink(ctx, channel.Sender{Account: me.Account, Channel: link.Channel, ID: link.Sender}, me.ID, me.From())
	if err != nil && !errors.Is(err, channel.ErrNotLinked) {
		return nil, problems.Of(err)
	}
	return nil, nil
}

// linkableRoles returns the roles that a linked account of a channel keeps: it decides, and does
// not administer.
func linkableRoles(p authn.Principal) (roles []string) {
	if p.Has(authn.RoleApprover) {
		roles = append(roles, string(authn.RoleApprover))
	}
	return roles
}
