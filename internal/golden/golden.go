// Package golden compares what a test got with a file that somebody has looked at and found good. go test ./the/package -update writes such
// files anew.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Update says that the test was called with -update.
var Update = flag.Bool("update", false, "write the golden files anew")

// Compare wants the file to be what the test got.
func Compare[T ~string | ~[]byte](t testing.TB, path string, got T) {
	t.Helper()
	if *Update {
		write(t, path, []byte(got))
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == string(got) {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	n := 0
	for n < min(len(was), len(is))-1 && was[n] == is[n] {
		n++
	}
	t.Errorf("%s:%d was\n\t%s\nand is\n\t%s\nIf that is right: go test -update, and look at the difference", path, n+1, was[n], is[n])
}

// CompareJSON is Compare for JSON that was not written for people. The order of its members counts.
func CompareJSON[T ~string | ~[]byte](t testing.TB, path string, got T, indent string) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace([]byte(got)), "", indent); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	Compare(t, path, indented.Bytes())
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}
