package sanitize

import "testing"

func TestText_EscapesHiddenCharacters(t *testing.T) {
	for text, want := range map[string][2]string{ // results of Text and Line
		"plain":                  {"plain", "plain"},
		"two\nlines\tand a tab":  {"two\nlines\tand a tab", "two lines and a tab"},
		"\x1b]0;title\a":         {`\u001b]0;title\u0007`, `\u001b]0;title\u0007`},
		"pay\u200b":              {`pay\u200b`, `pay\u200b`},
		"\u202egnp.exe":          {`\u202egnp.exe`, `\u202egnp.exe`},
		"\u3164":                 {`\u3164`, `\u3164`},
		"\U000e0041":             {`\u{e0041}`, `\u{e0041}`},
		"\xff":                   {`\xff`, `\xff`},
		"\r\n":                   {"\\r\n", `""`},
		"":                       {"", `""`},
		"Zażółć gęślą jaźń 漢字 😀": {"Zażółć gęślą jaźń 漢字 😀", "Zażółć gęślą jaźń 漢字 😀"},
	} {
		if got := [2]string{Text(text), Line(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
