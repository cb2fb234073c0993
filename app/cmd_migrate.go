package app

import (
	"context"
	"errors"
	"fmt"
	"io"
)

type migrateCommand struct {
	storeFlags
	DryRun bool `help:"Only say what is there and what would be done. With something to do the exit code is 8."`
}

// schemaRow is how far a schema is, for programs.
type schemaRow struct {
	Version int      `json:"version"` // of the schema, before
	Target  int      `json:"target"`  // of this program
	Pending []string `json:"pending"` // what was missing
	Applied bool     `json:"applied"` // whether it is there now
}

// Run brings the schema up to date.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	k, err := c.storeSettings()
	if err != nil {
		return err
	}
	applied, known, err := k.version(ctx)
	if err != nil {
		return err
	}
	row := schemaRow{Version: applied, Target: len(known), Pending: append([]string{}, known[applied:]...)}
	if len(row.Pending) > 0 && !c.DryRun {
		if err := k.migrate(ctx); err != nil {
			return err
		}
		row.Applied = true
	}
	if err := p.print(row, row.text); err != nil || !c.DryRun || len(row.Pending) == 0 {
		return err
	}
	return fmt.Errorf("%w: %d migrations are missing", errNeedsAttention, len(row.Pending))
}

// migrate opens the store, which brings it up to date. One that is not there yet is made, with its key, as the first start of a server would.
func (k storeSettings) migrate(ctx context.Context) error {
	if k.isNew() {
		if _, _, err := k.openKeyRing(true); err != nil {
			return err
		}
	}
	s, err := k.open(ctx, false)
	if err != nil {
		return err
	}
	return s.Close()
}

func (r schemaRow) text(w io.Writer) {
	if len(r.Pending) == 0 {
		fmt.Fprintf(w, "the schema is at %d, as this program needs it\n", r.Version)
		return
	}
	verb := "missing"
	if r.Applied {
		verb = "applied"
	}
	fmt.Fprintf(w, "the schema was at %d, this program needs %d\n", r.Version, r.Target)
	for _, name := range r.Pending {
		fmt.Fprintf(w, "%s\t%s\n", verb, name)
	}
}

// errPendingMigrations says that a command which must change nothing would change the schema.
var errPendingMigrations = errors.New("the schema of the store is older than this program needs, and a check changes nothing: restore a backup elsewhere, migrate that with this program, and check it there")
