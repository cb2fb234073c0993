package clientcmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/policy/grant"
	"github.com/fermata-go/fermata/internal/timespan"
)

type grantsCreate struct {
	actionFlags
	For    timespan.Duration `required:"" help:"The duration, for example 8h or 30d; the policy may allow less." placeholder:"DURATION"`
	Uses   int               `required:"" help:"Maximum number of uses."`
	Budget string            `help:"A budget over all uses, of the policy's cost or of an integer argument: cost=5000, or /cents=5000." placeholder:"OF=MAX"`
	Relax  map[string]string `help:"Constraints for arguments that may differ, by JSON pointer, as JSON: /path='{\"op\":\"prefix\",\"value\":\"s3://b/\"}'." placeholder:"POINTER=JSON"`
}

// Run creates a grant.
func (c *grantsCreate) Run(ctx context.Context, p *cli.Program) error {
	terms := api.CreateGrant{Seconds: int64(time.Duration(c.For).Seconds()), Uses: c.Uses}
	if terms.Seconds < 1 || terms.Uses < 1 {
		return cli.Usagef("--for must be at least one second, and --uses at least 1")
	}
	var err error
	if terms.Budget, err = parseBudget(c.Budget); err != nil {
		return err
	}
	if len(c.Relax) > 0 {
		relax := make(map[string]json.RawMessage, len(c.Relax))
		for pointer, text := range c.Relax {
			if !json.Valid([]byte(text)) {
				return cli.Usagef("--relax: the value of %s is not valid JSON", pointer)
			}
			relax[pointer] = json.RawMessage(text)
		}
		data, err := json.Marshal(relax)
		if err != nil {
			return err
		}
		terms.Relax = data
	}
	to, err := c.Client()
	if err != nil {
		return err
	}
	made, err := to.CreateGrant(ctx, c.ID, terms, client.NewID())
	if err != nil {
		return err
	}
	return p.Print(made, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %s, at most %d times until %s%s\n", made.ID, cli.OneLine(made.Tool), made.MaxUses, made.Until.Format(time.RFC3339), budgetText(made))
	})
}

// parseBudget parses a budget; "" means none.
func parseBudget(text string) (*api.Budget, error) {
	if text == "" {
		return nil, nil
	}
	cut := strings.LastIndex(text, "=") // a pointer may contain one
	if cut < 1 {
		return nil, cli.Usagef("--budget must be FIELD=NUMBER, for example cost=5000 or /cents=5000")
	}
	most, err := strconv.ParseInt(text[cut+1:], 10, 64)
	if err != nil || most < 0 {
		return nil, cli.Usagef("--budget: %q is not a non-negative integer", text[cut+1:])
	}
	of := text[:cut]
	if of != grant.Cost && !strings.HasPrefix(of, "/") {
		return nil, cli.Usagef("--budget: %q is neither cost nor a JSON pointer, such as /%s", of, of)
	}
	return &api.Budget{Field: of, Max: most}, nil
}

// budgetText describes how much of its budget a grant has used.
func budgetText(g api.Grant) string {
	if g.Budget == nil {
		return ""
	}
	return fmt.Sprintf(", %d of %d spent (%s)", g.Spent, g.Budget.Max, cli.OneLine(g.Budget.Field))
}

type GrantsCommands struct {
	Create grantsCreate `cmd:"" help:"Create a bounded grant from your approval."`
	List   grantsList   `cmd:"" default:"1" help:"List grants."`
	Revoke grantsRevoke `cmd:"" help:"Revoke a grant."`
}

type grantsList struct{ cli.Remote }

// Run lists grants.
func (c *grantsList) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	list, err := to.Grants(ctx)
	if err != nil {
		return err
	}
	if list == nil {
		list = []api.Grant{}
	}
	return p.Print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "no grants")
		}
		for _, g := range list {
			state := "until " + g.Until.Format(time.RFC3339)
			if g.Revoked != nil {
				state = "revoked " + g.Revoked.Format(time.RFC3339)
			}
			fmt.Fprintf(w, "%s  %s  by %s  used %d of %d%s  %s\n  %s\n", g.ID, cli.OneLine(g.Tool), cli.OneLine(g.By), g.Uses, g.MaxUses, budgetText(g), state, cli.OneLine(string(g.Args)))
		}
	})
}

type grantsRevoke struct {
	cli.Remote
	ID string `arg:"" help:"The id of the grant."`
}

// Run revokes a grant.
func (c *grantsRevoke) Run(ctx context.Context, p *cli.Program) error {
	to, err := c.Client()
	if err != nil {
		return err
	}
	if err := to.RevokeGrant(ctx, c.ID); err != nil {
		return err
	}
	return p.Print(map[string]string{"revoked": c.ID}, func(w io.Writer) { fmt.Fprintln(w, "the grant is revoked") })
}
