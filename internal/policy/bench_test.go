package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

// rulesByTool returns n rules, each for its own tool, as in a large installation.
func rulesByTool(n int) string {
	var b strings.Builder
	b.WriteString("default: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {id: r%d, when: 'req.tool == \"tool.%d\" && req.environment == \"prod\" && args[?\"amount\"].orValue(0) > %d', then: deny}\n", i, i, i)
	}
	return b.String()
}

// rulesByGraph returns n rules for all tools, so that each must be evaluated.
func rulesByGraph(n int) string {
	return strings.ReplaceAll(rulesByTool(n), "req.tool", "req.graph")
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		for name, doc := range map[string]string{"by-tool": rulesByTool(n), "any-tool": rulesByGraph(n)} {
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
	doc := rulesByTool(100)
	b.ReportAllocs()
	for b.Loop() {
		load(b, doc)
	}
}
