package policy_test

import (
	"fmt"
	"strings"
	"testing"
)

// countingRules returns n rules for all tools, each with its own limit and a shared count.
func countingRules(n int) string {
	var b strings.Builder
	b.WriteString("default: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {id: r%d, when: 'history.count(\"tool\", \"1h\") > 1000', then: deny, limit: {max: %d, window: 24h, by: [requester]}}\n", i, i+1)
	}
	return b.String()
}

// Ten times the counting rules cause ten times the work, not a hundred times. The test counts the
// allocations: comparing all pairs of queries would build a name for every comparison.
func TestCounterQueries_CostGrowsWithCountingRules(t *testing.T) {
	work := func(n int) (demanding, deciding float64) {
		set, in := load(t, countingRules(n)), input("mail", `{}`)
		demands := set.CounterQueries(in)
		if len(demands) != n+1 {
			t.Fatalf("%d rules demand %d numbers: one of each limit, and one that they share", n, len(demands))
		}
		in = withCounters(set, in, 0)
		if d := decide(t, set, in); len(d.Charges) != 1 {
			t.Fatalf("%d rules charge %d counters, and share one that counts", n, len(d.Charges))
		}
		return testing.AllocsPerRun(5, func() { set.CounterQueries(in) }), testing.AllocsPerRun(5, func() { decide(t, set, in) })
	}
	fewDemanding, fewDeciding := work(100)
	manyDemanding, manyDeciding := work(1000)
	if most := 13 * fewDemanding; manyDemanding > most {
		t.Errorf("1000 rules demand with %.0f steps, 100 with %.0f", manyDemanding, fewDemanding)
	}
	if most := 13 * fewDeciding; manyDeciding > most {
		t.Errorf("1000 rules decide with %.0f steps, 100 with %.0f", manyDeciding, fewDeciding)
	}
	t.Logf("demanding %.0f → %.0f, deciding %.0f → %.0f", fewDemanding, manyDemanding, fewDeciding, manyDeciding)
}

// Rules that use the same counter query it once.
func TestCounterQueries_SharedQueriesAreBuiltOnce(t *testing.T) {
	shared := func(n int) float64 {
		set := load(t, strings.ReplaceAll(countingRules(n), ", limit: {", "} #"))
		in := input("mail", `{}`)
		if demands := set.CounterQueries(in); len(demands) != 1 {
			t.Fatalf("%+v", demands)
		}
		return testing.AllocsPerRun(5, func() { set.CounterQueries(in) })
	}
	if few, many := shared(10), shared(1000); many > few {
		t.Errorf("1000 rules with one demand take %.0f steps, 10 take %.0f", many, few)
	}
}
