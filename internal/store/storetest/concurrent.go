package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

func testOneWinner(t *testing.T, s store.Checkpoints) {
	const savers, rounds = 8, 20
	for base := range int64(rounds) { // round 0 is the race to create
		var wg sync.WaitGroup
		start := make(chan struct{})
		errs := make([]error, savers)
		for i := range savers {
			wg.Go(func() {
				<-start
				who := fmt.Sprint(i)
				_, errs[i] = s.Save(t.Context(), demo, base, parts{"who": who, "also": who}.delta())
			})
		}
		close(start)
		wg.Wait()

		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner >= 0:
				t.Fatalf("round %d: savers %d and %d both won", base, winner, i)
			case err == nil:
				winner = i
			case !errors.Is(err, store.ErrStale):
				t.Fatalf("round %d: saver %d: %v; want ErrStale", base, i, err)
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no save won", base)
		}
		who := fmt.Sprint(winner)
		wantStored(t, s, demo, parts{"who": who, "also": who}.checkpoint(base+1))
	}
}

// generation returns the checkpoint after the nth save of testTornReads. One part is added and
// removed, so that a mix of two generations is detected.
func generation(n int64) parts {
	text := fmt.Sprint(n)
	p := parts{"a": text, "b": text, "c": text, "d": text}
	if n%2 == 1 {
		p["odd"] = text
	}
	return p
}

// testTornReads saves until every reader has seen enough versions. The number of saves depends on
// the store: reading an old version repeatedly would prove nothing.
func testTornReads(t *testing.T, s store.Checkpoints) {
	const readers = 4
	mustSave(t, s, demo, 0, generation(1).delta())
	var reading sync.WaitGroup
	defer reading.Wait() // also if a save fails: no goroutine may report to a test that has ended
	for range readers {
		reading.Go(func() {
			if err := readGenerations(t.Context(), s); err != nil {
				t.Error(err)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		reading.Wait()
	}()
	for base := int64(1); ; base++ {
		select {
		case <-done:
			return
		default:
		}
		delta := generation(base + 1).delta()
		if base%2 == 1 {
			delta.Delete = []string{"odd"}
		}
		mustSave(t, s, demo, base, delta)
	}
}

// readGenerations loads until it has seen many versions, or has tried often, and returns an error
// for an inconsistent one.
func readGenerations(ctx context.Context, s store.Checkpoints) error {
	const enough, atMost = 100, 20_000
	last, seen := int64(0), 0
	for loads := 0; seen < enough && loads < atMost; loads++ {
		checkpoint, err := s.Load(ctx, demo)
		if err != nil {
			return fmt.Errorf("Load: %w", err)
		}
		switch {
		case checkpoint.Version < last:
			return fmt.Errorf("version went back from %d to %d", last, checkpoint.Version)
		case checkpoint.Version > last:
			seen++
		}
		last = checkpoint.Version
		want := generation(last)
		if len(checkpoint.Parts) != len(want) {
			return fmt.Errorf("version %d has parts %q", last, checkpoint.Parts)
		}
		for name, data := range want {
			if string(checkpoint.Parts[name]) != data {
				return fmt.Errorf("version %d is torn: %q", last, checkpoint.Parts)
			}
		}
	}
	return nil
}

func testManyRuns(t *testing.T, s store.Checkpoints) {
	const runs, saves = 8, 10
	key := func(i int) store.Key { return store.Key{Account: fmt.Sprint(i % 2), Run: fmt.Sprint(i)} }
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			for base := range int64(saves) {
				if _, err := s.Save(t.Context(), key(i), base, parts{"of": fmt.Sprint(i, base)}.delta()); err != nil {
					t.Errorf("run %d: Save on base %d: %v", i, base, err)
					return
				}
			}
			if i == 0 {
				if err := s.Delete(t.Context(), key(i)); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := 1; i < runs; i++ {
		wantStored(t, s, key(i), parts{"of": fmt.Sprint(i, saves-1)}.checkpoint(saves))
	}
}

func testCancelBefore(t *testing.T, s store.Checkpoints) {
	mustSave(t, s, demo, 0, parts{"a": "1"}.delta())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"Load":   func() error { _, err := s.Load(ctx, demo); return err },
		"Save":   func() error { _, err := s.Save(ctx, demo, 1, parts{"a": "2"}.delta()); return err },
		"Delete": func() error { return s.Delete(ctx, demo) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v; want context.Canceled", name, err)
		}
	}
	wantStored(t, s, demo, parts{"a": "1"}.checkpoint(1))
}

func testCancelDuring(t *testing.T, s store.Checkpoints) {
	const rounds = 40
	version := mustSave(t, s, demo, 0, manyPartsDelta(0).delta())
	for round := range rounds {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		if round%4 == 0 {
			cancel() // certainly too early
		} else {
			wg.Go(cancel) // at some point during the save
		}
		_, err := s.Save(ctx, demo, version, manyPartsDelta(version).delta())
		wg.Wait()

		got := mustLoad(t, s, demo)
		switch {
		case got.Version == version && err == nil:
			t.Fatalf("round %d: Save returned nil but version %d is still stored", round, version)
		case got.Version != version && got.Version != version+1:
			t.Fatalf("round %d: Save on version %d left version %d", round, version, got.Version)
		}
		version = got.Version
		wantEqual(t, got, manyPartsDelta(version-1).checkpoint(version))
	}
	mustSave(t, s, demo, version, manyPartsDelta(version).delta()) // the store still works
}

// manyPartsDelta returns a checkpoint with enough parts for a cancel between two of them.
func manyPartsDelta(base int64) parts {
	p := parts{}
	for i := range 20 {
		p[fmt.Sprint(i)] = fmt.Sprint("saved on ", base)
	}
	return p
}
