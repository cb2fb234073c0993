package cases_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/policy/cases"
)

// fences returns the fenced blocks of a text as pairs of language and content.
func fences(text string) (blocks [][2]string) {
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 1 {
			language, content, _ := strings.Cut(part, "\n")
			blocks = append(blocks, [2]string{language, content + "\n"})
		}
	}
	return blocks
}

// The policies in docs/policy.md can be loaded, and their cases pass.
func TestDocs_ExamplesHold(t *testing.T) {
	text, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	var set *policy.Set
	policies, tables, conditions := 0, 0, 0
	for _, block := range fences(string(text)) {
		switch content := block[1]; {
		case strings.HasPrefix(content, "# policy.yaml"):
			policies++
			if set, err = policy.Load("docs/policy.md", []byte(content), policy.Options{}); err != nil {
				t.Fatal(err)
			}
		case strings.HasPrefix(content, "# cases.yaml"):
			tables++
			var out strings.Builder
			result, err := cases.Run(&out, set, "docs/policy.md", []byte(content))
			if err != nil || result.Failed > 0 {
				t.Errorf("%v\n%s", err, &out)
			}
		case block[0] == "cel":
			for condition := range strings.Lines(content) {
				conditions++
				doc := "default: deny\nrules:\n- id: it\n  then: allow\n  when: |\n    " + condition
				if _, err := policy.Load("docs/policy.md", []byte(doc), policy.Options{}); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if policies < 2 || tables < 2 || conditions < 8 {
		t.Errorf("found %d policies, %d tables and %d conditions: has their markup changed?", policies, tables, conditions)
	}
}

// The example in the package documentation is a valid policy.
func TestDocs_PackageExample(t *testing.T) {
	text, err := os.ReadFile("../../../policy/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "//\tversion")
	before, _, _ := strings.Cut("//\tversion"+after, "\n//\n")
	doc := strings.ReplaceAll(before, "//\t", "")
	set, err := policy.Load("doc.go", []byte(doc), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	result, err := cases.Run(io.Discard, set, "cases.yaml", []byte(`
cases:
- {name: small, input: {tool: refund, args: {cents: 5, customer: c-1}}, want: allow}
- {name: staff, input: {tool: refund, args: {cents: 5, customer: staff-1}}, want: deny}
- {name: large, input: {tool: refund, args: {cents: 5000, customer: c-1}}, want: ask}
`))
	if err != nil || result.Failed > 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

// docs/policy.md shows the actual load messages.
func TestDocs_LoadMessages(t *testing.T) {
	const broken = `
version: "1"
default: deny

rules:
- id: bulk-delete
  when: req.tol == "db.execute"
  then: deny
  resaon: destructive
- id: bulk delete
  when: "true"
  then: deny
`
	_, err := policy.Load("policy.yaml", []byte(broken), policy.Options{})
	if err == nil {
		t.Fatal("loaded")
	}
	text, readErr := os.ReadFile("../../../docs/policy.md")
	if readErr != nil {
		t.Fatal(readErr)
	}
	_, messages, _ := strings.Cut(err.Error(), "\n")
	if !strings.Contains(string(text), "```text\n"+messages+"\n```") {
		t.Errorf("docs/policy.md does not show\n%s", messages)
	}
}

// docs/policy.md quotes the program of the runnable example.
func TestDocs_QuoteExampleFile(t *testing.T) {
	source, err := os.ReadFile("../../../policy/example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../../docs/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(source), "// docs:start\n")
	code, _, ok2 := strings.Cut(rest, "\t// docs:end")
	code = strings.ReplaceAll("\n"+code, "\n\t", "\n")
	if !ok || !ok2 || !strings.Contains(string(text), "```go"+code+"```") {
		t.Errorf("docs/policy.md does not quote%s", code)
	}
}
