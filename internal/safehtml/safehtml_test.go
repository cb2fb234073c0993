package safehtml

import (
	"strings"
	"testing"
)

func TestLine_ShowsHiddenCharactersAsCodes(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                           "plain",
		"<b onclick=x>&":                  "&lt;b onclick=x&gt;&amp;",
		"a\u202eb":                        `a<span class="flag" title="right-to-left override">U+202E</span>b`,
		"\x1b[31m":                        `<span class="flag" title="escape">U+001B</span>[31m`,
		"two\nlines":                      `two<span class="flag" title="line break">U+000A</span>lines`,
		"\xff":                            `<span class="flag" title="byte that is not UTF-8">0xFF</span>`,
		"p\u0430y":                        `p<span class="flag" title="Cyrillic U+0430, looks like another character">` + "\u0430<small>U+0430</small></span>y",
		"Zażółć gęślą 漢字 😀":               "Zażółć gęślą 漢字 😀",
		"привет, мир":                     "привет, мир",
		"the word \u0441\u043e":           `the word <span class="flag" title="Cyrillic U+0441, looks like another character">` + "\u0441<small>U+0441</small></span>" + `<span class="flag" title="Cyrillic U+043E, looks like another character">` + "\u043e<small>U+043E</small></span>",
		"a" + strings.Repeat("\u0301", 4): "a\u0301\u0301\u0301" + `<span class="flag" title="combining mark">U+0301</span>`,
	} {
		if got := string(Line(text)); got != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
}

func TestBlock_KeepsLineBreaks(t *testing.T) {
	if got := string(Block("a\n\tb\u200b")); got != "a\n\tb"+`<span class="flag" title="zero width space">U+200B</span>` {
		t.Errorf("%s", got)
	}
	if n := Flags("a\n\u200b\u202e"); n != 2 {
		t.Errorf("%d flags", n)
	}
}

var labels = Labels{
	Fold: func(size string) string { return "all " + size }, Characters: func(int) string { return "N" }, Items: func(int) string { return "I" }, Empty: "empty",
}

func TestJSON_IsVerbatim(t *testing.T) {
	for data, want := range map[string][]string{
		`{"id":9007199254740993,"n":120.00}`: {"9007199254740993", "120.00", "<dt>id</dt>"},
		`"17"`:                               {`<span class="q">&#34;</span>17`},
		`{"a":"<img src=x onerror=y>"}`:      {"&lt;img"},
		`{"\u202e":[1,null,true,"",{}]}`:     {"U+202E", "null", "true", "empty", "{}"},
		`not json <`:                         {"not json &lt;"},
		`"` + strings.Repeat("x", 700) + `"`: {"<details", "all N"},
	} {
		got := string(JSON([]byte(data), labels))
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%.40s: no %q in %.300s", data, part, got)
			}
		}
		if strings.Contains(got, "<img") {
			t.Errorf("%s: markup of the value in %s", data, got)
		}
	}
}

func TestJSON_DeepValueEnds(t *testing.T) {
	got := string(JSON([]byte(strings.Repeat("[", 1000)+strings.Repeat("]", 1000)), labels))
	if strings.Count(got, "<ol") > maxDepth {
		t.Errorf("%d lists", strings.Count(got, "<ol"))
	}
}
