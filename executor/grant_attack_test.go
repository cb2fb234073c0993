package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/store/memory"
)

const oneDBA = `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: ["group:dba"]}], deadline: 1h, remember_max: 1h}
`

// Bob approved a drop when one dba was enough. The rules have become stricter since; his old yes must not be made into a grant that stands for the
// yes of all whom they ask now.
func TestAttack_AnOldYesIsNoGrantUnderStricterRules(t *testing.T) {
	for name, stricter := range map[string]string{
		"more people":    strings.Replace(oneDBA, `[{from: ["group:dba"]}]`, `[{from: ["group:dba"]}, {from: ["group:owners"]}]`, 1),
		"other people":   strings.Replace(oneDBA, "group:dba", "group:owners", 1),
		"a stronger key": strings.Replace(oneDBA, "deadline: 1h", "deadline: 1h, min_auth: hardware", 1),
	} {
		t.Run(name, func(t *testing.T) {
			text := oneDBA
			live := policy.NewLive(func(context.Context) (string, []byte, error) { return "policy.yaml", []byte(text), nil }, policy.Options{})
			reload := func() {
				t.Helper()
				if _, err := live.Reload(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			reload()
			d := new(dropper)
			e := office(t, memory.NewRuns(nil), d, func(c *executor.Config) { c.Desk.Rules = live })
			asked := startAs(t, e, "req").Interrupts[0].ID
			mustRun(t, e, word("bob", "drop-1", "r1", asked, yes))

			text = stricter
			reload()
			_, err := e.Remember(t.Context(), "acme", asked, executor.Remember{By: "bob", TTL: time.Hour, MaxUses: 1})
			if !errors.Is(err, executor.ErrInvalid) {
				outcome := mustRun(t, e, executor.Request{Account: "acme", StateKey: "again", Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: "req"})
				t.Errorf("bob alone has had it remembered (%v): %#v, dropped %d times", err, outcome, d.dropped.Load())
			}
		})
	}
}
