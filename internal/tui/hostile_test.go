package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// attacks are texts that would control a terminal or mislead its reader.
var attacks = map[string]string{
	"clear the screen":     "\x1b[2J\x1b[H",
	"write the clipboard":  "\x1b]52;c;cm0gLXJmIC8=\x07",
	"set the title":        "\x1b]0;pwned\x1b\\",
	"answer back":          "\x1b[6n\x1b[c\x1bP$q\"p\x1b\\",
	"one byte controls":    "\u009b2J\u009d52;c;x\u009c",
	"raw bytes":            "\x9b2J\xff\xfe",
	"overwrite the line":   "harmless\rrm -rf /\b\b\b",
	"bell and delete":      "\a\x7f\x00",
	"turn around":          "\u202eevil\u202c \u2066x\u2069 \u200f",
	"hide":                 "a\u200bb\u2060c\ufeffd\u00ade\u034ff\u115fg\u3164h\u2800i",
	"tags":                 "\U000e0041\U000e0042",
	"variations":           "a\ufe0fb\U000e0100",
	"new lines":            "one\ntwo\u2028three\u2029four\u0085five",
	"strange spaces":       "a\u00a0b\u3000c\u2003d",
	"many combining marks": "e" + strings.Repeat("\u0301", 40),
	"mark at the start":    "\u0338equals",
	"wide":                 strings.Repeat("世", 60),
	"private":              "\ue000\U000f0000\ufffe",
	"a frame":              "\n──────────\n[y] yes, approve\n",
	"colours":              "\x1b[31mred\x1b[0m",
	"a link":               "\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\",
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Text from an agent reaches the terminal only sanitized, on every screen.
func TestHostile_TextCannotControlTheTerminal(t *testing.T) {
	everything := ""
	for name, attack := range attacks {
		everything += attack
		t.Run(name, func(t *testing.T) {
			for _, r := range hostileRequests(attack) {
				b := newHarness(t, 80, 60, r)
				b.frame()
				b.keys("enter")
				b.frame()
			}
		})
	}
	for _, keys := range [][]string{
		{"/", "a"}, {"enter", "o", "G"}, {"enter", "a"}, {"enter", "a", "G"}, {"enter", "r", "x", "enter"}, {"enter", "f", "right", "tab", "x", "ctrl+s"},
		{"enter", "e", "x", "tab", "x", "ctrl+s", "G"}, {"enter", "x", "x", "enter"},
	} {
		t.Run(strings.Join(keys, " "), func(t *testing.T) {
			for _, r := range hostileRequests(everything) {
				b := newHarness(t, 80, 200, r)
				for _, key := range keys {
					b.keys(key)
					b.frame()
				}
			}
		})
	}
}

func hostileRequests(attack string) []api.Request {
	attacked := func(r api.Request) api.Request {
		mark := api.Stamp{By: attack, At: start}
		note := api.Note{Stamp: mark, Text: attack}
		r.Activity = &api.Activity{
			Requester: attack, Rules: []string{attack}, Reason: attack, MinAuth: attack, Progress: attack, Claim: &mark, Comments: []api.Note{note},
			Clarifications: []api.Clarification{{Note: note, Reply: &note}}, Votes: []api.Vote{{Stamp: mark, Verb: attack, Reason: attack}}, Edit: &api.Edit{Stamp: mark, Args: json.RawMessage(quote(attack))},
		}
		r.ID, r.StateKey, r.GraphID, r.Address, r.Shown = r.ID+attack, attack, "inproc:"+attack, attack, attack
		return r
	}
	asked := approval(attack, attack, `{`+quote("k"+attack)+`:`+quote(attack)+`,"l":[`+quote("x\n"+attack)+`]}`)
	asked.Rule, asked.Reason = attack, attack
	asked.ArgsSchema = json.RawMessage(`{"type":"object","properties":{` + quote("k"+attack) + `:{"type":"string","description":` + quote(attack) + `}}}`)
	answer := `{"type":"object","properties":{"verb":{"enum":["approve","reject","escalate",` + quote(attack) + `]},` + quote(attack) + `:{"type":"integer","title":` + quote(attack) + `},"reason":{"pattern":` + quote(attack) + `}}}`
	data := `{"summary":` + quote(attack) + `,"text":` + quote(attack+"\n"+attack) + `,` + quote(attack) + `:[` + quote(attack) + `]}`
	return []api.Request{
		attacked(request("i1", "", "", "approval", asked, fermata.Approval.HumanAnswerSchema(), nil)),
		attacked(request("i2", "", "", attack, json.RawMessage(data), json.RawMessage(answer), nil)),
		attacked(request("i3", "", "", "text", json.RawMessage(quote(attack)), nil, nil)),
		attacked(request("i4", "", "", "broken", json.RawMessage(attack), json.RawMessage(attack), nil)),
	}
}

// Texts from the server may contain text of other people.
func TestHostile_ProblemsAndOutcomesAreEscaped(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				&api.Problem{Status: 409, Code: "already_decided", Decided: &api.PriorDecision{By: attack, Verdict: attack, At: start}},
				&api.Problem{Status: 400, Code: attack, Title: attack, Detail: attack, Fields: []api.Field{{Location: attack, Message: attack}}},
			} {
				b := newHarness(t, 80, 24, dropUsers())
				b.keys("enter", "a", "y")
				b.answer(nil, err)
				b.frame()
				b.update(pollResult{seq: b.m.pollSeq, err: err})
				b.frame()
			}
			for _, outcome := range []fermata.Outcome{fermata.Completed{Content: attack}, fermata.Completed{Output: json.RawMessage(attack)}, fermata.Failed{Code: attack, Message: attack}} {
				b := newHarness(t, 80, 24, dropUsers())
				b.keys("enter", "a", "y")
				b.answer(outcome, nil)
				b.frame()
			}
			r := dropUsers()
			r.State, r.Decision = attack, &api.Decision{Verdict: attack, By: attack, Via: attack, Source: attack, Answer: json.RawMessage(quote(attack))}
			b := newHarness(t, 80, 24, dropUsers())
			b.keys("enter")
			b.update(pollResult{seq: b.m.pollSeq, open: &r})
			b.frame()
			b.keys("u")
			b.frame()
		})
	}
}

// The display is unambiguous.
func TestCells_InvisibleCharactersAreEscaped(t *testing.T) {
	for _, test := range []struct {
		text string
		how  escapeMode
		want string
	}{
		{"plain ä 世", modeLine, "plain ä 世"},
		{"a\u202eb", modeLine, `a\u202eb`},
		{`a\u202eb`, modeLine, `a\\u202eb`},
		{`a\\u202eb`, modeLine, `a\\\\u202eb`},
		{`C:\dir`, modeLine, `C:\dir`},
		{"a\nb\tc\r", modeLine, `a\nb\tc\r`},
		{"\U000e0041", modeLine, `\u{e0041}`},
		{"\xff", modeLine, `\xff`},
		{"e\u0301", modeLine, "e\u0301"},
		{"\u0301", modeLine, `\u0301`},
		{`say "hi" \ `, modeQuoted, `"say \"hi\" \\ "`},
		{"a\nb", modeQuoted, `"a\nb"`},
		{"a\tb", modeBlock, "a→   b"},
	} {
		if got := plain(cells(test.text, test.how, styleNormal)); got != test.want {
			t.Errorf("%q is shown as %s, not %s", test.text, got, test.want)
		}
	}
}

func TestWrap_KeepsAllCellsAndFits(t *testing.T) {
	for name, attack := range attacks {
		for _, text := range []string{attack, strings.Repeat(attack+" ", 9), strings.Repeat("word ", 40)} {
			all := cells(text, modeLine, styleNormal)
			for width := 12; width < 90; width += 13 {
				var again []cell
				for _, line := range wrap(all, width) {
					if w := lipgloss.Width(ansi.Strip(draw(line))); w > width {
						t.Errorf("%s: a line is %d wide, not %d", name, w, width)
					}
					again = append(again, line...)
				}
				if fmt.Sprint(again) != fmt.Sprint(all) {
					t.Errorf("%s: wrapped to %d, something is lost", name, width)
				}
			}
		}
	}
}

// A person may edit an agent's text. It is displayed sanitized, and untouched parts are kept byte
// for byte.
func TestEditor_KeepsEveryCharacter(t *testing.T) {
	for name, attack := range attacks {
		if !utf8.ValidString(attack) || strings.ContainsRune(attack, '\r') {
			continue
		}
		e := newEditor(attack)
		e.insert("!")
		if e.value() != attack+"!" {
			t.Errorf("%s: %q", name, e.value())
		}
		for _, line := range e.view(40, 100, true) {
			checkSequences(t, line)
			for _, r := range ansi.Strip(line) {
				if isDangerous(r) {
					t.Errorf("%s: %U is shown unescaped", name, r)
				}
			}
		}
	}
}

func FuzzFrame_IsSafeAndFits(f *testing.F) {
	for _, attack := range attacks {
		f.Add(`{"a":`+quote(attack)+`}`, `{"type":"object","properties":{`+quote(attack)+`:{"enum":[1,"x"]}}}`)
	}
	f.Fuzz(func(t *testing.T, data, schema string) {
		for _, keys := range [][]string{{"enter", "o"}, {"enter", "f", "right", "tab", "x", "ctrl+s"}} {
			b := newHarness(t, 60, 20, request("i", "k", "g", "kind", json.RawMessage(data), json.RawMessage(schema), nil))
			for _, key := range keys {
				b.keys(key)
				b.frame()
			}
		}
	})
}
