package arch_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ?= does not change variables that make defines itself. Linter flags in AS, which is the
// assembler, made "make lint" fail with: non-flag "as".
func TestMakefile_SettingsDoNotShadowBuiltins(t *testing.T) {
	own := []string{"AR", "ARFLAGS", "AS", "CC", "CO", "COFLAGS", "CPP", "CTANGLE", "CWEAVE", "CXX", "FC", "GET", "LD", "LEX", "LINT", "M2C", "MAKE", "MAKEINFO",
		"OBJC", "PC", "RM", "SUFFIXES", "TANGLE", "TEX", "TEXI2DVI", "WEAVE", "YACC"}
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`(?m)^([A-Z0-9]+) *\?=`).FindAllSubmatch(text, -1)
	if len(settings) == 0 {
		t.Fatal("found no settings; the pattern of this test is wrong")
	}
	for _, setting := range settings {
		if slices.Contains(own, string(setting[1])) {
			t.Errorf("%s is a built-in variable of make; ?= does not change it", setting[1])
		}
	}
}

// Longer recipes are scripts in tools/.
func TestMakefile_RecipesAreShort(t *testing.T) {
	const most = 8
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target, lines := "", 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "\t") {
			target, lines = line, 0
			continue
		}
		if lines++; lines == most+1 {
			t.Errorf("the recipe of %q has more than %d lines", strings.TrimSpace(target), most)
		}
	}
}
