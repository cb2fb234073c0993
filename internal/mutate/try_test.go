package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// toy is a module with one safeguard, of which one half is in an embedded file.
var toy = map[string]string{
	"go.mod":    "module toy\n\ngo 1.26\n",
	"limit.txt": "10",
	"toy.go": `package toy

import (
	_ "embed"
	"strconv"
)

//go:embed limit.txt
var limit string

func May(n int) bool {
	max, err := strconv.Atoi(limit)
	return err == nil && n <= max
}
`,
	"toy_test.go": `package toy

import "testing"

func TestMay(t *testing.T) {
	t.Run("few", func(t *testing.T) {
		if !May(3) {
			t.Error("3 is few")
		}
	})
	t.Run("many", func(t *testing.T) {
		if May(30) {
			t.Error("30 is many")
		}
	})
}

func TestRed(t *testing.T) { t.Error("always") }
`,
}

func makeToy(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range toy {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("GOWORK", "off")
	return root
}

func TestTry(t *testing.T) {
	root := makeToy(t)
	lab := newLab(root, time.Minute)
	for name, test := range map[string]struct {
		mutant mutant
		want   verdict
		note   string // part of the note
	}{
		"caught": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: ".", run: "TestMay"}, caught, "TestMay/many"},
		"caught in an embedded file": {
			mutant{file: "limit.txt", edits: swap("10", "100"), in: ".", run: "TestMay"}, caught, "TestMay/many"},
		"caught by a dead process": {
			mutant{file: "toy.go", edits: swap(`"strconv"`, `"strconv"; "os"`, "return err", "os.Exit(3); return err"), in: ".", run: "TestMay"}, caught, "the test binary"},
		"survived": {
			mutant{file: "toy.go", edits: swap("n <= max", "n <= 2*max"), in: ".", run: "TestMay"}, survived, "TestMay"},
		"survived because of the pattern": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: ".", run: "TestMay/few"}, survived, "TestMay/few"},
		"does not compile": {
			mutant{file: "toy.go", edits: swap("n <= max", "n"), in: ".", run: "TestMay"}, invalid, "does not compile: "},
		"does not apply": {
			mutant{file: "toy.go", edits: swap("gone", "here"), in: ".", run: "TestMay"}, invalid, "0 times"},
		"red before": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: ".", run: "TestRed"}, invalid, "without the mutant it fails, too: TestRed"},
		"no test": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: ".", run: "TestGone"}, invalid, "there is no test TestGone"},
		"no part of a test": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: ".", run: "TestMay/gone"}, invalid, "there is no test TestMay/gone"},
		"no package": {
			mutant{file: "toy.go", edits: swap("n <= max", "true || n <= max"), in: "./gone", run: "TestMay"}, invalid, "without the mutant"},
	} {
		t.Run(name, func(t *testing.T) {
			if a := lab.try(t.Context(), test.mutant); a.verdict != test.want || !strings.Contains(a.note, test.note) {
				t.Errorf("%s: %s, want %s: %s", a.verdict, a.note, test.want, test.note)
			}
		})
	}
	t.Run("all", func(t *testing.T) { tryAllOf(t, lab) })
	for name, text := range toy {
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(data) != text {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

// tryAllOf shows that one survivor is enough to fail.
func tryAllOf(t *testing.T, lab *lab) {
	good := mutant{invariant: "I1", off: "ten times as many may", file: "limit.txt", edits: swap("10", "100"), in: ".", run: "TestMay"}
	bad := mutant{invariant: "I1", off: "twice as many may", file: "limit.txt", edits: swap("10", "20"), in: ".", run: "TestMay"}
	var out bytes.Buffer
	if code := tryAll(t.Context(), lab, []mutant{good}, &out); code != 0 || !strings.Contains(out.String(), "1 mutants: 1 caught") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	if code := tryAll(t.Context(), lab, []mutant{good, bad}, &out); code != 1 || !strings.Contains(out.String(), "2 mutants: 1 caught, 1 survived") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
