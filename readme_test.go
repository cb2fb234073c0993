package fermata_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme_QuotesCodeThatCompiles holds the README's examples against those that run as tests.
func TestReadme_QuotesCodeThatCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := []string{"example_test.go", "agent/example_test.go", "app/example_test.go"}
	for _, file := range examples {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, ok := strings.Cut(string(source), "// readme:start\n")
		code, _, ok2 := strings.Cut(rest, "\n// readme:end")
		if !ok || !ok2 {
			t.Fatal("the marks are gone from ", file)
		}
		if !strings.Contains(string(readme), "```go\n"+code+"```") {
			t.Errorf("README.md does not quote %s as it is:\n%s", file, code)
		}
	}
	if quoted := strings.Count(string(readme), "```go\n"); quoted != len(examples) {
		t.Errorf("README.md quotes %d pieces of code; %d are tested", quoted, len(examples))
	}
	if strings.Contains(string(readme), "BENCH") {
		t.Error("README.md still waits for its measurements")
	}
}
