package web_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fermata-go/fermata/internal/web"
)

var (
	action    = regexp.MustCompile(`(?s){{.*?}}`)
	tag       = regexp.MustCompile(`(?s)<[^>]*>`)
	attribute = regexp.MustCompile(`(?s)\s(?:aria-label|title|placeholder|alt|value|data-text-[a-z]+)="([^"]*)"`)
	key       = regexp.MustCompile(`"([a-z]+(?:\.[a-zA-Z0-9_-]+)+)"`)
	keyboard  = regexp.MustCompile(`(?s)<kbd[^>]*>.*?</kbd>`)
)

func templateFiles(t *testing.T) map[string]string {
	t.Helper()
	files := make(map[string]string)
	for _, pattern := range []string{"templates/*.html", "templates/*/*.html", "views/*.html"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = string(text)
		}
	}
	if len(files) < 3 {
		t.Fatalf("%d templates found", len(files))
	}
	return files
}

// hasWord reports whether a text has a letter. Symbols need no translation.
func hasWord(text string) bool { return strings.ContainsFunc(text, unicode.IsLetter) }

// Every word in a template comes from the table of texts, so that it can be translated.
func TestTexts_TemplatesHaveNoWordsOfTheirOwn(t *testing.T) {
	for name, text := range templateFiles(t) {
		text = keyboard.ReplaceAllString(action.ReplaceAllString(text, ""), "")
		for _, match := range attribute.FindAllStringSubmatch(text, -1) {
			if hasWord(match[1]) && !strings.Contains(match[0], ` value=`) {
				t.Errorf("%s: hard-coded text in %s", name, strings.TrimSpace(match[0]))
			}
		}
		for _, line := range strings.Split(tag.ReplaceAllString(text, "\n"), "\n") {
			if line = strings.TrimSpace(strings.NewReplacer("&nbsp;", "", "&middot;", "", "&#34;", "").Replace(line)); hasWord(line) {
				t.Errorf("%s: hard-coded text %q", name, line)
			}
		}
	}
}

var verb = regexp.MustCompile(`%(?:\[\d+\])?[+#]?[a-z%]`)

// A text that is missing in a language, or that is given other values, would break its pages.
func TestTexts_LanguagesHaveTheSameKeysAndVerbs(t *testing.T) {
	english := web.Keys()
	for language, table := range web.Languages() {
		for key, text := range english {
			other, ok := table[key]
			switch {
			case !ok:
				t.Errorf("%s: the text %q is missing", language, key)
			case strings.TrimSpace(other) == "":
				t.Errorf("%s: the text %q is empty", language, key)
			case !slices.Equal(verb.FindAllString(text, -1), verb.FindAllString(other, -1)):
				t.Errorf("%s: %q has other values than %q", language, other, text)
			case slices.Contains([]string{"time.units", "time.months", "time.weekdays"}, key) && len(strings.Fields(text)) != len(strings.Fields(other)):
				t.Errorf("%s: %q has not as many words as %q", language, other, text)
			}
		}
		for key := range table {
			if _, ok := english[key]; !ok {
				t.Errorf("%s: the text %q is not in the English table", language, key)
			}
		}
	}
}

// Keys in templates and code exist, and every key is used.
func TestTexts_KeysAreKnownAndUsed(t *testing.T) {
	used := make(map[string]bool)
	all := templateFiles(t)
	var goFiles []string
	for _, pattern := range []string{"*.go", "*/*.go"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		goFiles = append(goFiles, names...)
	}
	for _, name := range goFiles {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "texts/") || strings.HasSuffix(name, "doc.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = string(text)
	}
	var prefixes []string // of keys that are built, such as "error." + key
	for name, text := range all {
		for _, match := range regexp.MustCompile(`"([a-z]+\.(?:[a-zA-Z0-9_-]+\.)*)"\s*\+|\(printf "([a-z]+\.(?:[a-zA-Z0-9_-]+\.)*)%`).FindAllStringSubmatch(text, -1) {
			prefixes = append(prefixes, match[1]+match[2])
		}
		for _, match := range regexp.MustCompile(`\btn? "([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if _, ok := web.Keys()[match[1]]; !ok && web.Keys()[match[1]+".other"] == "" {
				t.Errorf("%s: unknown key %q", name, match[1])
			}
		}
		for _, match := range key.FindAllStringSubmatch(text, -1) {
			used[match[1]], used[match[1]+".one"], used[match[1]+".other"] = true, true, true
		}
	}
next:
	for name := range web.Keys() {
		if used[name] {
			continue
		}
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) {
				continue next
			}
		}
		t.Errorf("the text %q is not used", name)
	}
}
