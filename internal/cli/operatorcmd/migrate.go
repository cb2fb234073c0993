package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/serve"
)

type MigrateCommand struct {
	serve.StoreFlags
	DryRun bool `help:"Only report pending migrations. The exit code is 8 if there are any."`
}

// schemaRow is the JSON output of a migration.
type schemaRow struct {
	Version int      `json:"version"` // of the schema, before
	Target  int      `json:"target"`  // of this program
	Pending []string `json:"pending"` // pending migrations
	Applied bool     `json:"applied"` // whether they were applied
}

// Run migrates the schema.
func (c *MigrateCommand) Run(ctx context.Context, p *cli.Program) error {
	k, err := c.StoreSettings()
	if err != nil {
		return err
	}
	applied, known, err := k.Version(ctx)
	if err != nil {
		return err
	}
	row := schemaRow{Version: applied, Target: len(known), Pending: append([]string{}, known[applied:]...)}
	if len(row.Pending) > 0 && !c.DryRun {
		if err := k.MigrateSchema(ctx); err != nil {
			return err
		}
		row.Applied = true
	}
	if err := p.Print(row, row.text); err != nil || !c.DryRun || len(row.Pending) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d migrations are pending", cli.ErrNeedsAttention, len(row.Pending))
}

func (r schemaRow) text(w io.Writer) {
	if len(r.Pending) == 0 {
		fmt.Fprintf(w, "the schema is at version %d, which is current\n", r.Version)
		return
	}
	verb := "pending"
	if r.Applied {
		verb = "applied"
	}
	fmt.Fprintf(w, "the schema was at version %d; this program needs %d\n", r.Version, r.Target)
	for _, name := range r.Pending {
		fmt.Fprintf(w, "%s\t%s\n", verb, name)
	}
}

// errPendingMigrations is returned by commands that must not change the schema.
var errPendingMigrations = errors.New("the schema of the store is older than this program needs, and check must not migrate it: restore a backup elsewhere, migrate it with this program, and check it there")
