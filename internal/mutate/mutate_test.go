package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tree is the root of the module.
const tree = "../.."

func TestMutants_ApplyToTheTree(t *testing.T) {
	for _, m := range slices.Concat(mutants(), uncaught()) {
		text, err := m.apply(tree)
		if err != nil {
			t.Errorf("%s: %v: the safeguard has moved or is gone; its mutant has to follow", m.name(), err)
			continue
		}
		if filepath.Ext(m.file) != ".go" {
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: %v", m.name(), err)
		}
	}
}

func TestMutants_HaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range slices.Concat(mutants(), uncaught()) {
		if seen[m.name()] || m.off == "" {
			t.Errorf("%s: there is another one, or nothing said", m.name())
		}
		seen[m.name()] = true
	}
}

func TestMutants_TheirTestsExist(t *testing.T) {
	known := make(map[string]string) // by packages: many mutants have the same, and their files are long
	for _, m := range slices.Concat(mutants(), uncaught()) {
		names, ok := known[m.in]
		if !ok {
			names = testNames(t, m.in)
			known[m.in] = names
		}
		for alternative := range strings.SplitSeq(m.run, "|") {
			function, _, _ := strings.Cut(alternative, "/")
			pattern, err := regexp.Compile(function)
			if err != nil || function == "" {
				t.Errorf("%s: the pattern %q: %v", m.name(), m.run, err)
				continue
			}
			if !strings.Contains(names, "\n") || !pattern.MatchString(names) {
				t.Errorf("%s: there is no test %s in %s", m.name(), function, m.in)
			}
		}
	}
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)

// testNames lists the tests of packages, one per line.
func testNames(t *testing.T, in string) string {
	t.Helper()
	var names strings.Builder
	for dir := range strings.FieldsSeq(in) {
		files, err := filepath.Glob(filepath.Join(tree, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range testFunction.FindAllSubmatch(text, -1) {
				fmt.Fprintf(&names, "%s\n", found[1])
			}
		}
	}
	return names.String()
}

func TestMutants_EveryInvariantHasOneNowOrLater(t *testing.T) {
	count := make(map[string]int)
	for _, m := range mutants() {
		count[m.invariant]++
	}
	for n := 1; n <= invariants; n++ {
		name := fmt.Sprintf("I%d", n)
		why, isLater := later[name]
		switch {
		case isLater && why == "":
			t.Errorf("%s is kept later, but nobody says by whom", name)
		case isLater && count[name] > 0:
			t.Errorf("%s has mutants and is still said to be kept later", name)
		case !isLater && count[name] == 0:
			t.Errorf("%s has no mutant: which safeguard keeps it, and would a test notice if it were off?", name)
		}
		delete(count, name)
	}
	for name := range count {
		t.Errorf("%s is no invariant", name)
	}
}

func TestPick(t *testing.T) {
	all := []mutant{{invariant: "I1", file: "a.go", off: "one"}, {invariant: "I2", file: "b.go", off: "two"}}
	for pattern, want := range map[string]int{"": 2, "I2": 1, `a\.go`: 1, "two": 1, "I": 2} {
		if got, err := pick(append([]mutant(nil), all...), pattern); err != nil || len(got) != want {
			t.Errorf("-run %q picks %d, %v; want %d", pattern, len(got), err, want)
		}
	}
	for _, pattern := range []string{"three", "("} {
		if got, err := pick(append([]mutant(nil), all...), pattern); err == nil {
			t.Errorf("-run %q picks %v, want an error", pattern, got)
		}
	}
}

func TestApply_WantsTheTextOnce(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		edits []edit
		want  string // "" for an error
	}{
		"once":        {swap("one", "1"), "1 two two"},
		"two edits":   {swap("one", "1", "two two", "2"), "1 2"},
		"twice":       {swap("two", "2"), ""},
		"never":       {swap("three", "3"), ""},
		"same":        {swap("one", "one"), ""},
		"nothing":     {nil, ""},
		"second gone": {swap("one", "1", "three", "3"), ""},
	} {
		if got, err := (mutant{file: "a.go", edits: test.edits}).apply(root); got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, test.want)
		}
	}
	if _, err := (mutant{file: "b.go", edits: swap("one", "1")}).apply(root); err == nil {
		t.Error("a file that is not there was mutated")
	}
}
