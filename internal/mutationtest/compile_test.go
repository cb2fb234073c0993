package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// compiler type-checks packages of the module with one file replaced. Imports come from the export
// data of go list.
type compiler struct {
	fset     *token.FileSet
	imports  types.Importer
	packages map[string]listed    // by directory relative to the root
	files    map[string]*ast.File // unchanged files, by path
}

// listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	c := &compiler{fset: token.NewFileSet(), packages: make(map[string]listed), files: make(map[string]*ast.File)}
	exports := make(map[string]string)
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if dir, err := filepath.Rel(base, p.Dir); err == nil {
			c.packages[filepath.ToSlash(dir)] = p
		}
	}
	c.imports = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check type-checks the package of a file that has another text.
func (c *compiler) check(path, text string) error {
	p := c.packages[filepath.ToSlash(filepath.Dir(path))]
	var files []*ast.File
	for _, name := range p.GoFiles {
		full := filepath.Join(p.Dir, name)
		f := c.files[full]
		var err error
		switch {
		case name == filepath.Base(path):
			f, err = parser.ParseFile(c.fset, path, text, parser.SkipObjectResolution)
		case f == nil:
			f, err = parser.ParseFile(c.fset, full, nil, parser.SkipObjectResolution)
			c.files[full] = f
		}
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	_, err := (&types.Config{Importer: c.imports}).Check(p.ImportPath, c.fset, files, nil)
	return err
}

// TestMutants_Compile finds operators whose code names identifiers that no longer exist.
func TestMutants_Compile(t *testing.T) {
	if testing.Short() {
		t.Skip("it type-checks a package for each mutant")
	}
	source, c := scanned(t, root), newCompiler(t)
	for _, m := range slices.Concat(mutants(), uncaught()) {
		files, err := m.apply(source)
		if err != nil {
			continue // see TestMutants_ApplyToTheTree
		}
		for path, text := range files {
			if filepath.Ext(path) != ".go" {
				continue
			}
			if err := c.check(path, text); err != nil {
				t.Errorf("%s: %v", m.name(), err)
			}
		}
	}
}
