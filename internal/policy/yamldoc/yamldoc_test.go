package yamldoc_test

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/policy/yamldoc"
)

func TestNearest(t *testing.T) {
	known := []string{"groups", "deadline", "on_timeout", "route", "min_auth"}
	for word, want := range map[string]string{
		"group": "groups", "gruops": "groups", "dedline": "deadline", "onTimeout": "on_timeout", "Route": "route", "min-auth": "min_auth",
		"xyzzy": "", "": "", "approval": "",
	} {
		if got := yamldoc.Nearest(word, known); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestSuggest_ListsAllWhereNothingIsNear(t *testing.T) {
	if got := yamldoc.Suggest("xyzzy", []string{"b", "aaaa"}); got != "; known: aaaa, b" {
		t.Error(got)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"90m": 90 * time.Minute, "24h": 24 * time.Hour, "30d": 720 * time.Hour, "0s": 0, "0": 0, "1h30m": 90 * time.Minute} {
		if got, err := yamldoc.ParseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "soon", "-1h", "1.5d", "99999d", "-3d"} {
		if got, err := yamldoc.ParseDuration(text); err == nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// Scalars stay as written. Rules do not use YAML's implicit booleans and numbers.
func TestNode_TextIsVerbatim(t *testing.T) {
	r := yamldoc.Reader{Report: func(line int, text string) { t.Errorf("%d: %s", line, text) }}
	top := r.Document([]byte("a: on\nb: 1.10\nc: 0x10\nd: 2026-11-14\ne: |\n  two\n  lines\n")).Map("a", "b", "c", "d", "e")
	for name, want := range map[string]string{"a": "on", "b": "1.10", "c": "0x10", "d": "2026-11-14", "e": "two\nlines\n"} {
		if got := top[name].Text(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if top["d"].TextLine() != 4 || top["e"].Line() != 5 || top["e"].TextLine() != 6 {
		t.Error("wrong line numbers")
	}
}
