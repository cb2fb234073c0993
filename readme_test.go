package fermata_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadme_QuotesCodeThatCompiles holds the README's example against the one that runs as a test.
func TestReadme_QuotesCodeThatCompiles(t *testing.T) {
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(source), "// readme:start\n")
	code, _, ok2 := strings.Cut(rest, "\n// readme:end")
	if !ok || !ok2 {
		t.Fatal("the marks are gone")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+code+"```") {
		t.Errorf("README.md does not quote the example as it is:\n%s", code)
	}
	if strings.Contains(string(readme), "BENCH") {
		t.Error("README.md still waits for its measurements")
	}
}
