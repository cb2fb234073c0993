package authn

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	pageText = regexp.MustCompile(`\bT[( ]"([^"]+)"`)
	fmtVerb  = regexp.MustCompile(`%[a-z]`)
)

// Every text of the sign-in pages has a translation with the same values.
func TestSignInPages_TextsAreTranslated(t *testing.T) {
	found := 0
	for _, file := range []string{"signin_page.go", "passkey_pages.go", "pages/layout.html"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range pageText.FindAllStringSubmatch(string(source), -1) {
			found++
			if german[match[1]] == "" {
				t.Errorf("%s: %q has no German text", file, match[1])
			}
		}
	}
	if found < 20 {
		t.Errorf("%d texts found", found)
	}
	for english, other := range german {
		if !slices.Equal(fmtVerb.FindAllString(english, -1), fmtVerb.FindAllString(other, -1)) || strings.TrimSpace(other) == "" {
			t.Errorf("%q has other values than %q", other, english)
		}
	}
}
