package people

import (
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

type inviteInput struct{ Body api.Invite }

type memberInput struct {
	ID string `path:"id" maxLength:"512"`
}

func (h *Handlers) registerMembers(to huma.API) {
	invite := endpoint.New("invite", http.MethodPost, api.Prefix+"/invitations", "Invite a person to sign in", authn.RoleAdmin)
	invite.Description = "The link lets one person choose a password or create a passkey, once. An invitation for a member replaces the password and the passkeys."
	huma.Register(to, invite, h.invite)
	huma.Register(to, endpoint.New("list-members", http.MethodGet, api.Prefix+"/members", "List the people who sign in with a password or a passkey", authn.RoleAdmin), h.members)
	remove := endpoint.New("remove-member", http.MethodDelete, api.Prefix+"/members/{id}", "Remove a member and end their sessions", authn.RoleAdmin)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, h.removeMember)
}

// membership returns the members' sessions, or a problem if people sign in otherwise.
func (h *Handlers) membership() (*authn.Sessions, error) {
	if h.Sessions == nil || !h.Sessions.HasMembers() {
		return nil, problems.New("not_found", "this server has no members: people sign in at an identity provider, or not at all")
	}
	return h.Sessions, nil
}

func (h *Handlers) invite(ctx context.Context, in *inviteInput) (*struct{ Body api.Invitation }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	roles := []authn.Role{authn.RoleApprover}
	if len(in.Body.Roles) > 0 {
		roles = nil
		for _, name := range in.Body.Roles {
			roles = append(roles, authn.Role(name))
		}
	}
	path, until, err := sessions.Invite(ctx, endpoint.Principal(ctx).Account, in.Body.Name, roles, endpoint.Principal(ctx))
	if errors.Is(err, authn.ErrNameTaken) {
		return nil, problems.New("bad_request", "the name is taken; choose another one")
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body api.Invitation }{api.Invitation{Path: path, Until: until}}, nil
}

func (h *Handlers) members(ctx context.Context, _ *struct{}) (*struct{ Body api.Page[api.Member] }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	list, err := sessions.Members(ctx, endpoint.Principal(ctx).Account)
	if err != nil {
		return nil, problems.Of(err)
	}
	page := api.Page[api.Member]{Items: make([]api.Member, 0, len(list))}
	for _, m := range list {
		page.Items = append(page.Items, api.Member{ID: m.ID, Name: m.Name, Roles: authn.RoleNames(m.Roles), CreatedAt: m.Created})
	}
	return &struct{ Body api.Page[api.Member] }{page}, nil
}

func (h *Handlers) removeMember(ctx context.Context, in *memberInput) (*struct{}, error) {
	me := endpoint.Principal(ctx)
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	members, err := sessions.Members(ctx, me.Account)
	for _, m := range members {
		if err == nil && m.ID == in.ID {
			err = errors.Join(h.unlinkAll(ctx, me, m.Name), h.Executor.RemoveAddresses(ctx, me.Account, me.From(), m.Name))
		}
	}
	if err == nil { // last: the call can be repeated until then
		err = sessions.RemoveMember(ctx, me.Account, in.ID, me)
	}
	if err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}

// unlinkAll unlinks the accounts of channels of a removed member, which could decide otherwise.
func (h *Handlers) unlinkAll(ctx context.Context, me authn.Principal, person string) error {
	links, err := h.Executor.ChannelLinks(ctx, me.Account, person)
	for _, link := range links {
		failed := h.Executor.RevokeChannelLink(ctx, channel.Sender{Account: me.Account, Channel: link.Channel, ID: link.Sender}, person, me.From())
		if !errors.Is(failed, channel.ErrNotLinked) {
			err = errors.Join(err, failed)
		}
	}
	return err
}
