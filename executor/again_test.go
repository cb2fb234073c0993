package executor_test

import (
	"testing"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// The story: bob said yes and left, so eve's yes was not enough; he came back, and eve said hers once more. That ended it, and the log did not say so: a
// word that is said again is none that it had not.
func TestI12_AWordSaidAgainThatSettlesHasALine(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		members := desk.Members{"group:dba": {"bob"}, "group:owners": {"eve"}}
		e := office(t, s, d, func(c *executor.Config) { c.Desk.Directory = members })
		startAs(t, e, "req")
		say := func(who, resume string) {
			t.Helper()
			if _, err := says(t, e, who, resume, yes); err != nil {
				t.Fatal(err)
			}
		}
		say("bob", "r1")
		members["group:dba"] = nil
		say("eve", "r2")
		if d.dropped.Load() != 0 {
			t.Fatal("one of two is enough")
		}
		members["group:dba"] = []string{"bob"}
		say("eve", "r3")
		if d.dropped.Load() != 1 {
			t.Fatal("both agree, and nothing is done")
		}
		agree(t, e)
	})
}
