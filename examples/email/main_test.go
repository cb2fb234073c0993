package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestEmail(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example: example,
		Answers: []consoletest.Answer{{To: "send_email", Lines: []string{
			"e to=jan.novak@example.com", "e body", "Dear Jan,", "we are sorry. A new lamp comes tomorrow.", ".", "y",
		}}},
		Refusals:   []consoletest.Answer{{To: "send_email", Lines: []string{"n I call him instead"}}},
		Reason:     "I call him instead",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "outbox").Count() },
		InDoubt:    true,
		ModelCalls: 2,
	})
}

func TestReview_EditedEmailIsSentExactly(t *testing.T) {
	dir := t.TempDir()
	p := consoletest.Start(t, dir)
	p.Question()
	for _, step := range []struct{ line, want string }{
		{"e from=me", `there is no "from"; the fields are body, subject, to`},
		{"e to=", "to is empty"},
		{"e subject=Sorry", "subject: Sorry"},
		{"e to=ann@example.com", "to: ann@example.com"},
	} {
		p.Say(step.line)
		if said := p.Question(); !strings.Contains(said, step.want) {
			t.Errorf("after %q it said:\n%s", step.line, said)
		}
	}
	p.Say("y")
	if rest, code := p.End(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
	lines, err := target.Open(consoletest.Data(dir), "outbox").Entries()
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	var sent Email
	if err := json.Unmarshal(lines[0].What, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.To != "ann@example.com" || sent.Subject != "Sorry" || !strings.HasPrefix(sent.Body, "Dear Jan,\n\nthe lamp came broken") {
		t.Errorf("sent %+v", sent)
	}
}
