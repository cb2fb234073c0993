package grant_test

import (
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/grant"
)

// Ann approves a report and allows the number of rows to vary for eight hours.
func ExampleNarrowest() {
	set, err := policy.Load("policy.yaml", []byte(`
default: ask
defaults: {ask: {groups: [{from: ["group:data"]}], deadline: 1h, remember_max: 8h}}
`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	asked := policy.Input{Account: "acme", Tool: "report", Args: []byte(`{"table": "sales", "rows": 500}`), At: now}
	decision, err := set.Decide(asked)
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := grant.Narrowest(asked, decision, grant.Terms{ID: "g-1", By: "ann", Now: now, TTL: 24 * time.Hour, MaxUses: 10})
	if err != nil {
		fmt.Println(err)
		return
	}
	if g, err = g.Relax("/rows", grant.AtMost(1000)); err != nil {
		fmt.Println(err)
		return
	}
	for _, args := range []string{`{"table": "sales", "rows": 900}`, `{"table": "sales", "rows": 1001}`, `{"table": "salaries", "rows": 1}`, `{"table": "sales", "rows": 1, "to": "x"}`} {
		in := asked
		in.Args = []byte(args)
		_, err := g.Match(in, decision, grant.Usage{}, now.Add(time.Hour))
		fmt.Println(args, err)
	}
	// Output:
	// {"table": "sales", "rows": 900} <nil>
	// {"table": "sales", "rows": 1001} grant: no match: argument /rows is more than was granted
	// {"table": "salaries", "rows": 1} grant: no match: argument /table differs from the approved value
	// {"table": "sales", "rows": 1, "to": "x"} grant: no match: argument /to is new
}
