package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// marker matches a marker comment. The scan looks at comments of Go files only: a migration must
// not change, not even by a comment, because its checksum is stored.
var marker = regexp.MustCompile(`//mutate:([a-z0-9]+(?:-[a-z0-9]+)*)`)

// tree is a source tree with its markers.
type tree struct {
	root    string
	markers map[string]location
	files   map[string]*file // by path, parsed when needed
	used    map[string]bool  // markers that an operator has looked up
}

// location is the file of a marker, relative to the root with slashes, and the line of the comment.
type location struct {
	file string
	line int
}

// file is a parsed Go file.
type file struct {
	path string
	text string
	fset *token.FileSet
	ast  *ast.File
}

// scan finds the markers below root. A marker that occurs twice is an error.
func scan(root string) (*tree, error) {
	t := &tree{root: root, markers: make(map[string]location), files: make(map[string]*file), used: make(map[string]bool)}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		return t.scanFile(path)
	})
	return t, err
}

func (t *tree) scanFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), "//mutate:") {
		return err
	}
	rel, err := filepath.Rel(t.root, path)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		for _, found := range marker.FindAllStringSubmatch(text, -1) {
			if other, ok := t.markers[found[1]]; ok {
				return fmt.Errorf("marker %s occurs twice: %s:%d and %s:%d", found[1], other.file, other.line, rel, line)
			}
			t.markers[found[1]] = location{rel, line}
		}
	}
	return nil
}

// read returns a file of the tree as text.
func (t *tree) read(path string) (string, error) {
	data, err := os.ReadFile(filepath.Join(t.root, filepath.FromSlash(path)))
	return string(data), err
}

func (t *tree) parse(path string) (*file, error) {
	if f := t.files[path]; f != nil {
		return f, nil
	}
	text, err := t.read(path)
	if err != nil {
		return nil, err
	}
	f := &file{path: path, text: text, fset: token.NewFileSet()}
	f.ast, err = parser.ParseFile(f.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	t.files[path] = f
	return f, nil
}

// target is the marked node of a file.
type target struct {
	*file
	node ast.Node
}

// find returns the node that a marker is for: the outermost statement, declaration or other node
// that begins on the line of the marker. A marker on a line of its own is for the line after its
// comment.
func (t *tree) find(id string) (target, error) {
	at, ok := t.markers[id]
	if !ok {
		return target{}, fmt.Errorf("there is no marker //mutate:%s", id)
	}
	t.used[id] = true
	f, err := t.parse(at.file)
	if err != nil {
		return target{}, err
	}
	line := f.lineOf(at)
	var found ast.Node
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n.(type) {
		case nil, *ast.Comment, *ast.CommentGroup:
			return false
		case *ast.File, *ast.BlockStmt:
			return true
		}
		if found == nil && f.fset.Position(n.Pos()).Line == line {
			found = n
		}
		return found == nil
	})
	if found == nil {
		return target{}, fmt.Errorf("marker %s: nothing begins at %s:%d", id, at.file, line)
	}
	return target{f, found}, nil
}

// lineOf returns the line of the code that a marker is for.
func (f *file) lineOf(at location) int {
	for _, group := range f.ast.Comments {
		first, last := f.fset.Position(group.Pos()), f.fset.Position(group.End())
		if first.Line > at.line || last.Line < at.line {
			continue
		}
		begin := f.fset.File(f.ast.Pos()).LineStart(first.Line)
		if strings.TrimSpace(f.text[f.offset(begin):first.Offset]) == "" {
			return last.Line + 1
		}
	}
	return at.line
}

func (f *file) offset(p token.Pos) int { return f.fset.Position(p).Offset }

// source returns the text between two positions.
func (f *file) source(from, to token.Pos) string { return f.text[f.offset(from):f.offset(to)] }

// fileOf returns the file of the first change of a mutant, or "?" if the mutant does not apply.
func (t *tree) fileOf(m mutant) string {
	changes, err := m.op(t, m.id)
	if err != nil || len(changes) == 0 {
		return "?"
	}
	return changes[0].file
}
