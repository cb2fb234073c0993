package main

import (
	"fmt"
	"go/format"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the module.
const root = "../.."

func scanned(t *testing.T, root string) *tree {
	t.Helper()
	source, err := scan(root)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func TestMutants_ApplyToTheTree(t *testing.T) {
	source := scanned(t, root)
	for _, m := range slices.Concat(mutants(), uncaught()) {
		files, err := m.apply(source)
		if err != nil {
			t.Errorf("%s: %v", m.name(), err)
			continue
		}
		for path, text := range files {
			if filepath.Ext(path) != ".go" {
				continue
			}
			if _, err := format.Source([]byte(text)); err != nil {
				t.Errorf("%s: %s: %v", m.name(), path, err)
			}
		}
	}
	for id, at := range source.markers {
		if !source.used[id] {
			t.Errorf("%s:%d: no mutant uses the marker %s", at.file, at.line, id)
		}
	}
}

func TestMutants_HaveUniqueNames(t *testing.T) {
	seen := make(map[string]bool)
	for _, m := range slices.Concat(mutants(), uncaught()) {
		if seen[m.name()] || m.id == "" || m.without == "" {
			t.Errorf("%s: the name is incomplete or not unique", m.name())
		}
		seen[m.name()] = true
	}
}

func TestMutants_TestsExist(t *testing.T) {
	known := make(map[string]string) // by packages: many mutants name the same
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

// testNames lists the tests of package patterns, one per line.
func testNames(t *testing.T, in string) string {
	t.Helper()
	var names strings.Builder
	for pattern := range strings.FieldsSeq(in) {
		dir, recursive := strings.CutSuffix(pattern, "/...")
		dir = filepath.Join(root, dir)
		err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && path != dir && !recursive:
				return filepath.SkipDir
			case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			for _, found := range testFunction.FindAllSubmatch(text, -1) {
				fmt.Fprintf(&names, "%s\n", found[1])
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return names.String()
}

func TestMutants_EveryInvariantHasOne(t *testing.T) {
	count := make(map[string]int)
	for _, m := range mutants() {
		count[m.invariant]++
	}
	for n := 1; n <= invariants; n++ {
		name := fmt.Sprintf("I%d", n)
		if count[name] == 0 {
			t.Errorf("%s has no mutant", name)
		}
		delete(count, name)
	}
	for name := range count {
		t.Errorf("%s is not an invariant", name)
	}
}

// example has a marker for each kind of node.
const example = `package example

// doc comment
//
//mutate:constant
const query = ` + "`SELECT 1`" + `

func short() int { return 1 } //mutate:short

func long(a, b, c bool, list []int) (err error) {
	if a || b && c { //mutate:if
		return
	} else if b { //mutate:else-if
		call(1, 2, 3)
	}
	// a comment
	//mutate:call
	call(1, 2, 3)
	switch {
	case a, b: //mutate:case-two
	case c: //mutate:case
		for i := 7; i < 9; i++ { //mutate:for
		}
	}
	x := pair{first: 1, second: 2} //mutate:literal
	return call(x,
		list[0], //mutate:argument
		nil)
}
`

func TestOperators(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	source := scanned(t, dir)
	for name, test := range map[string]struct {
		id   string
		op   operator
		want string // part of the mutated file without white space; "" for an error
	}{
		"drop":                        {"call", drop, "//mutate:call\nif false {\ncall(1,2,3)\n}"},
		"drop of a whole if":          {"if", drop, "if false {\nif a||b&&c"},
		"drop of a constant":          {"constant", drop, ""},
		"condFalse":                   {"if", condFalse, "if (a||b&&c) && false {"},
		"condFalse of else if":        {"else-if", condFalse, "} else if (b) && false {"},
		"condTrue of a case":          {"case", condTrue, "case (c) || true:"},
		"condTrue of two expressions": {"case-two", condTrue, ""},
		"and":                         {"for", and("a"), "(i<9) && a;"},
		"ignore in ||":                {"if", ignore(1), "if ((a) && false) || b&&c {"},
		"ignore of a chain":           {"if", ignore(2), "if a || ((b&&c) && false) {"},
		"ignore in a chain":           {"if", ignore(2, 2), "if a || b && ((c) || true) {"},
		"ignore without operand":      {"if", ignore(3), ""},
		"ignore of a single one":      {"else-if", ignore(1), ""},
		"returns in a function":       {"short", returns("2"), "{if false {\nreturn 1\n}\nreturn 2}"},
		"returns without return":      {"call", returns("2"), ""},
		"sets":                        {"literal", sets("pair{}"), "x := pair{} //"},
		"sets of a loop":              {"for", sets("0"), "for i := 0; i<9;"},
		"arg":                         {"call", arg(2, "0"), "call(1, 0, 3)\nswitch"},
		"arg first":                   {"call", arg(1, ""), "call(2, 3)\nswitch"},
		"arg last":                    {"call", arg(3, ""), "call(1, 2)\nswitch"},
		"arg missing":                 {"call", arg(4, ""), ""},
		"element value":               {"literal", element(2, "0"), "pair{first: 1, second: 0}"},
		"element removed":             {"literal", element(1, ""), "pair{second: 2}"},
		"element missing":             {"call", element(1, ""), ""},
		"before":                      {"call", before("now()"), "now()\ncall(1, 2, 3)\nswitch"},
		"after":                       {"call", after("now()"), "call(1, 2, 3)\nnow()\n\nswitch"},
		"swap":                        {"constant", swap("1", "2"), "`SELECT 2`"},
		"swap in the head only":       {"if", swap("return", "panic"), ""},
		"swap in an argument":         {"argument", swap("0", "1"), "list[1],"},
		"swap of two texts":           {"call", swap("c", "d"), "dall("},
		"swap without effect":         {"call", swap("call", "call"), ""},
		"all and at":                  {"call", all(drop, at("if", condTrue)), "if (a||b&&c) || true {"},
		"overlap":                     {"call", all(swap("1, 2", "0"), arg(2, "0")), ""},
		"no marker":                   {"gone", drop, ""},
		"no file":                     {"", inMigration("gone.sql", "a", "b"), ""},
	} {
		files, err := mutant{id: test.id, op: test.op}.apply(source)
		if test.want == "" {
			if err == nil {
				t.Errorf("%s: no error:\n%s", name, files["a.go"])
			}
			continue
		}
		if err != nil || !strings.Contains(squeeze(files["a.go"]), squeeze(test.want)) {
			t.Errorf("%s: want %q, got %v:\n%s", name, test.want, err, files["a.go"])
		}
	}
}

// squeeze removes white space.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

func TestScan_RejectsDuplicateMarkers(t *testing.T) {
	dir := t.TempDir()
	text := "package a\n\nvar a = 1 //mutate:same\nvar b = 2 //mutate:same\n"
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scan(dir); err == nil || !strings.Contains(err.Error(), "a.go:3 and a.go:4") {
		t.Errorf("got %v", err)
	}
}

func TestPick(t *testing.T) {
	source := &tree{root: t.TempDir(), markers: map[string]location{}, files: map[string]*file{}, used: map[string]bool{}}
	in := func(path string) operator {
		return func(*tree, string) ([]change, error) { return []change{{file: path}}, nil }
	}
	list := []mutant{{invariant: "I1", id: "x", without: "one", op: in("a.go")}, {invariant: "I2", id: "y", without: "two", op: in("b.go")}}
	for pattern, want := range map[string]int{"": 2, "I2": 1, `a\.go`: 1, "two": 1, "I": 2, " x:": 1} {
		if got, err := pick(source, list, pattern); err != nil || len(got) != want {
			t.Errorf("-run %q picks %d, %v; want %d", pattern, len(got), err, want)
		}
	}
	for _, pattern := range []string{"three", "("} {
		if got, err := pick(source, list, pattern); err == nil {
			t.Errorf("-run %q picks %v, want an error", pattern, got)
		}
	}
}
