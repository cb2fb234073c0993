package migration

import (
	"errors"
	"testing"
	"testing/fstest"
)

func TestNew_IgnoresLineEndings(t *testing.T) {
	if unix, dos := New("x", "a\nb\n"), New("x", "a\r\nb\r\n"); unix != dos {
		t.Errorf("%+v and %+v", unix, dos)
	}
}

func TestRead_OrdersByNumber(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	steps, err := Read(fstest.MapFS{"m/0002_b.sql": file("two"), "m/0001_a.sql": file("one"), "other": file("")}, "m")
	if err != nil || len(steps) != 2 || steps[0].Name != "0001_a.sql" || steps[1].Script != "two" {
		t.Errorf("%+v, %v", steps, err)
	}
	if steps, err := Read(fstest.MapFS{"m/0001_a.sql": file(""), "m/0003_c.sql": file("")}, "m"); err == nil {
		t.Errorf("a gap: %+v", steps)
	}
}

func TestCompare(t *testing.T) {
	steps := []Step{New("0001_a.sql", "one"), New("0002_b.sql", "two")}
	for _, test := range []struct {
		name             string
		applied, version int
		checksum         string
		want             error
	}{
		{"the first", 0, 1, steps[0].Checksum, nil},
		{"the next", 1, 2, steps[1].Checksum, nil},
		{"another text", 1, 2, steps[0].Checksum, ErrDrift},
		{"one is missing", 0, 2, steps[1].Checksum, ErrDrift},
		{"one that is not known here", 2, 3, "", ErrNewer},
	} {
		if err := Compare(steps, test.applied, test.version, "name", test.checksum); !errors.Is(err, test.want) {
			t.Errorf("%s: %v; want %v", test.name, err, test.want)
		}
	}
}
