package storetest_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

var (
	key     = store.Key{Account: "acme", Run: "demo-1"}
	errDisk = errors.New("disk on fire")
)

func put(text string) store.Delta {
	return store.Delta{Put: []store.Part{{Name: "run", Data: []byte(text)}}}
}

// stored returns the content of the store as "version:run", or "" if it is empty.
func stored(t *testing.T, s store.Checkpoints) string {
	t.Helper()
	checkpoint, err := s.Load(t.Context(), key)
	if errors.Is(err, store.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d:%s", checkpoint.Version, checkpoint.Parts["run"])
}

func TestFaulty_WithoutFaultsIsTheInnerStore(t *testing.T) {
	storetest.Checkpoints(t, func(*testing.T) store.Checkpoints { return storetest.NewFaulty(memory.New()) })
}

func TestFaulty_FailSave(t *testing.T) {
	for _, test := range []struct {
		name string
		when storetest.FaultTime
		want string
	}{
		{"before", storetest.BeforeWrite, "1:one"},
		{"after", storetest.AfterWrite, "2:two"},
	} {
		t.Run(test.name, func(t *testing.T) {
			faulty := storetest.NewFaulty(memory.New())
			faulty.FailSave(2, test.when, errDisk)
			if _, err := faulty.Save(t.Context(), key, 0, put("one")); err != nil {
				t.Fatalf("first save: %v", err)
			}
			if version, err := faulty.Save(t.Context(), key, 1, put("two")); version != 0 || !errors.Is(err, errDisk) {
				t.Fatalf("second save: %d, %v; want 0, %v", version, err, errDisk)
			}
			if got := stored(t, faulty); got != test.want {
				t.Fatalf("stored %q; want %q", got, test.want)
			}
			checkpoint, _ := faulty.Load(t.Context(), key)
			if _, err := faulty.Save(t.Context(), key, checkpoint.Version, put("three")); err != nil {
				t.Fatalf("third save: %v", err)
			}
		})
	}
}

func TestFaulty_CrashSaveStopsEverythingUntilRestart(t *testing.T) {
	for _, test := range []struct {
		name string
		when storetest.FaultTime
		want string
	}{
		{"before", storetest.BeforeWrite, ""},
		{"after", storetest.AfterWrite, "1:one"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inner := memory.New()
			faulty := storetest.NewFaulty(inner)
			faulty.CrashSave(1, test.when)
			for range 2 {
				if _, err := faulty.Save(t.Context(), key, 0, put("one")); !errors.Is(err, storetest.ErrCrashed) {
					t.Fatalf("Save: %v; want ErrCrashed", err)
				}
			}
			if _, err := faulty.Load(t.Context(), key); !errors.Is(err, storetest.ErrCrashed) {
				t.Errorf("Load: %v; want ErrCrashed", err)
			}
			if err := faulty.Delete(t.Context(), key); !errors.Is(err, storetest.ErrCrashed) {
				t.Errorf("Delete: %v; want ErrCrashed", err)
			}
			if got := stored(t, inner); got != test.want {
				t.Errorf("the inner store has %q; want %q", got, test.want)
			}
			if faulty.Saves() != 1 {
				t.Errorf("%d saves; the one after the crash should not count", faulty.Saves())
			}
			faulty.Restart()
			if got := stored(t, faulty); got != test.want {
				t.Errorf("after the restart there is %q; want %q", got, test.want)
			}
		})
	}
}

func TestFaulty_InnerErrorGoesBeforeTheFault(t *testing.T) {
	faulty := storetest.NewFaulty(memory.New())
	faulty.FailSave(1, storetest.AfterWrite, errDisk)
	if _, err := faulty.Save(t.Context(), key, 7, put("x")); !errors.Is(err, store.ErrStale) {
		t.Errorf("Save: %v; want ErrStale", err)
	}
}

func TestFaulty_FailLoad(t *testing.T) {
	faulty := storetest.NewFaulty(memory.New())
	faulty.FailLoad(errDisk)
	for range 2 {
		if _, err := faulty.Load(t.Context(), key); !errors.Is(err, errDisk) {
			t.Errorf("Load: %v; want %v", err, errDisk)
		}
	}
	faulty.FailLoad(nil)
	if got := stored(t, faulty); got != "" {
		t.Errorf("stored %q; want nothing", got)
	}
}

func TestFaulty_Counts(t *testing.T) {
	faulty := storetest.NewFaulty(memory.New())
	faulty.FailSave(3, storetest.BeforeWrite, errDisk)
	faulty.FailSave(4, storetest.AfterWrite, errDisk)
	faulty.Save(t.Context(), key, 0, put("four"))   // 3 + 4
	faulty.Save(t.Context(), key, 9, put("stale"))  // rejected
	faulty.Save(t.Context(), key, 1, put("before")) // not applied
	faulty.Save(t.Context(), key, 1, put("after"))  // 3 + 5, applied
	faulty.Save(t.Context(), key, 2, store.Delta{}) // nothing put
	if got := faulty.Saves(); got != 5 {
		t.Errorf("Saves() = %d; want 5", got)
	}
	if got := faulty.BytesPut(); got != 15 {
		t.Errorf("BytesPut() = %d; want 15", got)
	}
	if got := faulty.LargestSave(); got != 8 {
		t.Errorf("LargestSave() = %d; want 8", got)
	}
}

func TestFaulty_NothingIsAcknowledgedAfterACrash(t *testing.T) {
	const savers, crashAt = 16, 5
	inner := memory.New()
	faulty := storetest.NewFaulty(inner)
	faulty.CrashSave(crashAt, storetest.AfterWrite)
	acknowledged := make([]bool, savers)
	var wg sync.WaitGroup
	for i := range savers {
		wg.Go(func() {
			_, err := faulty.Save(t.Context(), store.Key{Run: fmt.Sprint(i)}, 0, put("x"))
			acknowledged[i] = err == nil
		})
	}
	wg.Wait()
	if _, err := faulty.Load(t.Context(), key); !errors.Is(err, storetest.ErrCrashed) {
		t.Fatalf("Load: %v; want ErrCrashed", err)
	}
	for i, ok := range acknowledged {
		if _, err := inner.Load(t.Context(), store.Key{Run: fmt.Sprint(i)}); ok && err != nil {
			t.Errorf("save %d was acknowledged but is missing: %v", i, err)
		}
	}
}
