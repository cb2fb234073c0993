package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

func TestDialogue_ReviseThenApprovePublishesTheLastDraft(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "-topic", "tea")
	first := p.until(prompt)
	for _, want := range []string{"draft-1", "Five minutes on tea", "“best” is a claim that needs proof", "Approve & publish", "Request changes", "Reject"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first question lacks %q:\n%s", want, first)
		}
	}
	p.say("r")
	p.until("What should change? > ")
	p.say("mention milk")
	second := p.until(prompt)
	if !strings.Contains(second, "draft-2") || !strings.Contains(second, "mention milk.") || strings.Contains(second, "claim that needs proof") {
		t.Errorf("the second question does not show the revised draft:\n%s", second)
	}
	if published(t, dir, "review-1") != "" {
		t.Error("something was published before the approval")
	}
	p.say("approve")
	rest, code := p.end()
	if code != 0 || !strings.Contains(rest, "✓ Published") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
	if text := published(t, dir, "review-1"); text != compose("tea", []string{"mention milk"})+"\n" {
		t.Errorf("published:\n%s", text)
	}
}

func TestDialogue_RejectPublishesNothing(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	p.until(prompt)
	p.say("x not our topic")
	rest, code := p.end()
	if code != 0 || !strings.Contains(rest, "✗ Rejected because not our topic. Nothing was published.") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
	if published(t, dir, "review-1") != "" {
		t.Error("a rejected text was published")
	}
}

func TestDialogue_BadInputIsAskedAgainAndChangesNothing(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	p.until(prompt)
	before := saved(t, dir, "review-1").Version
	for _, line := range []string{"", "yes", "approved", "ax", "{}"} {
		p.say(line)
		if said := p.until(prompt); !strings.Contains(said, "is not a valid answer") {
			t.Errorf("after %q it said:\n%s", line, said)
		}
	}
	p.say("revise")
	p.until("What should change? > ")
	p.say("  ")
	if said := p.until(prompt); !strings.Contains(said, "feedback is required") {
		t.Errorf("after an empty feedback it said:\n%s", said)
	}
	if after := saved(t, dir, "review-1").Version; after != before {
		t.Errorf("version %d became %d", before, after)
	}
	p.say("X")
	if _, code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// leaveAndReturn ends the program at its question, starts it again, and checks that everything is
// unchanged.
func leaveAndReturn(t *testing.T, leave func(p *program)) {
	dir := t.TempDir()
	p := start(t, dir, "-topic", "tea")
	p.until(prompt)
	p.say("r mention milk")
	asked := p.until(prompt)
	leave(p)
	before := saved(t, dir, "review-1")

	p = start(t, dir)
	again := p.until(prompt)
	_, wantDraft, _ := strings.Cut(asked, "┌")
	if _, gotDraft, _ := strings.Cut(again, "┌"); gotDraft != wantDraft {
		t.Errorf("the question was\n%s\nand is now\n%s", wantDraft, gotDraft)
	}
	after := saved(t, dir, "review-1")
	if after.Version != before.Version || after.Interrupts[0].ID != before.Interrupts[0].ID || len(after.State.Trail) != 5 {
		t.Errorf("returning changed the run: version %d, question %s, trail %v; it was version %d, question %s",
			after.Version, after.Interrupts[0].ID, after.State.Trail, before.Version, before.Interrupts[0].ID)
	}
	p.say("a")
	if rest, code := p.end(); code != 0 || !strings.Contains(rest, "✓ Published") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
}

func TestDialogue_KilledAtTheQuestionGoesOnThere(t *testing.T) {
	leaveAndReturn(t, func(p *program) {
		if err := p.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		p.end()
	})
}

func TestDialogue_InterruptedAtTheQuestionGoesOnThere(t *testing.T) {
	leaveAndReturn(t, func(p *program) {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		rest, code := p.end()
		if code != exitInterrupted || !strings.Contains(rest, "Continue at this question with: go run ./examples/contentreview") {
			t.Errorf("exit code %d after:\n%s", code, rest)
		}
	})
}

func TestDialogue_EndOfInputAtTheQuestionGoesOnThere(t *testing.T) {
	leaveAndReturn(t, func(p *program) {
		p.in.Close()
		if rest, code := p.end(); code != 0 || !strings.Contains(rest, "The draft waits for you.") {
			t.Errorf("exit code %d after:\n%s", code, rest)
		}
	})
}

func TestDialogue_OneRevisionTooManyRejects(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	for range MaxRevisions {
		p.until(prompt)
		p.say("r again")
	}
	if last := p.until(prompt); !strings.Contains(last, "3 revisions are the limit") {
		t.Errorf("the last question does not say that it is the last:\n%s", last)
	}
	p.say("r and again")
	rest, code := p.end()
	if code != 0 || !strings.Contains(rest, "✗ Rejected because it was still not right after 3 revisions. Nothing was published.") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
	if s := saved(t, dir, "review-1"); s.Status != graph.StatusFinished || s.State.Revisions != MaxRevisions || published(t, dir, "review-1") != "" {
		t.Errorf("ended as %+v", s.State)
	}
}

func TestDialogue_AViolationIsNeverShownForApproval(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "-topic", "our confidential plans")
	rest, code := p.end()
	if code != 0 || strings.Contains(rest, prompt) || !strings.Contains(rest, "✗ Rejected because the automatic check found that the text says “confidential”") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
}

func TestDialogue_AFinishedRunIsShownAndTheNextOneIsNew(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir)
	p.until(prompt)
	p.say("x")
	p.end()
	if rest, code := start(t, dir, "-run", "review-1").end(); code != 0 || !strings.Contains(rest, "Run review-1 is finished") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
	p = start(t, dir)
	if said := p.until(prompt); !strings.Contains(said, "Run review-2") {
		t.Errorf("it said:\n%s", said)
	}
}

func TestDialogue_TheFirstOfTwoReviewersCounts(t *testing.T) {
	dir := t.TempDir()
	first, second := start(t, dir), (*program)(nil)
	first.until(prompt)
	second = start(t, dir)
	second.until(prompt)
	first.say("x")
	first.end()
	second.say("a")
	rest, code := second.end()
	if code != 0 || !strings.Contains(rest, "another person has already answered") || !strings.Contains(rest, "Rejected") {
		t.Errorf("exit code %d after:\n%s", code, rest)
	}
	if published(t, dir, "review-1") != "" {
		t.Error("the late approval published the text")
	}
}

func TestDraw_MarksTheNodeThatWaits(t *testing.T) {
	dir := t.TempDir()
	drawn, code := start(t, dir, "-draw").end()
	if code != 0 || !strings.HasPrefix(drawn, "flowchart TD\n") || strings.Contains(drawn, "class ") {
		t.Errorf("exit code %d, before the run:\n%s", code, drawn)
	}
	start(t, dir).until(prompt)
	drawn, _ = start(t, dir, "-draw").end()
	node, _, _ := strings.Cut(drawn, `["human_review"]`)
	node = node[strings.LastIndexByte(node, ' ')+1:]
	if !strings.Contains(drawn, "class "+node+" waiting") {
		t.Errorf("human_review is not marked:\n%s", drawn)
	}
}

func TestFlags_AMistakeIsExplained(t *testing.T) {
	p := start(t, t.TempDir(), "-no-such-flag")
	if _, code := p.end(); code != exitUsage {
		t.Errorf("exit code %d", code)
	}
}

func TestJSON_AnswersAreCheckedAndUsed(t *testing.T) {
	dir := t.TempDir()
	p := start(t, dir, "-json", "-topic", "tea", "-run", "by program")
	read := func() (o outcome) {
		t.Helper()
		if err := json.Unmarshal([]byte(p.until("\n")), &o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	asked := read()
	for _, bad := range []string{
		`approve`, `{}`, `{"action":"publish"}`, `{"action":"revise"}`, `{"action":"approve","action":"reject"}`,
		`{"action":"reject","editedContent":"mine"}`, `{"action":"approve","force":true}`,
	} {
		p.say(bad)
		if o := read(); o.Status != "error" || o.Message == "" {
			t.Errorf("after %s: %+v", bad, o)
		}
		if again := read(); again.Interrupt == nil || again.Interrupt.ID != asked.Interrupt.ID {
			t.Errorf("after %s it asks %+v", bad, again)
		}
	}
	p.say(`{"action":"revise","feedback":"mention milk"}`)
	revised := read()
	var q Question
	if err := json.Unmarshal(revised.Interrupt.Data, &q); err != nil || revised.Status != "needs_input" || q.Draft.ID != "draft-2" {
		t.Errorf("after the revision: %+v, %v", revised, err)
	}
	p.say(`{"action":"approve","editedContent":"My own words."}`)
	done := read()
	if done.Status != "completed" || done.Output.Verdict.Action != Approve || done.Output.Draft.ID != "draft-2" {
		t.Errorf("at the end: %+v", done)
	}
	if text := published(t, dir, "by%20program"); text != "My own words.\n" {
		t.Errorf("published %q", text)
	}
	if _, code := p.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
