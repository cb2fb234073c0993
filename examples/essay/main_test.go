package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "essay", run) }

func TestEssay(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{
			{To: "draft 1 of", Line: "shorter, please"},
			{To: "draft 2 of", Line: "y"},
		},
		Refusal: []string{"make it a poem", "/stop", "/stop I write it myself"},
		Reason:  "Changed, because you said: make it a poem",
		Effects: printed,
	})
}

func printed(t testing.TB, dir string) int { return exampletest.Files(t, filepath.Join(dir, "press")) }

func TestEssay_GivesUpAfterTheLastDraft(t *testing.T) {
	dir := t.TempDir()
	if said, code := exampletest.Start(t, dir).Dialogue(slices.Repeat([]string{"again"}, maxDrafts)...); code != 0 || !strings.Contains(said, "Nothing was printed: it was still not right after 5 drafts.") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if n := printed(t, dir); n != 0 {
		t.Errorf("printed %d times", n)
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
