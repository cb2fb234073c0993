package arch

import (
	"cmp"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A pkg is one directory of this module with the imports of its non-test files.
type pkg struct {
	dir     string // "." for the root
	imports []imported
}

// An imported is one import and its position.
type imported struct {
	path string
	pos  string // file:line
}

// load reads the imports of every package below root. It ignores build constraints, because the
// rules apply on every platform. Directories with their own go.mod are other modules.
func load(root fs.FS) ([]pkg, error) {
	byDir := map[string]*pkg{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		if entry.IsDir() {
			if name != "." && (isIgnoredDir(entry.Name()) || isModule(root, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if !isSource(entry.Name()) {
			return nil
		}
		imports, err := readImports(root, name)
		if err != nil {
			return ignoreGone(err)
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &pkg{dir: dir}
		}
		byDir[dir].imports = append(byDir[dir].imports, imports...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	for _, p := range byDir {
		pkgs = append(pkgs, *p)
	}
	slices.SortFunc(pkgs, func(a, b pkg) int { return cmp.Compare(a.dir, b.dir) })
	return pkgs, nil
}

func readImports(root fs.FS, name string) ([]imported, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	var imports []imported
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		line := files.Position(spec.Pos()).Line
		imports = append(imports, imported{path: importPath, pos: fmt.Sprintf("%s:%d", name, line)})
	}
	return imports, nil
}

// isIgnoredDir follows the go command, which ignores these directories.
func isIgnoredDir(base string) bool {
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") ||
		base == "testdata" || base == "vendor" || base == "node_modules"
}

func isModule(root fs.FS, dir string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func isSource(base string) bool {
	return strings.HasSuffix(base, ".go") && !strings.HasSuffix(base, "_test.go")
}

// ignoreGone ignores files that disappear during the walk; other tests may be cleaning up.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// check returns one message for each violation of the rules.
func check(pkgs []pkg) []string {
	var problems []string
	for _, p := range pkgs {
		rule, ok := layerOf(p.dir)
		if !ok {
			problems = append(problems, fmt.Sprintf(
				"%s: this package has no layer. Add it to layers in internal/arch/rules_test.go, with what it may import and the reason.", p.dir))
			continue
		}
		for _, i := range p.imports {
			if problem := checkImport(p.dir, rule, i.path); problem != "" {
				problems = append(problems, i.pos+": "+problem)
			}
		}
	}
	return problems
}

func checkImport(dir string, rule layer, importPath string) string {
	if target, ok := inModule(importPath); ok {
		if mayImport(rule, target) {
			return ""
		}
		return fmt.Sprintf("%s must not import %s: %s. It may import %s. Imports point down only.",
			dir, target, rule.why, strings.Join(rule.may, ", "))
	}
	if isThirdParty(importPath) {
		return checkThirdParty(dir, importPath)
	}
	if isTesting(importPath) && !mayTest(dir) {
		return fmt.Sprintf("%s must not import %s: it is not a test, and a program that links it would carry test flags and helpers. "+
			"A package that supports tests is listed in testSupports in internal/arch/rules_test.go, with the reason.", dir, importPath)
	}
	return ""
}

func checkThirdParty(dir, importPath string) string {
	var allowed []string
	for _, n := range dependencies {
		if !covers(n.pkg, dir) {
			continue
		}
		if importPath == n.module || strings.HasPrefix(importPath, n.module+"/") {
			return ""
		}
		allowed = append(allowed, n.module)
	}
	if len(allowed) == 0 {
		allowed = []string{"the standard library alone"}
	}
	return fmt.Sprintf("%s must not import %s: importers of Fermata also get its dependencies.  "+
		"This package may use %s. If it needs this module, add it to dependencies in internal/arch/rules_test.go, with the reason.",
		dir, importPath, strings.Join(allowed, ", "))
}

// layerOf returns the row with the longest pattern that covers dir. An exact match wins.
func layerOf(dir string) (found layer, ok bool) {
	for _, f := range layers {
		if f.pkg == dir {
			return f, true
		}
		if covers(f.pkg, dir) && (!ok || len(f.pkg) > len(found.pkg)) {
			found, ok = f, true
		}
	}
	return found, ok
}

func mayImport(rule layer, target string) bool {
	return slices.ContainsFunc(rule.may, func(pattern string) bool {
		switch pattern {
		case anyPublic:
			return !isPrivate(target)
		case support:
			row, _ := layerOf(target)
			return row.pkg == "internal/..."
		}
		return covers(pattern, target)
	})
}

// isPrivate reports whether the package is not meant to be imported by other modules.
func isPrivate(target string) bool {
	segments := strings.Split(target, "/")
	return slices.Contains(segments, "internal") || segments[0] == "cmd" || segments[0] == "examples"
}

func mayTest(dir string) bool {
	return slices.ContainsFunc(testSupports, func(s testSupport) bool { return covers(s.pkg, dir) })
}

// covers reports whether pattern matches the package: exactly, or with "/..." also everything
// below.
func covers(pattern, target string) bool {
	if pattern == anyPackage {
		return true
	}
	if prefix, subtree := strings.CutSuffix(pattern, "/..."); subtree {
		return target == prefix || strings.HasPrefix(target, prefix+"/")
	}
	return pattern == target
}

func inModule(importPath string) (target string, ok bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// isThirdParty follows the go command: the first element of an import path outside the standard
// library has a dot. Cgo counts as third-party, because it prevents a static binary.
func isThirdParty(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".") || importPath == "C"
}

func isTesting(importPath string) bool {
	return importPath == "testing" || strings.HasPrefix(importPath, "testing/")
}
