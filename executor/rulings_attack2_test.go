package executor_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/store"
)

// All who begin at once in an account that is new see its policy for the first time. One of them files it; none of them fails over that.
func TestAttack_ManyFileAPolicyAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func() store.Store) {
		s := open()
		replicas := []*executor.Executor{cashier(t, s, nil), cashier(t, open(), nil)}
		var all sync.WaitGroup
		for n := range 12 {
			all.Go(func() {
				cents := []int{50, 500, 5000}[n%3]
				outcome, err := replicas[n%2].Run(t.Context(), executor.Request{
					Account: "acme", StateKey: fmt.Sprint("pay-", n), Graph: "inproc:pay", Input: fmt.Appendf(nil, `{"cents":%d}`, cents),
				})
				var good bool
				switch cents {
				case 50:
					_, good = outcome.(fermata.Completed)
				case 500:
					_, good = outcome.(fermata.NeedsInput)
				default:
					_, good = outcome.(fermata.Failed)
				}
				if err != nil || !good {
					t.Errorf("%d cents came to %#v, %v", cents, outcome, err)
				}
			})
		}
		all.Wait()
		if got := len(papersOf(t, s, "acme", "policy")); got != 1 {
			t.Errorf("%d policies are kept", got)
		}
		if got := len(papersOf(t, s, "acme", "ruling")); got != 12 {
			t.Errorf("%d rulings are kept", got)
		}
	})
}

// An agent calls its action what it likes. That must not keep a denial from being filed, and nobody from counting, in any store.
func TestAttack_AnActionWithAHostileName(t *testing.T) {
	for name, action := range map[string]string{"NUL": "pay\u0000", "a path": "../../pay/2/c_1", "long": string(make([]rune, 300)), "turned": "\u202eyap@1~2"} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) {
				p, err := external.New(external.Config{})
				if err != nil {
					t.Fatal(err)
				}
				rules := "default: ask\ndefaults: {ask: {groups: [{from: [\"group:finance\"]}], deadline: 1h}}\nrules:\n- {id: no, when: 'args.n == 1', then: deny}\n"
				e := executorOf(t, s, p, func(c *executor.Config) { c.Desk.Rules = loadRules(t, rules) })
				for n := range 2 {
					data, err := json.Marshal(map[string]any{"kind": "approval", "data": map[string]any{"action": action, "args": map[string]int{"n": n}}})
					if err != nil {
						t.Fatal(err)
					}
					outcome, err := e.Run(t.Context(), executor.Request{Account: "acme", StateKey: fmt.Sprint("x-", n), Graph: "external:request", Input: data, Actor: "mallory"})
					_, waits := outcome.(fermata.NeedsInput)
					failed, over := outcome.(fermata.Failed)
					if name == "a path" && waits != (n == 0) {
						t.Errorf("%d is asked: %t", n, waits)
					}
					if err != nil || !waits && !over || over && failed.Code != "denied" && failed.Code != "bad_question" && failed.Code != "invalid_input" {
						t.Fatalf("%d came to %#v, %v", n, outcome, err)
					}
				}
				if _, err := e.Replay(t.Context(), "acme", candidate(t, rules), time.Now().Add(-time.Hour)); err != nil {
					t.Errorf("the past cannot be replayed: %v", err)
				}
				if _, err := e.Analytics(t.Context(), "acme", analytics.Query{Since: time.Now().Add(-time.Hour)}); err != nil {
					t.Errorf("nothing can be counted: %v", err)
				}
				if _, err := e.Reconcile(t.Context(), "acme"); err != nil {
					t.Errorf("the books cannot be compared: %v", err)
				}
			})
		})
	}
}
