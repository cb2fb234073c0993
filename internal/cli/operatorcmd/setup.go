package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// SetupCommand invites the first administrator of an account.
type SetupCommand struct {
	serve.StoreFlags
	URL     string `name:"url" help:"The URL of the running server." default:"http://127.0.0.1:8080" env:"FERMATA_URL"`
	Account string `arg:"" help:"The account."`
	Name    string `arg:"" help:"The name with which the administrator signs in."`
}

// setupTime is how long the key is valid with which the invitation is made.
const setupTime = 5 * time.Minute

// Run prints an invitation link. The key with which it is made is revoked.
func (c *SetupCommand) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) (err error) {
		key, kept, err := authn.NewKey(c.Account, "setup", authn.RoleAdmin, time.Now().Add(setupTime))
		if err != nil {
			return cli.InvalidUsage(err)
		}
		server, err := client.New(c.URL, key)
		if err != nil {
			return cli.InvalidUsage(err)
		}
		if err := AddKey(ctx, s, kept); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, RevokeKey(context.WithoutCancel(ctx), s, kept.Account, kept.ID)) }()
		invitation, err := server.Invite(ctx, api.Invite{Name: c.Name, Roles: []string{string(authn.RoleAdmin)}})
		if err != nil {
			return err
		}
		invitation.Path = strings.TrimSuffix(c.URL, "/") + invitation.Path
		return p.Print(invitation, func(w io.Writer) {
			fmt.Fprintf(w, "%s\n\nopen it in a browser: %s chooses a password or a passkey, and can then invite others\n", invitation.Path, cli.OneLine(c.Name))
		})
	})
}
