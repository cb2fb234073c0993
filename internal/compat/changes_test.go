package compat

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A change is one row of changes.tsv: a member of responses that is added, removed or has another
// value on purpose since the recording.
type change struct {
	kind string
	path []string // the last keys of its path; * stands for one key
	// was and is are the values before and after; "" for any
	was, is string
}

// The kinds of changes.
const (
	changeAdded   = "added"
	changeRemoved = "removed"
	changeValue   = "value"
)

type changes []change

const missing = "<missing>"

// cover reports whether a difference is on purpose.
func (list changes) cover(where string, want, got any) bool {
	kind := changeValue
	switch {
	case want == missing:
		kind = changeAdded
	case got == missing:
		kind = changeRemoved
	}
	path := strings.Split(strings.TrimSuffix(where, " (length)"), ".")
	return slices.ContainsFunc(list, func(c change) bool {
		if c.kind != kind || len(c.path) > len(path) || c.was != "" && (want != any(c.was) || got != any(c.is)) {
			return false
		}
		for i, key := range path[len(path)-len(c.path):] {
			if c.path[i] != "*" && c.path[i] != key {
				return false
			}
		}
		return true
	})
}

func currentChanges(t *testing.T) (list changes) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "changes.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) == 2 {
			fields = append(fields, "", "")
		}
		if len(fields) != 4 || !slices.Contains([]string{changeAdded, changeRemoved, changeValue}, fields[0]) {
			t.Fatalf("changes.tsv: %q: want the kind and the path, and perhaps the values before and after, separated by tabs", line)
		}
		list = append(list, change{fields[0], strings.Split(fields[1], "."), fields[2], fields[3]})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestChanges_CoverOnlyWhatIsListed(t *testing.T) {
	list := changes{{changeAdded, []string{"answer", "at"}, "", ""}, {changeValue, []string{"items", "*", "by"}, "", ""}, {changeValue, []string{"status"}, "failed", "expired"}}
	for _, test := range []struct {
		where     string
		want, got any
		covered   bool
	}{
		{"items.0.answer.at", missing, "t", true},
		{"items.0.answer.at", "t", missing, false},
		{"items.0.answer.at", "t", "u", false},
		{"at", missing, "t", false},
		{"items.4.by", "eve", "ana, eve", true},
		{"items.4.5.by", "eve", "ana, eve", false},
		{"items.4.status", "failed", "expired", true},
		{"items.4.status", "failed", "completed", false},
		{"items.4.status", "waiting", "expired", false},
	} {
		if got := list.cover(test.where, test.want, test.got); got != test.covered {
			t.Errorf("%s: covered %v", test.where, got)
		}
	}
}
