package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// toy is a module with one safeguard. One half of it is in an embedded file.
var toy = map[string]string{
	"go.mod":    "module toy\n\ngo 1.26\n",
	"limit.sql": "10",
	"toy.go": `package toy

import (
	_ "embed"
	"os"
	"strconv"
)

//go:embed limit.sql
var limit string

var exit = os.Exit

func May(n int) bool {
	max, err := strconv.Atoi(limit)
	return err == nil && n <= max //mutate:toy-limit
}
`,
	"toy_test.go": `package toy

import "testing"

func TestMay(t *testing.T) {
	t.Run("below the limit", func(t *testing.T) {
		if !May(3) {
			t.Error("3 is refused")
		}
	})
	t.Run("above the limit", func(t *testing.T) {
		if May(30) {
			t.Error("30 is accepted")
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
	r := newRunner(scanned(t, root), time.Minute)
	for name, test := range map[string]struct {
		mutant mutant
		want   verdict
		note   string // part of the note
	}{
		"caught": {
			mutant{id: "toy-limit", op: or("true"), in: ".", run: "TestMay"}, caught, "TestMay/above_the_limit"},
		"caught in an embedded file": {
			mutant{id: "toy-limit", op: inMigration("limit.sql", "10", "100"), in: ".", run: "TestMay"}, caught, "TestMay/above_the_limit"},
		"caught by a process that exits": {
			mutant{id: "toy-limit", op: before("exit(3)"), in: ".", run: "TestMay"}, caught, "the test binary"},
		"survived": {
			mutant{id: "toy-limit", op: swap("<= max", "<= 2*max"), in: ".", run: "TestMay"}, survived, "TestMay"},
		"survived because of the pattern": {
			mutant{id: "toy-limit", op: or("true"), in: ".", run: "TestMay/below_the_limit"}, survived, "TestMay/below_the_limit"},
		"does not compile": {
			mutant{id: "toy-limit", op: swap("n <= max", "n"), in: ".", run: "TestMay"}, invalid, "does not compile: "},
		"does not apply": {
			mutant{id: "toy-limit", op: swap("gone", "here"), in: ".", run: "TestMay"}, invalid, "occurs 0 times"},
		"fails without the mutant": {
			mutant{id: "toy-limit", op: or("true"), in: ".", run: "TestRed"}, invalid, "fails without the mutant: TestRed"},
		"no test": {
			mutant{id: "toy-limit", op: or("true"), in: ".", run: "TestGone"}, invalid, "there is no test TestGone"},
		"no subtest": {
			mutant{id: "toy-limit", op: or("true"), in: ".", run: "TestMay/gone"}, invalid, "there is no test TestMay/gone"},
		"no package": {
			mutant{id: "toy-limit", op: or("true"), in: "./gone", run: "TestMay"}, invalid, "without the mutant"},
	} {
		t.Run(name, func(t *testing.T) {
			if a := r.try(t.Context(), test.mutant); a.verdict != test.want || !strings.Contains(a.note, test.note) {
				t.Errorf("%s: %s, want %s: %s", a.verdict, a.note, test.want, test.note)
			}
		})
	}
	t.Run("all", func(t *testing.T) { tryAllOf(t, r) })
	for name, text := range toy {
		if data, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(data) != text {
			t.Errorf("%s was changed: %v", name, err)
		}
	}
}

// tryAllOf checks that one survivor is enough for a failure.
func tryAllOf(t *testing.T, r *runner) {
	good := mutant{invariant: "I1", id: "good", without: "The limit is ten times as high.", op: inMigration("limit.sql", "10", "100"), in: ".", run: "TestMay"}
	bad := mutant{invariant: "I1", id: "bad", without: "The limit is twice as high.", op: inMigration("limit.sql", "10", "20"), in: ".", run: "TestMay"}
	var out bytes.Buffer
	if code := tryAll(t.Context(), r, []mutant{good}, &out); code != 0 || !strings.Contains(out.String(), "1 mutants: 1 caught") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
	if code := tryAll(t.Context(), r, []mutant{good, bad}, &out); code != 1 || !strings.Contains(out.String(), "2 mutants: 1 caught, 1 survived") {
		t.Errorf("exit code %d:\n%s", code, out.String())
	}
}
