package policy_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

// file is a rule file that can be changed, or be invalid.
type file struct {
	text atomic.Value
	err  error
}

func (f *file) read(context.Context) (string, []byte, error) {
	return "policy.yaml", []byte(f.text.Load().(string)), f.err
}

func TestLiveSet_KeepsOldSetIfLoadFails(t *testing.T) {
	var f file
	f.text.Store("default: deny\n")
	live := policy.NewLiveSet(f.read, policy.Options{})
	if live.Current() != nil {
		t.Error("there are rules before any were loaded")
	}
	change, err := live.Reload(t.Context())
	if err != nil || !change.Changed() || change.Before != nil || change.After != live.Current() {
		t.Fatalf("%+v, %v", change, err)
	}
	first := live.Current()

	if change, err := live.Reload(t.Context()); err != nil || change.Changed() {
		t.Errorf("the same bytes: %+v, %v", change, err)
	}
	f.text.Store("default: deny\nrules:\n- {id: open, when: 'true', then: allow}\n- {id: broken, when: 'tru', then: deny}\n")
	change, err = live.Reload(t.Context())
	if _, ok := errors.AsType[*policy.LoadError](err); !ok || change.Changed() || live.Current() != first {
		t.Errorf("half a file: %+v, %v", change, err)
	}
	f.err = errors.New("no such file")
	if _, err := live.Reload(t.Context()); !errors.Is(err, f.err) || live.Current() != first {
		t.Errorf("no file: %v", err)
	}
	if d, err := live.Current().Decide(input("t", `{}`)); err != nil || d.Verdict != policy.Deny || d.Policy != first.Digest() {
		t.Errorf("%s, %v", d.Verdict, err)
	}
	f.err = nil
	f.text.Store("default: allow\n")
	if change, err := live.Reload(t.Context()); err != nil || change.Before != first || change.After != live.Current() {
		t.Errorf("%+v, %v", change, err)
	}
}

// During reloads, every decision comes from exactly one file. Run with -race.
func TestLiveSet_ReloadWhileDeciding(t *testing.T) {
	docs := []string{
		"version: a\ndefault: allow\nrules:\n- {id: a, when: 'args.x > 0', then: deny}\n",
		"version: b\ndefault: deny\nrules:\n- {id: b, when: 'args.x > 0', then: allow}\n",
	}
	wants := map[string]policy.Verdict{"a": policy.Deny, "b": policy.Allow}
	var f file
	f.text.Store(docs[0])
	live := policy.NewLiveSet(f.read, policy.Options{})
	if _, err := live.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 300 {
				d, err := live.Current().Decide(input("t", `{"x":1}`))
				if err != nil || d.Verdict != wants[d.Version] || d.Rules[0] != d.Version {
					t.Errorf("%s by %v of version %s, %v", d.Verdict, d.Rules, d.Version, err)
					return
				}
			}
		})
	}
	all.Go(func() {
		for i := range 100 {
			f.text.Store(docs[i%2])
			if _, err := live.Reload(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
}
