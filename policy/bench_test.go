package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/policy"
)

// ofTools is a set of n rules, each for a tool of its own: what a large installation looks like.
func ofTools(n int) string {
	var b strings.Builder
	b.WriteString("default: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {id: r%d, when: 'req.tool == \"tool.%d\" && req.environment == \"prod\" && args[?\"amount\"].orValue(0) > %d', then: deny}\n", i, i, i)
	}
	return b.String()
}

// ofGraphs is a set of n rules that no tool tells apart: each of them has to be judged.
func ofGraphs(n int) string {
	return strings.ReplaceAll(ofTools(n), "req.tool", "req.graph")
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, doc := range map[string]string{"by-tool": ofTools(n), "any-tool": ofGraphs(n)} {
			b.Run(fmt.Sprintf("%s/rules=%d", name, n), func(b *testing.B) {
				set := load(b, doc)
				in := input("tool.3", `{"amount":2}`)
				b.ReportAllocs()
				for b.Loop() {
					if d := decide(b, set, in); d.Verdict != policy.Allow {
						b.Fatal(d.Verdict)
					}
				}
			})
		}
	}
}

func BenchmarkDecide_Operations(b *testing.B) {
	set := load(b, operations)
	in := input("db.execute", `{"sql":"DELETE FROM users WHERE id IN (1,2,3)"}`)
	b.ReportAllocs()
	for b.Loop() {
		decide(b, set, in)
	}
}

func BenchmarkLoad(b *testing.B) {
	doc := ofTools(100)
	b.ReportAllocs()
	for b.Loop() {
		load(b, doc)
	}
}
