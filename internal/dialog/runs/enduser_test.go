package runs_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/store"
)

// The question of an agent is for its end user: approvers do not see it and cannot answer it, also
// if the policy names them for everything, and it outlives the deadline of requests. Handed over,
// it is a request of the approvers.
func TestEndUser_QuestionIsNotARequestOfApprovers(t *testing.T) {
	rules, err := policy.Load("policy.yaml", []byte(`
default: ask
defaults: {ask: {groups: [{from: ["user:clerk"]}], deadline: 1h}}
rules: []
`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, openStore(t, "clock"))
	w.config = func(c *executor.Config) { c.RequestTimeout, c.Desk.Policy = time.Hour, rules }
	w.restart()
	r := w.say("c", dialog.Message{Text: "send it", Modality: dialog.Voice})
	asked := r.Questions[0].Target.Interrupt
	doc, err := w.executor.RequestDocument(t.Context(), account, asked)
	if err != nil {
		t.Fatal(err)
	}
	for who, want := range map[string]bool{user: true, "clerk": false, "boss": false} {
		viewer := desk.Viewer{ID: who, Kind: desk.ActorHuman}
		if sees, err := w.executor.MaySee(doc, viewer); sees != want || err != nil {
			t.Errorf("%s sees the question: %v, %v", who, sees, err)
		}
		if err := w.executor.MayDecide(doc, who); (err == nil) != want {
			t.Errorf("%s may answer it: %v", who, err)
		}
	}
	decide := func(id, value string) error {
		_, err := w.executor.Decide(t.Context(), executor.DecideRequest{
			Account: account, ResumeID: "r-" + id, Actor: "clerk", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value)}},
		})
		return err
	}
	if refused, ok := errors.AsType[*executor.RefusedError](decide(asked, `{"yes":true,"method":"person"}`)); !ok || refused.Err == nil {
		t.Errorf("the answer of an approver: %v", refused)
	}
	w.clock.add(30 * 24 * time.Hour)
	for range 3 {
		r = w.say("c", dialog.Message{Text: "blue", Modality: dialog.Voice})
	}
	if a := r.Questions[0]; a.Status != dialog.HandedOver {
		t.Fatalf("after a month: %s, %+v", a.Status, r.Lines)
	}
	list, err := w.executor.ListRequests(t.Context(), account, store.InboxFilter{State: store.InterruptPending, Kind: runs.Person.Name()})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d handed over, %v", len(list), err)
	}
	if doc, err = w.executor.RequestDocument(t.Context(), account, list[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := w.executor.MayDecide(doc, "clerk"); err != nil {
		t.Errorf("the approver may not answer what was handed over: %v", err)
	}
	if err := w.executor.MayDecide(doc, user); err == nil {
		t.Error("the user may answer what was handed over")
	}
	if err := decide(list[0].ID, `{"yes":true}`); err != nil {
		t.Fatal(err)
	}
	if r, err = w.handler.Get(t.Context(), account, "c"); err != nil || last(r) != "Did: send it" || !r.Questions[0].Answer.Yes {
		t.Errorf("%+v, %v", r.Lines, err)
	}
}

// handOver has a question handed over, after some messages, and returns the request of the person.
func (w *world) handOver(messages ...string) executor.RequestView {
	w.t.Helper()
	for _, text := range append(messages, "mail anna", "blue", "blue", "blue") {
		w.say("c", dialog.Message{Text: text, Modality: dialog.Voice})
	}
	list, err := w.executor.ListRequests(w.t.Context(), account, store.InboxFilter{State: store.InterruptPending, Kind: runs.Person.Name()})
	if err != nil || len(list) != 1 {
		w.t.Fatalf("%d handed over, %v", len(list), err)
	}
	return list[0]
}

func TestHandOver_WithoutAnAnswerTheUserIsAskedAgain(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	asked := w.handOver()
	if err := w.executor.Abandon(t.Context(), account, asked.ID, abandon("clerk")); err != nil {
		t.Fatal(err)
	}
	r, err := w.handler.Get(t.Context(), account, "c")
	if err != nil || r.Questions[0].Status != dialog.Asked || !strings.Contains(last(r), "Which Anna?") {
		t.Fatalf("%+v, %v", r.Lines, err)
	}
	if r = w.say("c", dialog.Message{Text: "legal"}); last(r) != "Did: mail anna" {
		t.Errorf("%+v", r.Lines)
	}
}

func TestHandOver_LongTranscriptIsCut(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	var messages []string
	for range 12 {
		messages = append(messages, strings.Repeat("<long> ", 2000))
	}
	asked := w.handOver(messages...)
	var data runs.HandedOver
	if err := json.Unmarshal(asked.Data, &data); err != nil {
		t.Fatal(err)
	}
	if n := len(data.Transcript); n < 5 || data.Transcript[0] != "…" || data.Transcript[n-2] != "user: blue" {
		t.Errorf("%d lines, from %.20s to %s", n, data.Transcript[0], data.Transcript[n-1])
	}
}
