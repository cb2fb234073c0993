package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/box"
)

type keyCommands struct {
	Make   keyMake   `cmd:"" help:"Make a key file, for replicas that share it. On SQLite the first start makes one."`
	Rotate keyRotate `cmd:"" help:"Make a new key, seal everything with it while the server runs, and then forget the old one."`
}

type keyMake struct {
	File string `arg:"" help:"The file to make; it must not be there."`
}

// Run makes a key file, for replicas that share it.
func (c *keyMake) Run() error {
	if _, err := os.Stat(c.File); err == nil {
		return fmt.Errorf("the file %s is there already", c.File)
	}
	return box.MakeFile(c.File)
}

type keyRotate struct{ place }

// Run changes the key. Processes that use the key file notice the new key by themselves; until they do, they seal with the old one. So it is
// gone over everything until there was nothing left to do, and only then the old key goes.
func (c *keyRotate) Run(ctx context.Context, p *program) (err error) {
	o, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := box.Rotate(o.file); err != nil {
		return err
	}
	for round := 1; ; round++ {
		if err := wait(ctx, 2*box.CheckEvery); err != nil {
			return err
		}
		sum, err := o.Reseal(ctx, func(r executor.Resealed) {
			fmt.Fprintf(p.err, "\rround %d: %d values seen, %d sealed anew", round, r.Seen, r.Changed)
		})
		fmt.Fprintln(p.err)
		if err != nil {
			return fmt.Errorf("%w; the old key is kept: call it again", err)
		}
		if sum.Changed == 0 {
			break
		}
	}
	if err := box.Retire(o.file); err != nil {
		return err
	}
	fmt.Fprintln(p.out, "the key is changed")
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
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

type storeSize struct{ place }

// Run prints the size of the store.
func (c *storeSize) Run(ctx context.Context, p *program) (err error) {
	s, err := c.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	size, err := s.Size(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "%-12s %15d bytes\n%-12s %15d bytes\n", "database", size.Bytes, "unused", size.Free)
	for _, table := range slices.Sorted(maps.Keys(size.Rows)) {
		fmt.Fprintf(p.out, "%-12s %15d rows\n", table, size.Rows[table])
	}
	return nil
}

type storeVacuum struct{ place }

// Run makes the store as small as it can be.
func (c *storeVacuum) Run(ctx context.Context, p *program) (err error) {
	s, err := c.openStore(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	before, err := s.Size(ctx)
	if err != nil {
		return err
	}
	if err := s.Vacuum(ctx); err != nil {
		return err
	}
	after, err := s.Size(ctx)
	fmt.Fprintf(p.out, "%d bytes, were %d\n", after.Bytes, before.Bytes)
	return err
}

type storeExport struct {
	place
	Account string `arg:"" help:"Whose."`
	Output  string `short:"o" help:"The file to write; it must not be there. Default: standard output." placeholder:"FILE"`
}

// Run exports an account.
func (c *storeExport) Run(ctx context.Context, p *program) (err error) {
	o, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	out := p.out
	if c.Output != "" {
		file, err := os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // it is in the clear
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	n, err := o.Export(ctx, c.Account, out)
	fmt.Fprintln(p.err, n, "runs")
	return err
}

type storeErase struct {
	place
	Account string `arg:"" help:"Whose."`
	Yes     bool   `help:"Do it. Without, it only says what it would do."`
}

// Run erases an account.
func (c *storeErase) Run(ctx context.Context, p *program) (err error) {
	o, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if !c.Yes {
		fmt.Fprintf(p.out, "with --yes, all runs of %q are ended and everything that is known of them is deleted\n", c.Account)
		return nil
	}
	n, err := o.Erase(ctx, c.Account)
	fmt.Fprintln(p.out, n, "runs erased")
	return err
}

type storeRetry struct {
	place
	Account  string `arg:"" help:"Whose."`
	StateKey string `arg:"" help:"The state key of the run."`
}

// Run lets a parked run go on.
func (c *storeRetry) Run(ctx context.Context, p *program) (err error) {
	o, err := c.open(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	return o.Retry(ctx, c.Account, c.StateKey)
}
