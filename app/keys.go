package app

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/fermata-go/fermata/server"
)

type keysCommands struct {
	Create keysCreate `cmd:"" help:"Make an API key. It is shown once."`
	List   keysList   `cmd:"" help:"The API keys of an account."`
	Revoke keysRevoke `cmd:"" help:"End an API key, at once and for ever."`
}

type keysCreate struct {
	place
	Account string        `arg:"" help:"Whose runs it reaches."`
	Name    string        `arg:"" help:"Who uses it, as it stands in records."`
	Role    string        `arg:"" enum:"agent,approver,auditor,admin" help:"agent, approver, auditor or admin."`
	For     time.Duration `help:"How long it is good; for ever by default." placeholder:"DURATION"`
}

// Run makes a key.
func (c *keysCreate) Run(ctx context.Context, p *program) (err error) {
	s, err := c.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var expires time.Time
	if c.For > 0 {
		expires = time.Now().Add(c.For)
	}
	key, kept, err := server.NewKey(c.Account, c.Name, server.Role(c.Role), expires)
	if err != nil {
		return err
	}
	if err := s.AddCredential(ctx, kept); err != nil {
		return err
	}
	fmt.Fprintln(p.out, key)
	return nil
}

type keysList struct {
	place
	Account string `arg:"" help:"Whose."`
}

// Run lists keys.
func (c *keysList) Run(ctx context.Context, p *program) (err error) {
	s, err := c.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	list, err := s.Credentials(ctx, c.Account)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tROLE\tCREATED\tSTATE")
	for _, k := range list {
		state := "good"
		switch {
		case !k.Revoked.IsZero():
			state = "revoked " + ago(k.Revoked)
		case !k.Expires.IsZero() && k.Expires.Before(time.Now()):
			state = "expired " + ago(k.Expires)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.ID, clean(k.Name), k.Role, k.Created.Local().Format(time.DateTime), state)
	}
	return w.Flush()
}

type keysRevoke struct {
	place
	Account string `arg:"" help:"Whose."`
	ID      string `arg:"" help:"The id of the key, as fermata keys list shows it."`
}

// Run ends a key.
func (c *keysRevoke) Run(ctx context.Context) (err error) {
	s, err := c.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.RevokeCredential(ctx, c.Account, c.ID)
}
