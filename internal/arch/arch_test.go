package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// repository returns the root of the working tree.
func repository(t *testing.T) fs.FS {
	t.Helper()
	root := os.DirFS(filepath.Join("..", ".."))
	mod, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("go.mod does not start with module %s", module)
	}
	return root
}

func TestImports_FollowTheRules(t *testing.T) {
	pkgs, err := load(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range check(pkgs) {
		t.Error(problem)
	}
}

func TestLayers_PointDownAndGiveReasons(t *testing.T) {
	var below []string
	for _, f := range layers {
		if slices.Contains(below, f.pkg) {
			t.Errorf("%s has two rows", f.pkg)
		}
		below = append(below, f.pkg)
		for _, pattern := range f.may {
			if pattern != anyPublic && pattern != support && pattern != anyPackage && !slices.Contains(below, pattern) {
				t.Errorf("%s may import %s, which is not a row before it", f.pkg, pattern)
			}
		}
		if f.why == "" {
			t.Errorf("layers: %s has no reason", f.pkg)
		}
	}
	for _, n := range dependencies {
		if _, ok := layerOf(n.pkg); !ok || n.why == "" {
			t.Errorf("dependencies: %s of %s has no layer or no reason", n.module, n.pkg)
		}
	}
	for _, s := range testSupports {
		if _, ok := layerOf(s.pkg); !ok || s.why == "" {
			t.Errorf("testSupports: %s has no layer or no reason", s.pkg)
		}
	}
}

func TestCheck_FindsViolations(t *testing.T) {
	for name, test := range map[string]struct {
		file, imports string
		want          string // part of the one expected problem; empty for none
	}{
		"down":                            {"graph/run.go", module + "/internal/store", ""},
		"down to the root package":        {"graph/run.go", module, ""},
		"down to a subtree":               {"fermata.go", module + "/internal/ident", ""},
		"up":                              {"internal/store/store.go", module + "/graph", "internal/store/store.go:3: internal/store must not import graph: the storage port"},
		"up to the root package":          {"internal/ident/ident.go", module, "internal/ident must not import .:"},
		"up out of internal":              {"internal/ident/ident.go", module + "/internal/store", "internal/ident must not import internal/store:"},
		"sideways":                        {"internal/store/sqlite/sqlite.go", module + "/internal/store/memory", "internal/store/sqlite must not import internal/store/memory:"},
		"a port does not allow its kind":  {"graph/run.go", module + "/store/sqlite", "graph must not import store/sqlite:"},
		"a name that only starts alike":   {"gate/gate.go", module + "/graphics", "gate must not import graphics:"},
		"another module of the workspace": {"graph/run.go", module + "/bench", "graph must not import bench:"},
		"the longest pattern counts":      {"provider/inproc/inproc.go", module + "/graph", ""},
		"the shorter pattern otherwise":   {"provider/claude/claude.go", module + "/graph", "provider/claude must not import graph:"},
		"example, public":                 {"examples/hello/main.go", module + "/store/sqlite", ""},
		"example, internal":               {"examples/hello/main.go", module + "/internal/ident", "examples/hello must not import internal/ident:"},
		"command":                         {"cmd/fermata/main.go", module + "/internal/ident", ""},
		"no row":                          {"misc/misc.go", "fmt", "misc: this package has no layer. Add it to layers"},
		"third party, needed":             {"internal/store/sqlite/sqlite.go", "modernc.org/sqlite/lib", ""},
		"third party, not needed":         {"graph/run.go", "modernc.org/sqlite", "graph must not import modernc.org/sqlite: importers of Fermata"},
		"third party, name starts alike":  {"internal/store/sqlite/sqlite.go", "modernc.org/sqlite3", "internal/store/sqlite must not import modernc.org/sqlite3:"},
		"cgo":                             {"internal/store/memory/memory.go", "C", "internal/store/memory must not import C:"},
		"testing":                         {"graph/run.go", "testing", "graph must not import testing: it is not a test"},
		"below testing":                   {"graph/run.go", "testing/synctest", "graph must not import testing/synctest:"},
		"testing in a suite":              {"internal/store/storetest/suite.go", "testing", ""},
		"a test":                          {"graph/run_test.go", module + "/store/memory", ""},
		"testdata":                        {"graph/testdata/x.go", module + "/internal/server", ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := "package p\n\nimport _ \"" + test.imports + "\"\n"
			pkgs, err := load(fstest.MapFS{test.file: {Data: []byte(source)}})
			if err != nil {
				t.Fatal(err)
			}
			problems := check(pkgs)
			if test.want == "" {
				if len(problems) != 0 {
					t.Errorf("unexpected problems: %q", problems)
				}
				return
			}
			if len(problems) != 1 || !strings.Contains(problems[0], test.want) {
				t.Errorf("problems = %q, want one with %q", problems, test.want)
			}
		})
	}
}

func TestLoad_SkipsOtherModules(t *testing.T) {
	pkgs, err := load(fstest.MapFS{
		"go.mod":        {Data: []byte("module " + module + "\n")},
		"fermata.go":    {Data: []byte("package fermata\n")},
		"bench/go.mod":  {Data: []byte("module " + module + "/bench\n")},
		"bench/main.go": {Data: []byte("package main\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(pkgs) != 1 || pkgs[0].dir != "." {
		t.Errorf("loaded %v, want the root package alone", pkgs)
	}
}
