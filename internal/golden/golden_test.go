package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a testing.TB that records its errors.
type recorder struct {
	testing.TB
	said string
}

func (e *recorder) Errorf(format string, args ...any) { e.said = fmt.Sprintf(format, args...) }

func TestCompare_NamesTheLineThatDiffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("one\ntwo\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		"one\ntwo\n":        "",
		"one\n2\n":          ":2 was\n\ttwo\nand is\n\t2\n",
		"one\n":             ":2 was\n\ttwo\nand is\n\t\n",
		"one\ntwo":          "file:2 was",
		"":                  ":1 was\n\tone\n",
		"one\ntwo\nthree\n": ":3 was\n\t\nand is\n\tthree\n",
	} {
		e := recorder{TB: t}
		Compare(&e, path, got)
		if (e.said == "") != (want == "") || !strings.Contains(e.said, want) {
			t.Errorf("%q: %q, want %q", got, e.said, want)
		}
	}
	e := recorder{TB: t}
	if CompareJSON(&e, path, `{"a":1}`, "\t"); !strings.Contains(e.said, "and is\n\t{\n") {
		t.Errorf("JSON: %q", e.said)
	}
}
