package executor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Operators are woken by a log line, and an id alone leads nowhere: whatever they look it up with wants the account first. A run was parked, and its
// line did not say whose it was.
func TestLog_WhatIsAboutARunSaysWhose(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
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
				t.Errorf("%s: %s", file, strings.TrimSpace(line))
			}
		}
	}
	if lines < 10 {
		t.Errorf("there are %d such lines; this test looks for something else", lines)
	}
}
