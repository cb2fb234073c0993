package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/timespan"
)

type KeysCommands struct {
	Create keysCreate `cmd:"" help:"Create an API key. It is shown once."`
	List   keysList   `cmd:"" help:"List the API keys of an account."`
	Revoke keysRevoke `cmd:"" help:"Revoke an API key permanently."`
}

type keysCreate struct {
	serve.StoreFlags
	Account string            `arg:"" help:"The account."`
	Name    string            `arg:"" help:"The principal's name in records."`
	Role    string            `arg:"" enum:"agent,approver,auditor,user,admin,frontend" help:"agent, approver, auditor, user or admin; frontend holds conversations for end users that it names."`
	For     timespan.Duration `help:"The validity, for example 8h or 90d; unlimited by default." placeholder:"DURATION"`
}

// KeyRow is the JSON output for an API key.
type KeyRow struct {
	ID        string     `json:"id"`
	Account   string     `json:"account"`
	Name      string     `json:"name"`
	Role      string     `json:"role"`
	State     string     `json:"state,omitempty"` // valid, revoked or expired
	Key       string     `json:"key,omitempty"`   // shown once
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
	RevokedAt *time.Time `json:"revokedAt,omitempty"`
}

func keyRowOf(c store.Credential) KeyRow {
	moment := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	row := KeyRow{ID: c.ID, Account: c.Account, Name: c.Name, Role: c.Role, State: "good", CreatedAt: moment(c.Created), ExpiresAt: moment(c.Expires), RevokedAt: moment(c.Revoked)}
	switch {
	case row.RevokedAt != nil:
		row.State = "revoked"
	case row.ExpiresAt != nil && row.ExpiresAt.Before(time.Now()):
		row.State = "expired"
	}
	return row
}

// Run creates a key.
func (c *keysCreate) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) error {
		var expires time.Time
		if c.For < 0 { // it would never expire
			return cli.Usagef("--for %s is in the past", c.For)
		}
		if c.For > 0 {
			expires = time.Now().Add(time.Duration(c.For))
		}
		key, kept, err := authn.NewKey(c.Account, c.Name, authn.Role(c.Role), expires)
		if err != nil {
			return cli.InvalidUsage(err)
		}
		if err := AddKey(ctx, s, kept); err != nil {
			return err
		}
		row := keyRowOf(kept)
		row.Key, row.State = key, ""
		err = p.Print(row, func(w io.Writer) { fmt.Fprintln(w, key) })
		if err != nil { // the key was not shown completely, so it is useless or leaked in part
			err = errors.Join(err, RevokeKey(context.WithoutCancel(ctx), s, kept.Account, kept.ID))
		}
		return err
	})
}

// AddKey stores a key and its audit record.
func AddKey(ctx context.Context, s store.Credentials, key store.Credential) error {
	line, err := operatorAudit(key.Account, audit.APIKeyMade{Key: key.ID, Name: key.Name, Role: key.Role, Until: audit.TimestampOf(key.Expires)})
	if err != nil {
		return cli.InvalidUsage(err)
	}
	return s.AddCredential(ctx, key, line)
}

// RevokeKey revokes a key or a session, and writes its audit record.
func RevokeKey(ctx context.Context, s store.Credentials, account, id string) error {
	var did audit.Body = audit.APIKeyRevoked{Key: id}
	if authn.IsSession(id) {
		did = audit.SessionEnded{Session: id}
	}
	line, err := operatorAudit(account, did)
	if err != nil {
		return cli.InvalidUsage(err)
	}
	return s.RevokeCredential(ctx, account, id, line)
}

type keysList struct {
	serve.StoreFlags
	Account  string `arg:"" help:"The account."`
	Sessions bool   `help:"List the browser sessions of people instead of API keys."`
}

// Run lists keys.
func (c *keysList) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) error {
		list, err := s.Credentials(ctx, c.Account)
		if err != nil {
			return err
		}
		rows := []KeyRow{}
		for _, k := range list {
			if authn.IsSession(k.ID) == c.Sessions {
				rows = append(rows, keyRowOf(k))
			}
		}
		return p.Print(rows, func(w io.Writer) {
			fmt.Fprintln(w, "ID\tNAME\tROLE\tCREATED\tSTATE")
			for _, r := range rows {
				state := r.State
				switch state {
				case "revoked":
					state += " " + cli.Ago(*r.RevokedAt)
				case "expired":
					state += " " + cli.Ago(*r.ExpiresAt)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, cli.OneLine(r.Name), r.Role, r.CreatedAt.Local().Format(time.DateTime), state)
			}
		})
	})
}

type keysRevoke struct {
	serve.StoreFlags
	Account string `arg:"" help:"The account."`
	ID      string `arg:"" help:"The id of the key or session, as shown by fermata keys list."`
}

// Run revokes a key.
func (c *keysRevoke) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) error {
		err := RevokeKey(ctx, s, c.Account, c.ID)
		if errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w %q of %s; fermata keys list shows the ids", cli.ErrKeyNotFound, c.ID, c.Account)
		}
		if err != nil {
			return err
		}
		row := struct {
			ID      string `json:"id"`
			Account string `json:"account"`
			State   string `json:"state"`
		}{c.ID, c.Account, "revoked"}
		return p.Print(row, func(w io.Writer) { fmt.Fprintf(w, "%s\t%s\n", row.State, row.ID) })
	})
}
