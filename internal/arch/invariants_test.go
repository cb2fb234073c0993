package arch

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// invariants is the number of invariants in docs/architecture.md: I1 to I17.
const invariants = 17

// invariantFloor lists the number of tests that each invariant has at least.
const invariantFloor = "testdata/invariant-tests.txt"

var invariantTest = regexp.MustCompile(`(?m)^func TestI(\d+)_\w+\(t \*testing\.T\)`)

// Every invariant has a test that carries its number, and the number of such tests does not fall.
func TestInvariants_EachHasItsTests(t *testing.T) {
	text, err := os.ReadFile(invariantFloor)
	if err != nil {
		t.Fatal(err)
	}
	counts, err := countInvariantTests(repository(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkInvariants(counts, string(text)) {
		t.Error(problem)
	}
}

func TestCheckInvariants_FindsViolations(t *testing.T) {
	var enough strings.Builder
	files := fstest.MapFS{"testdata/x_test.go": {Data: []byte("func TestI9_Ignored(t *testing.T) {}\n")}}
	for n := 1; n <= invariants; n++ {
		fmt.Fprintf(&enough, "I%d 1\n", n)
		name := fmt.Sprintf("p%d/x_test.go", n)
		files[name] = &fstest.MapFile{Data: fmt.Appendf(nil, "package p\n\nfunc TestI%d_Holds(t *testing.T) {}\n", n)}
	}
	for name, test := range map[string]struct {
		remove string
		floor  string
		want   string // part of the one problem; empty for none
	}{
		"complete":             {"", enough.String(), ""},
		"a test is gone":       {"p9/x_test.go", enough.String(), "I9 has 0 tests"},
		"fewer than the floor": {"", strings.Replace(enough.String(), "I4 1", "I4 2", 1), "I4 has 1 tests"},
		"no floor":             {"", strings.Replace(enough.String(), "I17 1\n", "", 1), "I17 is not in"},
		"not an invariant":     {"", enough.String() + "I18 1\n", `"I18 1"`},
		"not a line":           {"", enough.String() + "I3\n", `"I3"`},
	} {
		t.Run(name, func(t *testing.T) {
			tree := make(fstest.MapFS)
			for file, content := range files {
				if file != test.remove {
					tree[file] = content
				}
			}
			counts, err := countInvariantTests(tree)
			if err != nil {
				t.Fatal(err)
			}
			problems := checkInvariants(counts, test.floor)
			if test.want == "" && len(problems) != 0 || test.want != "" && (len(problems) != 1 || !strings.Contains(problems[0], test.want)) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}

// countInvariantTests counts the tests of all modules by the number of their invariant.
func countInvariantTests(files fs.FS) (map[int]int, error) {
	counts := make(map[int]int)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "node_modules" || base != "." && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for _, match := range invariantTest.FindAllSubmatch(text, -1) {
			n, err := strconv.Atoi(string(match[1]))
			if err != nil {
				return err
			}
			counts[n]++
		}
		return nil
	})
	return counts, err
}

// checkInvariants compares the counts with the floor, which has a line "I4 32" for each invariant.
func checkInvariants(counts map[int]int, floor string) (problems []string) {
	least := make(map[int]int)
	for line := range strings.Lines(floor) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		var n, count int
		if _, err := fmt.Sscanf(line, "I%d %d", &n, &count); err != nil || n < 1 || n > invariants || count < 1 {
			problems = append(problems, fmt.Sprintf("%s: invalid line %q", invariantFloor, line))
			continue
		}
		least[n] = count
	}
	for n := 1; n <= invariants; n++ {
		switch {
		case least[n] == 0:
			problems = append(problems, fmt.Sprintf("I%d is not in %s", n, invariantFloor))
		case counts[n] < least[n]:
			problems = append(problems, fmt.Sprintf("I%d has %d tests named TestI%d_…, fewer than the %d in %s", n, counts[n], n, least[n], invariantFloor))
		}
	}
	return problems
}
