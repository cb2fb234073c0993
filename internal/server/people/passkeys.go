package people

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

const passkeysPath = api.Prefix + "/me/passkeys"

// browserInput has the host and the browser of a request. Passkeys are bound to the host.
type browserInput struct{ host, agent string }

// Resolve reads the host and the browser.
func (in *browserInput) Resolve(ctx huma.Context) []error {
	in.host, in.agent = ctx.Host(), ctx.Header("User-Agent")
	return nil
}

type addPasskeyInput struct {
	browserInput
	Body api.AddPasskey
}

type removePasskeyInput struct {
	browserInput
	ID string `path:"id" maxLength:"512"`
}

type renamePasskeyInput struct {
	browserInput
	ID   string `path:"id" maxLength:"512"`
	Body api.RenamePasskey
}

func (h *Handlers) registerPasskeys(to huma.API) {
	everybody := authn.Roles
	huma.Register(to, endpoint.New("list-passkeys", http.MethodGet, passkeysPath, "List your passkeys", everybody...), h.passkeys)
	begin := endpoint.New("begin-passkey", http.MethodPost, passkeysPath+"/options", "Get the options to create a passkey", everybody...)
	begin.Description = "A passkey needs a session of a member that began less than 15 minutes ago, with a passkey if there is one. The browser creates it with these options within five minutes."
	huma.Register(to, begin, h.beginPasskey)
	add := endpoint.New("add-passkey", http.MethodPost, passkeysPath, "Add a passkey that the browser created", everybody...)
	add.DefaultStatus = http.StatusCreated
	huma.Register(to, add, h.addPasskey)
	huma.Register(to, endpoint.New("rename-passkey", http.MethodPut, passkeysPath+"/{id}", "Rename a passkey", everybody...), h.renamePasskey)
	remove := endpoint.New("remove-passkey", http.MethodDelete, passkeysPath+"/{id}", "Remove a passkey", everybody...)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(to, remove, h.removePasskey)
}

func (h *Handlers) passkeys(ctx context.Context, in *browserInput) (*struct{ Body api.Passkeys }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	list, mayChange, err := sessions.MyPasskeys(ctx, endpoint.Principal(ctx), in.host)
	if err != nil {
		return nil, problems.Of(err)
	}
	all := api.Passkeys{Items: make([]api.Passkey, 0, len(list)), Supported: sessions.HasPasskeys(in.host), MayChange: mayChange}
	for _, k := range list {
		all.Items = append(all.Items, passkeyOf(k))
	}
	return &struct{ Body api.Passkeys }{all}, nil
}

func passkeyOf(k authn.Passkey) api.Passkey {
	return api.Passkey{ID: k.ID, Name: k.Name, CreatedAt: k.Created, UsedAt: endpoint.TimeOrNil(k.Used), Synced: k.Synced}
}

func (h *Handlers) beginPasskey(ctx context.Context, in *browserInput) (*struct{ Body api.PasskeyOptions }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	begun, err := sessions.BeginPasskey(ctx, endpoint.Principal(ctx), in.host)
	if err != nil {
		return nil, problems.Of(err)
	}
	options, err := json.Marshal(begun.Options)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body api.PasskeyOptions }{api.PasskeyOptions{Options: options, State: begun.State}}, nil
}

func (h *Handlers) addPasskey(ctx context.Context, in *addPasskeyInput) (*struct{ Body api.Passkey }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	name := cmp.Or(in.Body.Name, authn.DeviceName(in.agent))
	added, err := sessions.AddPasskey(ctx, endpoint.Principal(ctx), in.host, name, in.Body.State, string(in.Body.Response))
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body api.Passkey }{passkeyOf(added)}, nil
}

func (h *Handlers) renamePasskey(ctx context.Context, in *renamePasskeyInput) (*struct{ Body api.Passkey }, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	renamed, err := sessions.RenamePasskey(ctx, endpoint.Principal(ctx), in.host, in.ID, in.Body.Name)
	if err != nil {
		return nil, problems.Of(err)
	}
	return &struct{ Body api.Passkey }{passkeyOf(renamed)}, nil
}

func (h *Handlers) removePasskey(ctx context.Context, in *removePasskeyInput) (*struct{}, error) {
	sessions, err := h.membership()
	if err != nil {
		return nil, err
	}
	if err := sessions.RemovePasskey(ctx, endpoint.Principal(ctx), in.host, in.ID); err != nil {
		return nil, problems.Of(err)
	}
	return nil, nil
}
