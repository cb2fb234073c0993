package arch_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// What make says by itself is not changed by ?=: the flags of the linters were called AS, which is the assembler, and make lint failed with: non-flag "as".
func TestMakefile_SettingsDoNotShadowBuiltins(t *testing.T) {
	own := []string{"AR", "ARFLAGS", "AS", "CC", "CO", "COFLAGS", "CPP", "CTANGLE", "CWEAVE", "CXX", "FC", "GET", "LD", "LEX", "LINT", "M2C", "MAKE", "MAKEINFO",
		"OBJC", "PC", "RM", "SUFFIXES", "TANGLE", "TEX", "TEXI2DVI", "WEAVE", "YACC"}
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`(?m)^([A-Z0-9]+) *\?=`).FindAllSubmatch(text, -1)
	if len(settings) == 0 {
		t.Fatal("there are no settings; this test looks for something else")
	}
	for _, setting := range settings {
		if slices.Contains(own, string(setting[1])) {
			t.Errorf("%s is one of make's own variables: ?= leaves it as it is", setting[1])
		}
	}
}
