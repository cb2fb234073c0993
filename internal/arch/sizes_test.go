package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// The limits of a package and of a type, without tests.
const (
	maxPackageLines = 4000
	maxMethods      = 60
)

// largeParts lists the packages and types that may be larger, with the reason.
var largeParts = map[string]string{
	"graph":                    "to be split into drawing, validation and engine",
	"internal/desk":            "to be split: routes can leave it",
	"internal/store/storetest": "to be split into the suites of runs, documents and audit",

	"client.Client":                 "one method for each operation of the API",
	"graph.instance":                "its methods carry the type parameters of the graph",
	"internal/desk.update":          "commands share one unit of change; most methods are helpers of one command",
	"internal/slackfake.Slack":      "one method for each method of the Slack API that it imitates",
	"internal/store/postgres.Store": "implements the storage port",
	"internal/store/sqlite.Store":   "implements the storage port",
}

func TestSizes_PackagesAndTypesStayBelowTheLimits(t *testing.T) {
	problems, err := checkSizes(repository(t), largeParts)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

func TestCheckSizes_FindsViolations(t *testing.T) {
	lines := func(n int) string { return "package p\n" + strings.Repeat("\n", n-1) }
	methods := func(receiver string, n int) string {
		var b strings.Builder
		b.WriteString("package p\n")
		for i := range n {
			fmt.Fprintf(&b, "func (%s) m%d() {}\n", receiver, i)
		}
		return b.String()
	}
	for name, test := range map[string]struct {
		files map[string]string
		large map[string]string
		want  string // part of the one problem; empty for none
	}{
		"a large package":  {map[string]string{"a/x.go": lines(2000), "a/y.go": lines(2001)}, nil, "a: has 4001 lines, more than 4000"},
		"just small":       {map[string]string{"a/x.go": lines(2000), "a/y.go": lines(2000), "a/x_test.go": lines(9)}, nil, ""},
		"of other folders": {map[string]string{"a/x.go": lines(4000), "a/b/y.go": lines(4000)}, nil, ""},
		"a large type":     {map[string]string{"a/x.go": methods("t *T", 30), "a/y.go": methods("T", 31)}, nil, "a.T: has 61 methods, more than 60"},
		"a generic type":   {map[string]string{"a/x.go": methods("t *T[A, B]", 61)}, nil, "a.T: has 61 methods"},
		"just small, type": {map[string]string{"a/x.go": methods("t T", 60)}, nil, ""},
		"an exception":     {map[string]string{"a/x.go": methods("t T", 61)}, map[string]string{"a.T": "why"}, ""},
		"of nothing":       {map[string]string{"a/x.go": lines(1)}, map[string]string{"a": "why"}, "a: is below the limits: remove the exception"},
		"without a reason": {map[string]string{"a/x.go": lines(4001)}, map[string]string{"a": ""}, "a: the exception has no reason"},
	} {
		files := fstest.MapFS{}
		for file, text := range test.files {
			files[file] = &fstest.MapFile{Data: []byte(text)}
		}
		problems, err := checkSizes(files, test.large)
		if err != nil {
			t.Fatal(err)
		}
		if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)) {
			t.Errorf("%s: %q, want %q", name, problems, test.want)
		}
	}
}

// checkSizes returns the packages and types that are larger than the limits and that large does not
// list, and the entries of large that are not needed.
func checkSizes(root fs.FS, large map[string]string) (problems []string, err error) {
	lines, methods, err := countSizes(root)
	if err != nil {
		return nil, err
	}
	found := make(map[string]string)
	for name, n := range lines {
		if n > maxPackageLines {
			found[name] = fmt.Sprintf("has %d lines, more than %d", n, maxPackageLines)
		}
	}
	for name, n := range methods {
		if n > maxMethods {
			found[name] = fmt.Sprintf("has %d methods, more than %d", n, maxMethods)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if reason, listed := large[name]; !listed {
			problems = append(problems, name+": "+found[name])
		} else if reason == "" {
			problems = append(problems, name+": the exception has no reason")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(large)) {
		if found[name] == "" {
			problems = append(problems, name+": is below the limits: remove the exception")
		}
	}
	return problems, nil
}

// countSizes counts the lines of packages and the methods of types, without tests and without other
// modules.
func countSizes(root fs.FS) (lines, methods map[string]int, err error) {
	lines, methods = make(map[string]int), make(map[string]int)
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return ignoreGone(err)
		case entry.IsDir() && name != "." && (isIgnoredDir(entry.Name()) || isModule(root, name)):
			return fs.SkipDir
		case entry.IsDir() || !isSource(entry.Name()):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return ignoreGone(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := path.Dir(name)
		lines[dir] += bytes.Count(text, []byte("\n"))
		for _, decl := range file.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Recv != nil {
				methods[dir+"."+receiverName(method)]++
			}
		}
		return nil
	})
	return lines, methods, err
}
