package app

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/demo"
	"github.com/fermata-go/fermata/internal/serve"
)

// The commands and flags named in the documents exist. Command blocks can be typed as they are.
func TestDocs_CommandsParse(t *testing.T) {
	parser := model(t)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range fenced(string(text)) {
			for line := range strings.Lines(block.text) {
				if line, _, _ = strings.Cut(strings.TrimSpace(line), " #"); block.language != "sh" || !strings.HasPrefix(line, "fermata ") {
					continue
				}
				found++
				line, _, _ = strings.Cut(line, " | ") // the rest of the pipe is another program
				if _, err := parser.Parse(shellWords(line)[1:]); err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(page), line, err)
				}
			}
		}
		for _, match := range regexp.MustCompile("`(fermata [a-z][^`\n]*)`").FindAllStringSubmatch(string(text), -1) {
			found++
			named(t, parser.Model.Node, filepath.Base(page), match[1])
		}
	}
	if found < 100 {
		t.Errorf("only %d commands were found", found)
	}
}

// named finds a command and its flags; arguments may be omitted.
func named(t *testing.T, at *kong.Node, page, text string) {
	t.Helper()
	words := strings.Fields(text)[1:]
	for len(words) > 0 {
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == words[0] })
		if i < 0 {
			break
		}
		at, words = at.Children[i], words[1:]
	}
	if at.Parent == nil {
		t.Errorf("%s: %s: unknown command", page, text)
		return
	}
	for _, word := range words {
		name, ok := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		name, _, _ = strings.Cut(name, "=")
		if ok && !slices.ContainsFunc(slices.Concat(at.AllFlags(true)...), func(f *kong.Flag) bool { return f.Name == name }) {
			t.Errorf("%s: %s: unknown flag --%s", page, text, name)
		}
	}
}

// The demo's output can be copied to another terminal, also if the program is not on the path.
func TestDemo_PrintedCommandsParse(t *testing.T) {
	var out bytes.Buffer
	demo.Ready{URL: "http://127.0.0.1:8080", Token: "x"}.Announce(&serve.Program{Program: &cli.Program{Out: &out}}, ".fermata")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parser, typed := model(t), 0
	for line := range strings.Lines(out.String()) {
		command, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "  "+self+" ")
		if !ok {
			continue
		}
		typed++
		if _, err := parser.Parse(shellWords(command)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if typed != 2 {
		t.Errorf("%d commands can be typed in\n%s", typed, &out)
	}
}
