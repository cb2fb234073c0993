package app

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

	"github.com/fermata-go/fermata/app/tui"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/atomicfile"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/store"
)

type keyCommands struct {
	Make   keyMake   `cmd:"" help:"Make a key file, for replicas that share it. On SQLite the first start makes one."`
	Rotate keyRotate `cmd:"" help:"Make a new key, seal everything with it while the server runs, and then forget the old one."`
}

type keyMake struct {
	File string `arg:"" help:"The file to make; it must not be there."`
}

// Run makes a key file, for replicas that share it.
func (c *keyMake) Run(p *program) error {
	if _, err := os.Lstat(c.File); err == nil { // a link to nowhere is something, too: no key would be made in its place
		return usage("the file %s is there already", c.File)
	}
	if err := makeKey(c.File); err != nil {
		return err
	}
	row := struct {
		File string `json:"file"`
	}{c.File}
	return p.print(row, func(w io.Writer) {
		fmt.Fprintf(w, "%s is made; keep a copy, and not where the backups of the store are\n", c.File)
	})
}

type keyRotate struct {
	storeFlags
	Settle time.Duration `default:"30s" help:"How long to wait, once everything is sealed anew, for processes that stood still with something sealed in their hands, before the old key goes."`
}

// Run changes the key. Processes that use the key file notice the new key by themselves; until they do, they seal with the old one. So it is
// gone over everything until there was nothing left to do, twice, with some time in between, and only then the old key goes.
func (c *keyRotate) Run(ctx context.Context, p *program) error {
	if c.Settle < 0 {
		return usage("--settle: %s is no time to wait", c.Settle)
	}
	return c.withExecutor(ctx, p, func(o *openExecutor) error {
		change, err := seal.Rotate(o.file)
		if err != nil {
			return err
		}
		defer change.Close()
		all, err := c.reencryptAll(ctx, p, o)
		if err != nil {
			return fmt.Errorf("%w; the old key is kept: call it again", err)
		}
		if err := change.RetireOldKeys(); err != nil {
			return err
		}
		return p.print(rotateReport{all.Seen, all.Changed}, func(w io.Writer) { fmt.Fprintln(w, "the key is changed") })
	})
}

// resealAll goes over everything until nothing was left to do, and again after a while.
func (c *keyRotate) reencryptAll(ctx context.Context, p *program, o *openExecutor) (all executor.ReencryptProgress, err error) {
	for round, rest := 1, false; ; round++ {
		pause := 2 * seal.ReloadInterval
		if rest {
			pause = max(pause, c.Settle)
			fmt.Fprintf(p.err, "waiting %s for processes that may have stood still\n", pause)
		}
		if err := sleep(ctx, pause); err != nil {
			return all, err
		}
		progress, watched := "round %d: %d values seen, %d sealed anew", tui.IsScreen(p.err)
		sum, err := o.Reencrypt(ctx, func(r executor.ReencryptProgress) {
			if watched {
				fmt.Fprintf(p.err, "\r"+progress, round, r.Seen, r.Changed)
			}
		})
		if watched {
			fmt.Fprint(p.err, "\r")
		}
		fmt.Fprintf(p.err, progress+"\n", round, sum.Seen, sum.Changed)
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

// rotateReport is what a change of keys came to, for programs.
type rotateReport struct {
	Values  int64 `json:"values"`
	Changed int64 `json:"changed"`
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type storeCommands struct {
	Size   storeSize   `cmd:"" help:"How much there is."`
	Vacuum storeVacuum `cmd:"" help:"Give the room of what was deleted back."`
	Export storeExport `cmd:"" help:"Write everything that is known of an account, a run a line, in the clear."`
	Erase  storeErase  `cmd:"" help:"End all runs of an account and delete everything that is known of them."`
	Retry  storeRetry  `cmd:"" help:"Let a parked run go on: you have looked at what stopped it."`
}

type storeSize struct{ storeFlags }

// sizeRow is the size of a store, for programs.
type sizeRow struct {
	Bytes int64            `json:"bytes"`
	Free  int64            `json:"free"`
	Rows  map[string]int64 `json:"rows"`
}

// Run prints the size of the store.
func (c *storeSize) Run(ctx context.Context, p *program) error {
	return c.withStore(ctx, func(s store.Store) error {
		size, err := s.Size(ctx)
		if err != nil {
			return err
		}
		return p.print(sizeRow{size.Bytes, size.Free, size.Rows}, func(w io.Writer) {
			const line = "%-20s %15d %s\n"
			fmt.Fprintf(w, line+line, "database", size.Bytes, "bytes", "unused", size.Free, "bytes")
			for _, table := range slices.Sorted(maps.Keys(size.Rows)) {
				fmt.Fprintf(w, line, table, size.Rows[table], "rows")
			}
		})
	})
}

type storeVacuum struct{ storeFlags }

// vacuumReport is what a vacuum came to, for programs.
type vacuumReport struct {
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Run makes the store as small as it can be.
func (c *storeVacuum) Run(ctx context.Context, p *program) error {
	return c.withStore(ctx, func(s store.Store) error {
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
		return p.print(vacuumReport{before.Bytes, after.Bytes}, func(w io.Writer) { fmt.Fprintf(w, "%d bytes, were %d\n", after.Bytes, before.Bytes) })
	})
}

type storeExport struct {
	storeFlags
	Account string `arg:"" help:"Whose."`
	Output  string `short:"o" help:"The file to write; it must not be there. Default: standard output." placeholder:"FILE"`
}

// Run exports an account. What it writes is JSON anyway. A file is there when everything is in it that can be read.
func (c *storeExport) Run(ctx context.Context, p *program) error {
	return c.withExecutor(ctx, p, func(o *openExecutor) error {
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
			err = export(p.out)
		} else {
			err = atomicfile.Create(c.Output, 0o600, func(file *os.File) error { return export(file) }) // it is in the clear
		}
		switch {
		case errors.Is(err, fs.ErrExist):
			return usage("-o: the file %s is there already", c.Output)
		case err != nil:
			return err
		case !p.json:
			fmt.Fprintln(p.err, runs, "runs")
		}
		return unread
	})
}

type storeErase struct {
	storeFlags
	Account string `arg:"" help:"Whose."`
	Yes     bool   `help:"Do it. Without, it only says what it would do."`
}

// eraseReport is what an erasure came to, for programs.
type eraseReport struct {
	Account string `json:"account"`
	Erased  bool   `json:"erased"`
	Runs    int    `json:"runs"`
}

// Run erases an account.
func (c *storeErase) Run(ctx context.Context, p *program) error {
	return c.withExecutor(ctx, p, func(o *openExecutor) error {
		if !c.Yes {
			return p.print(eraseReport{Account: c.Account}, func(w io.Writer) {
				fmt.Fprintf(w, "with --yes, all runs of %q are ended and everything that is known of them is deleted\n", c.Account)
			})
		}
		n, err := o.EraseAccount(ctx, c.Account)
		return errors.Join(err, p.print(eraseReport{c.Account, true, n}, func(w io.Writer) { fmt.Fprintln(w, n, "runs erased") }))
	})
}

type storeRetry struct {
	storeFlags
	Account  string `arg:"" help:"Whose."`
	StateKey string `arg:"" help:"The state key of the run."`
}

// Run lets a parked run go on.
func (c *storeRetry) Run(ctx context.Context, p *program) error {
	return c.withExecutor(ctx, p, func(o *openExecutor) error {
		if err := o.Retry(ctx, c.Account, c.StateKey, desk.From{Actor: desk.Actor{ID: operatorActor, Kind: desk.ActorSystem}, Via: "cli"}); err != nil {
			return err
		}
		row := struct {
			Account  string       `json:"account"`
			StateKey string       `json:"stateKey"`
			Status   store.Status `json:"status"`
		}{c.Account, c.StateKey, store.StatusReady}
		return p.print(row, func(w io.Writer) {
			fmt.Fprintf(w, "%s\t%s; a server goes on with it\n", oneLine(c.StateKey), row.Status)
		})
	})
}
