// Package golden compares test results with reviewed files. go test ./the/package -update rewrites
// the files.
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

// Update is set by the flag -update.
var Update = flag.Bool("update", false, "rewrite the golden files")

// Compare reports an error if got differs from the file.
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
	t.Errorf("%s:%d was\n\t%s\nand is\n\t%s\nIf this is intended, run go test -update and review the difference", path, n+1, was[n], is[n])
}

// CompareJSON is Compare for compact JSON; it indents both sides. The order of members matters.
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
