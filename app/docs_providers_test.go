package app

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/claude"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/provider/langgraph"
)

// The table of capabilities in docs/providers.md is generated from the code; -update rewrites it.
func TestDocs_CapabilityTableMatchesProviders(t *testing.T) {
	const file = "../docs/providers.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- capabilities: go test \./app -run CapabilityTable -update -->\n\n).*?(<!-- end -->)`)
	if !table.Match(text) {
		t.Fatal("the document has no table of capabilities")
	}
	golden.Compare(t, file, table.ReplaceAll(text, []byte("${1}"+capabilityTable()+"\n${2}")))
}

func capabilityTable() string {
	names := []string{inproc.Name, external.Name, langgraph.Name, claude.Name}
	all := []provider.Capabilities{new(inproc.Provider).Capabilities(), new(external.Provider).Capabilities(), new(langgraph.Provider).Capabilities(), new(claude.Provider).Capabilities()}
	var b strings.Builder
	fmt.Fprintf(&b, "| | `%s` |\n|---|%s\n", strings.Join(names, "` | `"), strings.Repeat("---|", len(names)))
	row := func(name string, value func(provider.Capabilities) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, can := range all {
			fmt.Fprintf(&b, " %s |", value(can))
		}
		b.WriteByte('\n')
	}
	yes := func(of func(provider.Capabilities) bool) func(provider.Capabilities) string {
		return func(can provider.Capabilities) string {
			if of(can) {
				return "yes"
			}
			return "no"
		}
	}
	row("parallel interrupts", yes(func(c provider.Capabilities) bool { return c.Parallel }))
	row("partial resume", func(c provider.Capabilities) string {
		switch {
		case c.PartialResume:
			return "yes"
		case c.Parallel:
			return "no: the executor collects all answers"
		}
		return "one interrupt per run"
	})
	row("edited arguments", yes(func(c provider.Capabilities) bool { return c.Edit }))
	row("cancel", yes(func(c provider.Capabilities) bool { return c.Cancel }))
	row("steps or tokens in streams", yes(func(c provider.Capabilities) bool { return c.Streaming }))
	row("record of what was executed", yes(func(c provider.Capabilities) bool { return c.Receipts }))
	row("exactly once", func(c provider.Capabilities) string {
		return map[provider.Once]string{provider.OnceEffects: "approved effects", provider.OnceAnswers: "use of an answer", provider.OnceNone: "no", "": "no"}[c.Once]
	})
	return b.String()
}
