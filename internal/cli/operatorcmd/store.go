package operatorcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/atomicfile"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/tui"
)

type KeyCommands struct {
	Make   keyMake   `cmd:"" help:"Create a key file for replicas that share it. On SQLite the first start creates one."`
	Rotate keyRotate `cmd:"" help:"Create a new key, re-encrypt everything while the server runs, and delete the old key."`
}

type keyMake struct {
	File string `arg:"" help:"The file to create; it must not exist."`
}

// Run creates a key file for replicas that share it.
func (c *keyMake) Run(p *cli.Program) error {
	// a dangling link exists, too: no key would be created through it
	if _, err := os.Lstat(c.File); err == nil {
		return cli.Usagef("the file %s already exists", c.File)
	}
	if err := serve.MakeKey(c.File); err != nil {
		return err
	}
	row := struct {
		File string `json:"file"`
	}{c.File}
	return p.Print(row, func(w io.Writer) {
		fmt.Fprintf(w, "%s created; keep a copy, apart from the backups of the store\n", c.File)
	})
}

type keyRotate struct {
	serve.StoreFlags
	Settle time.Duration `default:"30s" help:"How long to keep the old key after re-encryption, for paused processes that may still write values encrypted with it."`
}

// Run rotates the key. Processes that use the key file reload it automatically; until then they
// encrypt with the old key. So everything is re-encrypted until nothing is left, twice, with a
// pause in between, and only then the old key is deleted.
func (c *keyRotate) Run(ctx context.Context, p *serve.Program) error {
	if c.Settle < 0 {
		return cli.Usagef("--settle must not be negative, not %s", c.Settle)
	}
	return c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		change, err := seal.Rotate(o.KeyFile)
		if err != nil {
			return err
		}
		defer change.Close()
		all, err := c.reencryptAll(ctx, p, o)
		if err != nil {
			return fmt.Errorf("%w; the old key is kept: run the command again", err)
		}
		if err := change.RetireOldKeys(); err != nil {
			return err
		}
		return p.Print(rotateReport{all.Seen, all.Changed}, func(w io.Writer) { fmt.Fprintln(w, "the key is rotated") })
	})
}

// reencryptAll re-encrypts everything until nothing is left, and once more after a pause.
func (c *keyRotate) reencryptAll(ctx context.Context, p *serve.Program, o *serve.OpenExecutor) (all executor.ReencryptProgress, err error) {
	for round, rest := 1, false; ; round++ {
		pause := 2 * seal.ReloadInterval
		if rest {
			pause = max(pause, c.Settle)
			fmt.Fprintf(p.Err, "waiting %s for processes that may have been paused\n", pause)
		}
		if err := cli.Sleep(ctx, pause); err != nil {
			return all, err
		}
		progress, watched := "round %d: %d values checked, %d re-encrypted", tui.IsScreen(p.Err)
		sum, err := o.Reencrypt(ctx, func(r executor.ReencryptProgress) {
			if watched {
				fmt.Fprintf(p.Err, "\r"+progress, round, r.Seen, r.Changed)
			}
		})
		if watched {
			fmt.Fprint(p.Err, "\r")
		}
		fmt.Fprintf(p.Err, progress+"\n", round, sum.Seen, sum.Changed)
		if err != nil {
			return all, err
		}
		all.Seen, all.Changed = sum.Seen, all.Changed+sum.Changed
		if sum.Changed == 0 && rest {
			return all, nil
		}
		rest = sum.Changed == 0
	}
}

// rotateReport is the JSON output of a rotation.
type rotateReport struct {
	Values  int64 `json:"values"`
	Changed int64 `json:"changed"`
}

type StoreCommands struct {
	Size   storeSize   `cmd:"" help:"Show the size of the store."`
	Vacuum storeVacuum `cmd:"" help:"Reclaim the space of deleted data."`
	Export storeExport `cmd:"" help:"Export all data of an account in plain text, one run per line."`
	Erase  storeErase  `cmd:"" help:"Cancel all runs of an account and delete its data."`
	Retry  storeRetry  `cmd:"" help:"Retry a parked run, after fixing the cause."`
}

type storeSize struct{ serve.StoreFlags }

// sizeRow is the JSON output of the size.
type sizeRow struct {
	Bytes int64            `json:"bytes"`
	Free  int64            `json:"free"`
	Rows  map[string]int64 `json:"rows"`
}

// Run prints the size of the store.
func (c *storeSize) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) error {
		size, err := s.Size(ctx)
		if err != nil {
			return err
		}
		return p.Print(sizeRow{size.Bytes, size.Free, size.Rows}, func(w io.Writer) {
			const line = "%-20s %15d %s\n"
			fmt.Fprintf(w, line+line, "database", size.Bytes, "bytes", "unused", size.Free, "bytes")
			for _, table := range slices.Sorted(maps.Keys(size.Rows)) {
				fmt.Fprintf(w, line, table, size.Rows[table], "rows")
			}
		})
	})
}

type storeVacuum struct{ serve.StoreFlags }

// vacuumReport is the JSON output of a vacuum.
type vacuumReport struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Run compacts the store.
func (c *storeVacuum) Run(ctx context.Context, p *cli.Program) error {
	return c.WithStore(ctx, func(s store.Store) error {
		before, err := s.Size(ctx)
		if err != nil {
			return err
		}
		if err := s.Vacuum(ctx); err != nil {
			return err
		}
		after, err := s.Size(ctx)
		if err != nil {
			return err
		}
		return p.Print(vacuumReport{before.Bytes, after.Bytes}, func(w io.Writer) { fmt.Fprintf(w, "%d bytes, before: %d\n", after.Bytes, before.Bytes) })
	})
}

type storeExport struct {
	serve.StoreFlags
	Account string `arg:"" help:"The account."`
	Output  string `short:"o" help:"The file to create; it must not exist. Defaults to standard output." placeholder:"FILE"`
}

// Run exports an account. The output is always JSON. A file appears only when the export is
// complete.
func (c *storeExport) Run(ctx context.Context, p *serve.Program) error {
	return c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		var runs int
		var unread error
		export := func(w io.Writer) (err error) {
			if runs, err = o.ExportAccount(ctx, c.Account, w); errors.Is(err, executor.ErrUnreadable) {
				unread, err = err, nil
			}
			return err
		}
		var err error
		if c.Output == "" {
			err = export(p.Out)
		} else {
			// it is plain text
			err = atomicfile.Create(c.Output, 0o600, func(file *os.File) error { return export(file) })
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			return cli.Usagef("-o: the file %s already exists", c.Output)
		case err != nil:
			return err
		case !p.JSON:
			fmt.Fprintln(p.Err, runs, "runs")
		}
		return unread
	})
}

type storeErase struct {
	serve.StoreFlags
	Account string `arg:"" help:"The account."`
	Yes     bool   `help:"Erase. Without this flag the command only reports what it would do."`
}

// eraseReport is the JSON output of an erasure.
type eraseReport struct {
	Account string `json:"account"`
	Erased  bool   `json:"erased"`
	Runs    int    `json:"runs"`
}

// Run erases an account.
func (c *storeErase) Run(ctx context.Context, p *serve.Program) error {
	return c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		if !c.Yes {
			return p.Print(eraseReport{Account: c.Account}, func(w io.Writer) {
				fmt.Fprintf(w, "with --yes, all runs of %q are cancelled and their data is deleted\n", c.Account)
			})
		}
		n, err := o.EraseAccount(ctx, c.Account)
		return errors.Join(err, p.Print(eraseReport{c.Account, true, n}, func(w io.Writer) { fmt.Fprintln(w, n, "runs erased") }))
	})
}

type storeRetry struct {
	serve.StoreFlags
	Account  string `arg:"" help:"The account."`
	StateKey string `arg:"" help:"The state key of the run."`
}

// Run retries a parked run.
func (c *storeRetry) Run(ctx context.Context, p *serve.Program) error {
	return c.WithExecutor(ctx, p, func(o *serve.OpenExecutor) error {
		if err := o.Retry(ctx, c.Account, c.StateKey, desk.From{Actor: desk.Actor{ID: operatorActor, Kind: desk.ActorSystem}, Via: "cli"}); err != nil {
			return err
		}
		row := struct {
			Account  string       `json:"account"`
			StateKey string       `json:"stateKey"`
			Status   store.Status `json:"status"`
		}{c.Account, c.StateKey, store.StatusReady}
		return p.Print(row, func(w io.Writer) {
			fmt.Fprintf(w, "%s\t%s; a server resumes it\n", cli.OneLine(c.StateKey), row.Status)
		})
	})
}
