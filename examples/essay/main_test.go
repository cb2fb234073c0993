package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console/consoletest"
	"github.com/fermata-go/fermata/examples/console/target"
)

func TestMain(m *testing.M) { consoletest.Main(m, example) }

func TestEssay(t *testing.T) {
	consoletest.Test(t, consoletest.Scenario{
		Example: example,
		Answers: []consoletest.Answer{
			{To: "draft 1 of", Lines: []string{"shorter, please"}},
			{To: "draft 2 of", Lines: []string{"y"}},
		},
		Refusals: []consoletest.Answer{
			{To: "draft 1 of", Lines: []string{"make it a poem"}},
			// the first has no reason
			{To: "draft 2 of", Lines: []string{"/stop", "/stop I write it myself"}},
		},
		Reason:     "make it a poem",
		Effects:    func(data string) (int, int, error) { return target.Open(data, "press").Count() },
		ModelCalls: 2,
	})
}

func TestEssay_GivesUpAfterTheLastDraft(t *testing.T) {
	dir := t.TempDir()
	p := consoletest.Start(t, dir)
	p.Pipe(slices.Repeat([]string{"again"}, maxDrafts)...)
	if said, code := p.End(); code != 0 || !strings.Contains(said, "Nothing was printed: it was still not right after 5 drafts.") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if done, _, err := target.Open(consoletest.Data(dir), "press").Count(); done != 0 || err != nil {
		t.Errorf("printed %d times, %v", done, err)
	}
}

func TestVerdict_OnlyAClearAnswerIsOne(t *testing.T) {
	for answer, good := range map[string]bool{
		`{"word":"content"}`:               true,
		`{"word":"change","text":"less"}`:  true,
		`{"word":"stop","text":"no time"}`: true,
		`{"word":"change"}`:                false,
		`{"word":"stop","text":" "}`:       false,
		`{"word":"fine"}`:                  false,
		`{"text":"less"}`:                  false,
		`{}`:                               false,
	} {
		if _, err := Feedback.Check(nil, json.RawMessage(answer)); (err == nil) != good {
			t.Errorf("%s: %v", answer, err)
		}
	}
}
