package executor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

// A change on one replica is signalled to a watcher on another one within a second, also if it
// concerns only the request and not the run.
func TestRequestChanges_OtherReplicaIsNotified(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		d := new(dropper)
		one, two := d.executor(t, open(), nil), d.executor(t, open(), nil)
		changed, stop := two.WatchRequests("acme")
		defer stop()
		var seen []string
		after := int64(0)
		until := func(kind string) executor.RequestChange {
			t.Helper()
			for deadline := time.Now().Add(time.Minute); ; {
				changes, next, err := two.RequestChanges(t.Context(), "acme", after)
				if err != nil {
					t.Fatal(err)
				}
				after = next
				for _, c := range changes {
					seen = append(seen, string(c.Kind))
				}
				if i := slices.IndexFunc(changes, func(c executor.RequestChange) bool { return string(c.Kind) == kind }); i >= 0 {
					return changes[i]
				}
				select {
				case <-changed:
				case <-time.After(time.Until(deadline)):
					t.Fatalf("no %s, only %v", kind, seen)
				}
			}
		}
		startDrop(t, one)
		opened := until("opened")
		from := desk.From{Actor: desk.Actor{ID: "ann", Kind: desk.ActorHuman}}
		if _, err := one.Act(t.Context(), "acme", opened.Request, desk.Claim{From: from}); err != nil {
			t.Fatal(err)
		}
		if c := until("claimed"); c.Request != opened.Request || c.Revision <= opened.Revision {
			t.Errorf("%+v after %+v", c, opened)
		}
		mustRun(t, one, addressed(t, one, decision("drop-1", "approve")))
		until("decided")
		if last, err := two.LastChange(t.Context(), "acme"); err != nil || last < after {
			t.Errorf("the last change is %d, %v", last, err)
		}
		if got := strings.Join(seen, " "); got != "opened claimed decided" {
			t.Errorf("the changes are %s", got)
		}
	})
}
