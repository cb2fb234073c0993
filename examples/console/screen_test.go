package console

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
)

// A model could try to show a person something other than what would be done.
func TestScreen_AModelCannotPaintIt(t *testing.T) {
	var out strings.Builder
	s := newScreen(strings.NewReader(""), &out)
	evil := "a\x1b[2Jb\rc\u202ed"
	s.event(&agent.Event{Agent: "x", Body: agent.Token{Text: evil}})
	s.event(&agent.Event{Agent: "x", Body: agent.MessageAdded{Message: agent.Assistant(evil, agent.ToolCall{Name: evil, Args: evil})}})
	d := &Dialogue{screen: s}
	d.header(&fermata.InterruptCtx{Kind: evil, Address: fermata.Address{{Type: fermata.SegmentAgent, ID: evil}}}, 1)
	d.rows("with", json.RawMessage(`{"k\u001b":"a\u001b[2Jb\rc\u202ed"}`))
	if text := out.String(); strings.ContainsAny(text, "\x1b\r\u202e") || strings.Count(text, "a\uFFFD[2Jb\uFFFDc\uFFFDd") != 6 {
		t.Errorf("shown %q", text)
	}
}

func TestScreen_UsesColoursOnlyOnATerminal(t *testing.T) {
	var out strings.Builder
	s := newScreen(strings.NewReader(""), &out)
	s.showError(errLocked)
	s.colour = true
	s.showError(errLocked)
	if plain, painted, _ := strings.Cut(out.String(), "\n"); strings.Contains(plain, "\x1b") || !strings.Contains(painted, "\x1b[31m✗\x1b[0m") {
		t.Errorf("shown %q", out.String())
	}
}

func TestPlace_IsTheWayToTheQuestion(t *testing.T) {
	for text, want := range map[string]string{
		"agent:a":                               "a",
		"agent:a;tool:b#c1":                     "a ▸ b (c1)",
		"agent:a;tool:b#c1;agent:b;tool:c#c2":   "a ▸ b (c1) ▸ c (c2)",
		"agent:a;agent:b#3;tool:c#c1;agent:d#2": "a ▸ b (for the 3. time) ▸ c (c1) ▸ d (for the 2. time)",
	} {
		address, err := fermata.ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := place(address); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func TestModel_TheEnvironmentChoosesUnlessTheFlagDoes(t *testing.T) {
	for environment, want := range map[string]string{
		"": modelScript, "OPENAI_API_KEY": modelOpenAI, "ANTHROPIC_API_KEY": modelAnthropic, "OPENAI_API_KEY ANTHROPIC_API_KEY": modelAnthropic,
	} {
		getenv := func(name string) string {
			if strings.Contains(environment, name) {
				return "there is one"
			}
			return ""
		}
		if got := byEnvironment(getenv); got != want {
			t.Errorf("with %q it is %s, want %s", environment, got, want)
		}
	}
}

func TestValue_IsReadByTheSchema(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"s":{"type":"string"},"n":{"type":["null","integer"]},"l":{"type":["null","array"],"items":{"type":"string"}},"o":{"type":"object"}}}`)
	for typed, want := range map[string]string{
		"s=3": `"3"`, "n=3": "3", "n=x": "", "l=a, b": `["a","b"]`, `l=["a"]`: `["a"]`, `o={"a":1}`: `{"a":1}`, "o=a": "", "x=1": "", "s=": "",
	} {
		name, text, _ := strings.Cut(typed, "=")
		got, err := value(schema, name, text)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%s is %s, %v; want %s", typed, got, err, want)
		}
	}
}
