package arch

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The ratchet: the numbers may fall, and a change that lowers one lowers it here. They never rise.
const (
	maxPhrasesInGo       = 100 // flagged lines of Go comments and string literals
	maxPhrasesInMarkdown = 7   // flagged lines of Markdown
	maxPhrasesElsewhere  = 2   // flagged lines of pages, styles, scripts, settings and the Makefile
	maxWideComments      = 5   // Go comment lines wider than wrapAt, tabs counted as four columns; outputs of examples
	wrapAt               = 100
)

// phrase is a wording that the style guide asks to avoid.
type phrase struct {
	pattern *regexp.Regexp
	// except, if set, is tried on the text from the match on: some uses are plain English.
	except *regexp.Regexp
	// notAfter, if set, may not be directly before the match.
	notAfter string
	instead  string
}

var phrases = []phrase{
	{pattern: phraseRE(`\b(whoever|somebody|nobody|everybody|those who|who(?:ever)? (?:has|is|was|said|asks|waits|took|reads|looks))\b`), instead: "name the component or the role"},
	{pattern: phraseRE(`\bis (?:no|none)\b`), except: phraseRE(`^is (?:no|none) (?:longer|more|less|later|earlier|op|worse|better|need|way|reason|point)`), notAfter: "there ", instead: `write "is not a"`},
	{pattern: regexp.MustCompile(`(?:^\s*|[.]\s|//\s*|#\s*)What (?:is|was|has|can|may|only|others|runs|people|the|a|an)\b`), except: regexp.MustCompile(`^[^.]*\?`), instead: "start with the subject"},
	{pattern: phraseRE(`\b(?:came|comes|come) to (?:rest|nothing|it|an end)\b|\bwhat .{0,30} came to\b`), instead: "write returned, ended or result"},
	{pattern: phraseRE(`\b(?:a|the|their|one's|person's) word (?:on|is|was|would|counts|of)\b`), instead: "write decision, vote or answer"},
	{pattern: phraseRE(`\bin the place of\b`), instead: `write "instead of"`},
	{pattern: phraseRE(`\b(?:stands|stood) (?:in|for|at|still|there|beside)\b`), instead: `write "is"`},
	{pattern: phraseRE(`\bof which\b|\bby which\b|\bon which nothing\b`), instead: "use a direct clause"},
	{pattern: phraseRE(`\bfor ever\b|\bmend(?:ed|s)?\b|\bafresh\b|\banew\b|\bmeanwhile\b|\bbeside(?:s)? (?:it|them|the)\b`), instead: "use the usual word"},
	{pattern: phraseRE(`\blook(?:s|ed)? after\b`), instead: "write claim, own or handle"},
	{pattern: phraseRE(`\bis (?:told|heard|asked) (?:of|about) (?:it|them)\b`), instead: "name sender and receiver"},
}

func phraseRE(pattern string) *regexp.Regexp { return regexp.MustCompile("(?i)" + pattern) }

// found reports whether the text has the phrase.
func (p phrase) found(text string) bool {
	for _, at := range p.pattern.FindAllStringIndex(text, -1) {
		if p.except != nil && p.except.MatchString(text[at[0]:]) {
			continue
		}
		if p.notAfter != "" && strings.HasSuffix(strings.ToLower(text[:at[0]]), p.notAfter) {
			continue
		}
		return true
	}
	return false
}

// minLiteral is the length of string literals that count as prose.
const minLiteral = 12

var literal = regexp.MustCompile("\"([^\"]*)\"|'([^']*)'|`([^`]*)`")

// languages has how a comment begins, by the extension of files whose prose is comments and longer
// string literals. In Markdown, HTML and CSS all lines are prose. SQL is not read.
var languages = map[string]string{
	".go": "//", ".js": "//", ".mjs": "//", ".ts": "//",
	".py": "#", ".sh": "#", ".yaml": "#", ".yml": "#", "Makefile": "#", "Dockerfile": "#",
	".md": "", ".html": "", ".css": "",
}

// language returns the key of a file in languages: its extension, or its name without one.
func language(name string) string {
	if ext := path.Ext(name); ext != "" {
		return ext
	}
	return path.Base(name)
}

// prose returns the prose of a line.
func prose(name, line string) string {
	comment := languages[language(name)]
	if comment == "" {
		return line
	}
	var text []string
	if at := strings.Index(line, comment); at >= 0 {
		text = append(text, line[at:])
	}
	for _, m := range literal.FindAllStringSubmatch(line, -1) {
		if value := m[1] + m[2] + m[3]; len(value) >= minLiteral {
			text = append(text, value)
		}
	}
	return strings.Join(text, " ")
}

// eachProseLine calls visit with each line of each file of the repository that has prose.
func eachProseLine(t *testing.T, visit func(name string, number int, line string)) {
	t.Helper()
	root := repository(t)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if base == "testdata" || base == "node_modules" || strings.HasPrefix(base, ".") && base != "." {
				return fs.SkipDir
			}
			return nil
		}
		if _, ok := languages[language(name)]; !ok || name == "internal/arch/prose_test.go" {
			return nil
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for n, line := range strings.Split(string(data), "\n") {
			visit(name, n+1, line)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestProse_PhrasesToAvoidDoNotIncrease(t *testing.T) {
	limits := map[string]int{".go": maxPhrasesInGo, ".md": maxPhrasesInMarkdown, "other": maxPhrasesElsewhere}
	hits := make(map[string][]string) // by the keys of limits
	eachProseLine(t, func(name string, number int, line string) {
		text := prose(name, line)
		for _, p := range phrases {
			if p.found(text) {
				kind := path.Ext(name)
				if _, ok := limits[kind]; !ok {
					kind = "other"
				}
				hits[kind] = append(hits[kind], fmt.Sprintf("%s:%d: %s: %s", name, number, p.instead, strings.TrimSpace(line)))
				break
			}
		}
	})
	for kind, limit := range limits {
		if n := len(hits[kind]); n > limit {
			t.Errorf("%d lines of %s files use phrases to avoid, at most %d may:\n%s", n, kind, limit, strings.Join(hits[kind], "\n"))
		} else {
			t.Logf("%s: %d of at most %d", kind, n, limit)
		}
	}
}

func TestProse_CommentsWrapAtHundredColumns(t *testing.T) {
	var wide []string
	eachProseLine(t, func(name string, number int, line string) {
		if path.Ext(name) != ".go" || !strings.HasPrefix(strings.TrimSpace(line), "// ") {
			return
		}
		columns := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
		if columns > wrapAt {
			wide = append(wide, fmt.Sprintf("%s:%d: %d columns", name, number, columns))
		}
	})
	if len(wide) > maxWideComments {
		t.Errorf("%d comment lines are wider than %d columns, at most %d may be:\n%s", len(wide), wrapAt, maxWideComments, strings.Join(wide, "\n"))
	} else {
		t.Logf("%d of at most %d", len(wide), maxWideComments)
	}
}

func TestPhrase_Found(t *testing.T) {
	for text, want := range map[string]bool{
		"// whoever decides":                   true,
		"// this is no gate":                   true,
		"// this is no longer a gate":          false,
		"// there is no gate":                  false,
		"// What is open? See below.":          false,
		"// What is open stays":                true,
		"// Decide records a decision":         false,
		"// the lease of which the fence rose": true,
	} {
		got := false
		for _, p := range phrases {
			got = got || p.found(text)
		}
		if got != want {
			t.Errorf("%q: found %v, want %v", text, got, want)
		}
	}
}
