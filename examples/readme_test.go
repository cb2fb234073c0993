package examples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	row  = regexp.MustCompile(`(?m)^\| \[(\w+)\]\((\w+)/main\.go\) \| .* \| (.*) \| (.*) \|$`)
	code = regexp.MustCompile("`([^`]+)`")
)

func TestReadme_NamesEveryExampleAndQuotesExistingFiles(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	told := make(map[string]bool)
	for _, found := range row.FindAllStringSubmatch(string(text), -1) {
		name := found[1]
		told[name] = true
		if found[2] != name || !strings.HasPrefix(found[3], "`go run ./examples/"+name) {
			t.Errorf("the row of %s leads elsewhere: %s", name, found[0])
		}
		source := sources(t, name)
		for _, quote := range code.FindAllStringSubmatch(found[4], -1) {
			if !strings.Contains(source, quote[1]) {
				t.Errorf("%s has no line with %s", name, quote[1])
			}
		}
	}
	programs, err := filepath.Glob("*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range programs {
		if name := filepath.Dir(program); !told[name] {
			t.Errorf("%s has no row", name)
		}
	}
}

func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := filepath.Glob(filepath.Join(dir, "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range append(files, parts...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
