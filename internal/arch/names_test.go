package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// publicNames lists, for each public package, how many exported names and exported methods it may
// have. Names are package-level constants, variables, functions and types.
const publicNames = "testdata/public-names.txt"

// The public API as a whole.
const (
	maxPublicPackages = 35
	maxPublicNames    = 864
)

// A nameCount is the size of the API of one package.
type nameCount struct{ names, methods int }

// TestPublicNames_DoNotIncrease fails when a public package exports more than its entry allows.
// Export what a program writes or implements, and keep the rest below internal. If a new name is
// needed, raise the entry in the same commit; if names were removed, lower it.
func TestPublicNames_DoNotIncrease(t *testing.T) {
	text, err := os.ReadFile(publicNames)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := countPublicNames(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkNames(counts, string(text)) {
		t.Error(problem)
	}
	sum := 0
	for _, c := range counts {
		sum += c.names
	}
	if len(counts) > maxPublicPackages || sum > maxPublicNames {
		t.Errorf("%d exported names in %d public packages, at most %d in %d are allowed", sum, len(counts), maxPublicNames, maxPublicPackages)
	}
}

func TestCheckNames_FindsViolations(t *testing.T) {
	const source = "package p\n\nconst A, b = 1, 2\n\nvar C int\n\ntype (\n\tD[T any] struct{ E int }\n\tf struct{}\n)\n\nfunc G() {}\n\n" +
		"func (d *D[T]) H() {}\n\nfunc (d D[T]) i() {}\n\nfunc (f) J() {}\n"
	for name, test := range map[string]struct {
		file, table string
		want        string // part of the one problem; empty for none
	}{
		"equal":              {"graph/x.go", "graph 4 1\n", ""},
		"more names":         {"graph/x.go", "graph 3 1\n", "graph has 4 exported names and 1 exported methods; at most 3 and 1"},
		"more methods":       {"graph/x.go", "graph 4 0\n", "graph has 4 exported names and 1 exported methods; at most 4 and 0"},
		"fewer":              {"graph/x.go", "graph 5 1\n", ""},
		"no entry":           {"graph/x.go", "", "graph: this public package is not in"},
		"entry of no source": {"graph/x.go", "graph 4 1\ngate 2 2\n", "gate: there is no such public package"},
		"not a line":         {"graph/x.go", "graph 4 1\ngate\n", `"gate"`},
		"internal":           {"internal/graph/x.go", "", ""},
		"example":            {"examples/graph/x.go", "", ""},
		"a test":             {"graph/x_test.go", "", ""},
		"a program":          {"deploy/healthcheck/x.go", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := source
			if strings.HasPrefix(test.file, "deploy/") {
				text = strings.Replace(source, "package p", "package main", 1)
			}
			counts, err := countPublicNames(fstest.MapFS{test.file: {Data: []byte(text)}})
			if err != nil {
				t.Fatal(err)
			}
			problems := checkNames(counts, test.table)
			if test.want == "" && len(problems) != 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}

// countPublicNames counts the exported names of the packages that other modules can import and use,
// in all modules of the repository.
func countPublicNames(files fs.FS) (map[string]nameCount, error) {
	names, methods := make(map[string]map[string]bool), make(map[string]map[string]bool)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreGone(err)
		case entry.IsDir():
			if name != "." && (isIgnoredDir(entry.Name()) || isPrivate(name) || name == "bench" || name == "tools") {
				return fs.SkipDir
			}
			return nil
		case !isSource(entry.Name()):
			return nil
		}
		source, err := fs.ReadFile(files, name)
		if err != nil {
			return ignoreGone(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if file.Name.Name == "main" {
			return nil
		}
		dir := path.Dir(name)
		if names[dir] == nil {
			names[dir], methods[dir] = make(map[string]bool), make(map[string]bool)
		}
		for _, decl := range file.Decls {
			addNames(decl, names[dir], methods[dir])
		}
		return nil
	})
	counts := make(map[string]nameCount)
	for dir := range names {
		counts[dir] = nameCount{len(names[dir]), len(methods[dir])}
	}
	return counts, err
}

// addNames adds the exported names that a declaration declares.
func addNames(decl ast.Decl, names, methods map[string]bool) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			if id.IsExported() {
				names[id.Name] = true
			}
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		} else if receiver := receiverName(d); ast.IsExported(receiver) && d.Name.IsExported() {
			methods[receiver+"."+d.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				add(s.Name)
			case *ast.ValueSpec:
				add(s.Names...)
			}
		}
	}
}

// receiverName returns the name of the type that a method belongs to.
func receiverName(d *ast.FuncDecl) string {
	name := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// checkNames compares counts with a table that has a line "package names methods" for each package.
func checkNames(counts map[string]nameCount, table string) (problems []string) {
	entries := make(map[string]nameCount)
	for line := range strings.Lines(table) {
		var dir string
		var c nameCount
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscanf(line, "%s %d %d\n", &dir, &c.names, &c.methods); err != nil {
			problems = append(problems, fmt.Sprintf("%s: %q is not \"package names methods\"", publicNames, strings.TrimSpace(line)))
			continue
		}
		entries[dir] = c
	}
	for _, dir := range slices.Sorted(maps.Keys(counts)) {
		has := counts[dir]
		most, ok := entries[dir]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("%s: this public package is not in %s. Move it below internal, or add the line \"%s %d %d\"", dir, publicNames, dir, has.names, has.methods))
		case has.names > most.names || has.methods > most.methods:
			problems = append(problems, fmt.Sprintf("%s has %d exported names and %d exported methods; at most %d and %d are allowed by %s", dir, has.names, has.methods, most.names, most.methods, publicNames))
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(entries)) {
		if _, ok := counts[dir]; !ok {
			problems = append(problems, fmt.Sprintf("%s: there is no such public package; remove its line from %s", dir, publicNames))
		}
	}
	return problems
}
