package fermata_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme_QuotesCodeThatCompiles compares the Go code in the documents with the examples that
// run as tests.
func TestReadme_QuotesCodeThatCompiles(t *testing.T) {
	for page, example := range map[string]string{
		"README.md":         "example_test.go",
		"docs/agents.md":    "agent/example_test.go",
		"docs/server.md":    "app/example_test.go",
		"docs/embedding.md": "server/example_test.go",
	} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		source, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(source), "// readme:start\n")
		code, _, ok2 := strings.Cut(rest, "\n// readme:end")
		if !ok || !ok2 {
			t.Fatalf("%s: the readme:start and readme:end marks are missing", example)
		}
		if !strings.Contains(string(text), "```go\n"+code+"```") {
			t.Errorf("%s does not quote %s:\n%s", page, example, code)
		}
		if n := strings.Count(string(text), "```go\n"); n != 1 {
			t.Errorf("%s has %d blocks of Go code; only the tested one is allowed", page, n)
		}
	}
}

// TestReadme_IsShort keeps the README to what a newcomer needs first.
func TestReadme_IsShort(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, at most 150 are allowed", n)
	}
}
