package app

import (
	"context"
	"fmt"
	"io"

	"github.com/fermata-go/fermata/internal/executor"
)

type checkCommand struct {
	storeFlags
	All bool `help:"Also list the runs that can be resumed."`
}

// checkRow is the JSON output for an open run.
type checkRow struct {
	Account   string `json:"account"`
	StateKey  string `json:"stateKey"`
	RunID     string `json:"runId"`
	GraphID   string `json:"graphId"`
	Status    string `json:"status"`
	Resumable bool   `json:"resumable"`
	Reason    string `json:"reason,omitempty"`
}

func checkRowOf(c executor.ResumableCheck) checkRow {
	row := checkRow{Account: c.Account, StateKey: c.StateKey, RunID: c.ID, GraphID: c.Provider + ":" + c.Graph, Status: string(c.Status), Resumable: c.Err == nil}
	if c.Err != nil {
		row.Reason = c.Err.Error()
	}
	return row
}

// Run checks all open runs. It changes nothing, not even a schema that needs a migration.
func (c *checkCommand) Run(ctx context.Context, p *program) error {
	k, err := c.storeSettings()
	if err != nil {
		return err
	}
	if applied, known, err := k.version(ctx); err != nil {
		return err
	} else if applied > 0 && applied < len(known) {
		return errPendingMigrations
	}
	return c.withExecutor(ctx, p, func(o *openExecutor) error {
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
			if err := p.print(row, row.text); err != nil {
				return err
			}
		}
		if bad > 0 {
			return fmt.Errorf("%w: of %d open runs, this build could not resume %d", errNeedsAttention, open, bad)
		}
		if !p.json {
			fmt.Fprintf(p.out, "this build can resume all %d open runs\n", open)
		}
		return nil
	})
}

func (r checkRow) text(w io.Writer) {
	why := "resumable"
	if !r.Resumable {
		why = r.Reason
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", oneLine(r.Account), oneLine(r.StateKey), oneLine(r.GraphID), r.Status, oneLine(why))
}
