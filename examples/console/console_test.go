package console_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/tool"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

// example calls the tools that its task names, and reports their results.
var example = console.Example{
	Name:  "console",
	About: "an agent for tests.",
	Task:  "approve",
	Build: func(kit *console.Kit) (agent.Agent, error) {
		return agent.NewChat(agent.Chat{Name: "tester", Model: kit.Model(callTools, report), Tools: tools(kit)})
	},
}

func callTools(request *agent.Request) (agent.Message, error) {
	var calls []agent.ToolCall
	for _, name := range strings.Fields(request.Messages[len(request.Messages)-1].Text) {
		calls = append(calls, agent.ToolCall{Name: name, Args: `{"n":1,"text":"one"}`})
	}
	return agent.Assistant("", calls...), nil
}

func report(request *agent.Request) (agent.Message, error) {
	var said []string
	for _, m := range request.Messages {
		if m.Role == agent.RoleTool {
			said = append(said, m.Tool+" said <"+m.Text+">")
		}
	}
	return agent.Assistant(strings.Join(said, "; ")), nil
}

var _ script.Line = callTools

type args struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

// formless is a kind that the console has no form for.
var formless = fermata.NewKind[string, int]("console-test-number")

func tools(kit *console.Kit) []*tool.Tool {
	echo := func(_ context.Context, a args) (args, error) { return a, nil }
	return []*tool.Tool{
		tool.Approve(tool.New("approve", "Needs a yes.", echo)),
		tool.Review(tool.New("review", "May be changed.", echo)),
		tool.Respond(tool.New("respond", "Is a person.", echo)),
		tool.FollowUp(tool.New("follow", "Wants more.", echo), func(a args) []tool.Missing {
			if a.N < 2 {
				return []tool.Missing{{Field: "n", Question: "How many?"}}
			}
			return nil
		}),
		tool.New("number", "Asks for a number.", func(ctx context.Context, _ args) (int, error) { return formless.Ask(ctx, "Which?") }),
		tool.New("plain", "Asks without a kind.", func(ctx context.Context, _ args) (string, error) {
			if answered, _, data := fermata.GetResumeContext[string](ctx); answered {
				return data, nil
			}
			return "", fermata.Interrupt(ctx, "\x1b[2Jsay something")
		}),
		tool.Approve(tool.New("break", "Breaks down the first time.", func(context.Context, args) (string, error) {
			file := kit.Data + "/broken"
			if _, err := os.Stat(file); err == nil {
				return "mended", nil
			}
			return "", errors.Join(errors.New("the line went dead"), os.WriteFile(file, nil, 0o600))
		})),
	}
}

// dialogue starts the example with a task, types the lines at its prompts, and returns its output.
func dialogue(t *testing.T, dir, task string, lines ...string) string {
	t.Helper()
	p := consoletest.Start(t, dir, "-task", task)
	p.Pipe(lines...)
	said, code := p.End()
	if code != 0 || !strings.Contains(said, "is finished.") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	return said
}

func TestForms_BadInputIsAskedAgainAndGoodIsUsed(t *testing.T) {
	for _, test := range []struct {
		task  string
		lines []string
		want  []string
	}{
		{"approve", []string{"", "maybe", "{", `{"verb":"maybe"}`, `{"verb":"approve","args":{}}`, "e n=2", "y"}, []string{
			"“” is not a valid answer", "“maybe” is not a valid answer", "expected", "verb", "cannot be edited", "only be approved or refused", `approve said <{"n":1,"text":"one"}>`}},
		{"approve", []string{"n", "I say so"}, []string{"Why not?", "refused by ann: I say so"}},
		{"approve", []string{`{"verb":"reject","reason":"by a program"}`}, []string{"by a program"}},
		{"review", []string{"e", ".", "e m=2", "e n=two", `e n="two"`, "e n=", "e n=2", "e text=a = b", "Y"}, []string{
			`there is no ""`, `there is no "m"; the fields are n, text`, `"two" is not of type integer`, "edited arguments", "n is empty", "now with n: 2", `{"n":2,"text":"a = b"}`}},
		{"review", []string{`{"verb":"approve","args":{"n":7,"text":"x"}}`}, []string{`{"n":7,"text":"x"}`}},
		{"respond", []string{"", "forty-two"}, []string{"text is missing", "respond said <forty-two>"}},
		{"respond", []string{"/decline not my business"}, []string{"not my business"}},
		{"follow", []string{"many", "1.5", "1", "3"}, []string{`"many" is not of type integer`, "1.5", `follow said <{"n":3,"text":"one"}>`}},
		{"follow", []string{"/decline I cannot count"}, []string{"I cannot count"}},
		{"number", []string{"seven", `"7"`, "7"}, []string{"this is not valid JSON", "string", `{"type":"integer"}`, "number said <7>"}},
		{"plain", []string{"word", `"word"`}, []string{"this is not valid JSON", "of no kind", `\u001b[2Jsay something`, "plain said <word>"}},
	} {
		t.Run(test.task+" "+test.lines[0], func(t *testing.T) {
			t.Parallel()
			said := dialogue(t, t.TempDir(), test.task, test.lines...)
			for _, want := range test.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not contain %q:\n%s", want, said)
				}
			}
		})
	}
}

func TestForms_SeveralQuestionsAreAnsweredOneByOne(t *testing.T) {
	said := dialogue(t, t.TempDir(), "approve respond number", "y", "5", "hello")
	for _, want := range []string{"A question, and 2 more after it", "A question, and 1 more after it",
		`approve said <{"n":1,"text":"one"}>; respond said <hello>; number said <5>`} {
		if !strings.Contains(said, want) {
			t.Errorf("it does not contain %q:\n%s", want, said)
		}
	}
}

func TestForms_ALimitIsAsked(t *testing.T) {
	for line, want := range map[string]string{"y": "is finished.", "y 1": "is finished.", "n too dear": "stopped at the limit of 1 model calls by ann: too dear"} {
		p := consoletest.Start(t, t.TempDir(), "-calls", "1", "-task", "respond")
		p.Question()
		p.Say("hello")
		asked := p.Question()
		p.Say("perhaps")
		asked += p.Question()
		p.Say("y much")
		asked += p.Question()
		p.Say(line)
		rest, _ := p.End()
		rest += p.Errors()
		if !strings.Contains(asked, "exceed its limit of 1 model calls") || !strings.Contains(asked, "“perhaps” is neither y nor n") || !strings.Contains(asked, "“much” is not a number") {
			t.Errorf("it asked:\n%s", asked)
		}
		if !strings.Contains(rest, want) {
			t.Errorf("after %q:\n%s", line, rest)
		}
	}
}

// A failed call may have had an effect. The program shows how to continue, and then asks about the
// effect in doubt.
func TestForms_AnEffectInDoubtIsAsked(t *testing.T) {
	for answer, want := range map[string]string{
		"n":                          "break said <mended>",
		"y it was done by hand":      "break said <it was done by hand>",
		`y {"text":"done","n":1}`:    "", // refused
		`y {"text":"done by robot"}`: "break said <done by robot>",
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := consoletest.Start(t, dir, "-task", "break")
			p.Question()
			p.Say("y")
			asked := p.Question()
			if !strings.Contains(asked, "error    the line went dead") || !strings.Contains(asked, "the key eff_") {
				t.Errorf("it asked:\n%s", asked)
			}
			p.Say("dunno")
			p.Question()
			p.Say(answer)
			if want == "" {
				if said := p.Question(); !strings.Contains(said, "receipt") {
					t.Errorf("it said:\n%s", said)
				}
				return
			}
			if rest, code := p.End(); code != 0 || !strings.Contains(rest, want) {
				t.Errorf("exit code %d:\n%s", code, rest)
			}
		})
	}
}
