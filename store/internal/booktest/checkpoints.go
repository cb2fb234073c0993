package booktest

import (
	"errors"
	"io"
	"testing"

	"github.com/fermata-go/fermata/store"
)

// Demo is the run that checkpoints are of.
var Demo = store.Key{Account: "acme", Run: "demo-1"}

// PutRun writes a checkpoint of one part.
func PutRun(text string) store.Delta {
	return store.Delta{Put: []store.Part{{Name: "run", Data: []byte(text)}}}
}

// Save saves such a checkpoint.
func Save(t testing.TB, s store.Checkpoints, base int64, text string) {
	t.Helper()
	if _, err := s.Save(t.Context(), Demo, base, PutRun(text)); err != nil {
		t.Fatal(err)
	}
}

// WantRun wants the checkpoint to be of this version, and to say this.
func WantRun(t testing.TB, s store.Checkpoints, version int64, text string) {
	t.Helper()
	checkpoint, err := s.Load(t.Context(), Demo)
	if err != nil {
		t.Fatal(err)
	}
	if checkpoint.Version != version || string(checkpoint.Parts["run"]) != text {
		t.Fatalf("stored version %d, run %q; want %d, %q", checkpoint.Version, checkpoint.Parts["run"], version, text)
	}
}

// Closable is a store of checkpoints that is opened anew.
type Closable interface {
	store.Checkpoints
	io.Closer
}

// OneAfterTheOther wants what one store has saved to be there for the next.
func OneAfterTheOther(t *testing.T, open func() Closable) {
	for base := range int64(3) {
		s := open()
		Save(t, s, base, "run")
		WantRun(t, s, base+1, "run")
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// SideBySide wants two stores on the same data to see what the other does.
func SideBySide(t *testing.T, first, second store.Checkpoints) {
	Save(t, first, 0, "first")
	WantRun(t, second, 1, "first")
	Save(t, second, 1, "second")
	if _, err := first.Save(t.Context(), Demo, 1, PutRun("late")); !errors.Is(err, store.ErrStale) {
		t.Errorf("Save on a version that the other store has passed: %v; want ErrStale", err)
	}
	WantRun(t, first, 2, "second")
}

// AskedElsewhere wants an interrupt of one run not to be asked by another: it is known by its id alone where its effects are ended.
func AskedElsewhere(t *testing.T, s store.Store, refused error) {
	Rest(t, s, Begin(t, s, "r1"), nil, "i")
	lease := Begin(t, s, "r2")
	if _, err := s.Rest(t.Context(), lease, Asking(nil, "new", "i")); !errors.Is(err, refused) {
		t.Errorf("Rest: %v; want %v", err, refused)
	}
	if all, err := s.Interrupts(t.Context(), "acme", "r2"); err != nil || len(all) > 0 {
		t.Errorf("half of it was done: %+v, %v", all, err)
	}
	Rest(t, s, lease, nil, "new")
}
