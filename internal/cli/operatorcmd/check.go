package operatorcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/serve"
)

type CheckCommand struct {
	serve.StoreFlags
	All bool `help:"Also list the runs that can be resumed."`
}

// CheckRow is the JSON output for an open run.
type CheckRow struct {
	Account   string `json:"account"`
	StateKey  string `json:"stateKey"`
	RunID     string `json:"runId"`
	GraphID   string `json:"graphId"`
	Status    string `json:"status"`
	Resumable bool   `json:"resumable"`
	Reason    string `json:"reason,omitempty"`
}

func checkRowOf(c executor.ResumableCheck) CheckRow {
	row := CheckRow{Account: c.Account, StateKey: c.StateKey, RunID: c.ID, GraphID: c.Provider + ":" + c.Graph, Status: string(c.Status), Resumable: c.Err == nil}
	if c.Err != nil {
		row.Reason = c.Err.Error()
	}
	return row
}

// Run checks all open runs. It changes nothing, not even a schema that needs a migration.
func (c *CheckCommand) Run(ctx context.Context, p *serve.Program) error {
	k, err := c.StoreSettings()
	if err != nil {
		return err
	}
	if applied, known, err := k.Version(ctx); err != nil {
		return err
	} else if applied > 0 && applied < len(known) {
		return errPendingMigrations
	}
	return c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		open, bad := 0, 0
		for checked, err := range o.CheckResumable(ctx) {
			if err != nil {
				return err
			}
			open++
			row := checkRowOf(checked)
			if !row.Resumable {
				bad++
			} else if !c.All {
				continue
			}
			if err := p.Print(row, row.text); err != nil {
				return err
			}
		}
		if bad > 0 {
			return fmt.Errorf("%w: of %d open runs, this build could not resume %d", cli.ErrNeedsAttention, open, bad)
		}
		if !p.JSON {
			fmt.Fprintf(p.Out, "this build can resume all %d open runs\n", open)
		}
		return nil
	})
}

func (r CheckRow) text(w io.Writer) {
	why := "resumable"
	if !r.Resumable {
		why = r.Reason
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", cli.OneLine(r.Account), cli.OneLine(r.StateKey), cli.OneLine(r.GraphID), r.Status, cli.OneLine(why))
}
