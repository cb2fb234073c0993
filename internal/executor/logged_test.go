package executor_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Operators look up ids from log lines, and every lookup needs the account. Regression: the log
// line of a parked run did not contain its account.
func TestLog_LinesAboutARunContainTheAccount(t *testing.T) {
	files, err := filepath.Glob("*.go")
	inner, innerErr := filepath.Glob("*/*.go")
	if err := errors.Join(err, innerErr); err != nil {
		t.Fatal(err)
	}
	files = append(files, inner...)
	about, lines := regexp.MustCompile(`Log\.\w+\("[^"]+".* "(run|request|interrupt|notice|grant)", `), 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(source)) {
			if !about.MatchString(line) {
				continue
			}
			if lines++; !strings.Contains(line, `"account", `) {
				t.Errorf("%s: no account in: %s", file, strings.TrimSpace(line))
			}
		}
	}
	if lines < 10 {
		t.Errorf("found %d such lines, want at least 10: the pattern of this test is outdated", lines)
	}
}
