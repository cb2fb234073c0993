package runs_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

func eachStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for _, kind := range []string{"memory", "sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) { test(t, newWorld(t, openStore(t, kind))) })
	}
}

func TestMessage_QuestionSurvivesARestartAndItsAnswerContinuesTheRun(t *testing.T) {
	eachStore(t, func(t *testing.T, w *world) {
		r := w.say("c", dialog.Message{Text: "mail anna please"})
		if !strings.Contains(last(r), "Which Anna?") {
			t.Fatalf("%+v", r.Lines)
		}
		w.restart()
		r = w.say("c", dialog.Message{Text: "the one from sales"})
		if last(r) != "Did: mail anna please" || r.Questions[0].Answer.Option != "anna-s" {
			t.Fatalf("%+v", r.Lines)
		}
		facts, err := w.handler.Facts(t.Context(), account, user, "anna-s")
		if err != nil || len(facts) != 1 || facts[0].Value != "tea" {
			t.Errorf("facts %v, %v", facts, err)
		}
	})
}

// Every field of seed 003's UserInTheLoop is in the record.
func TestSeed003_RecordHasEveryFieldOfUserInTheLoop(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	w.say("c", dialog.Message{Text: "mail anna"})
	w.say("c", dialog.Message{Text: "what?", Modality: dialog.Voice})
	r := w.say("c", dialog.Message{Text: "second", Modality: dialog.Voice})
	a := r.Questions[0]
	for name, holds := range map[string]bool{
		"question":               a.Question.Text == "Which Anna?" && strings.Contains(a.Shown, "Which Anna?"),
		"answer":                 a.Answer != nil && a.Answer.Option == "anna-s" && a.Answer.Raw == "second",
		"is_waiting":             a.Status == dialog.Answered && !a.Status.Open(),
		"escaping":               !a.Answer.Escaped,
		"target_agent":           a.Question.Agent == "assistant" && a.Target.Run != "" && a.Target.Interrupt != "",
		"source_node":            a.Question.Node == "contacts",
		"needs_clarification":    a.Question.Kind != dialog.Clarification,
		"needs_confirmation":     a.Question.Kind != dialog.Confirmation,
		"last_question_type":     a.Question.Kind == dialog.Disambiguation,
		"stored_data":            a.Question.StoredData == exactBytes,
		"tool_results":           a.Question.ToolResults == exactBytes,
		"previous_questions":     len(a.Turns) == 2 && strings.Contains(a.Turns[0].Question, "Which Anna?"),
		"previous_answers":       len(a.Turns) == 2 && a.Turns[0].Reply == "what?" && a.Turns[1].Reply == "second",
		"modality":               a.Answer.Modality == dialog.Voice && a.Turns[1].Modality == dialog.Voice,
		"answer reaches the run": last(r) == "Did: mail anna",
	} {
		if !holds {
			data, _ := json.MarshalIndent(a, "", " ") // a record
			t.Errorf("%s: %s", name, data)
		}
	}
}

func TestMessage_RepeatedMessageCountsOnce(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	for range 3 {
		w.say("c", dialog.Message{ID: "m1", Text: "mail anna"})
	}
	r := w.say("c", dialog.Message{ID: "m2", Text: "first"})
	r2 := w.say("c", dialog.Message{ID: "m2", Text: "first"})
	if len(r.Runs) != 1 || len(r.Lines) != 4 || len(r2.Lines) != 4 {
		t.Errorf("%d runs, lines %+v", len(r.Runs), r2.Lines)
	}
}

func TestMessage_ConversationOfAnotherUserIsNotFound(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.say("c", dialog.Message{Text: "hello"})
	_, err := w.handler.Message(t.Context(), account, "c", dialog.Message{Text: "hello", Actor: "bob"})
	if !errors.Is(err, dialog.ErrNotFound) {
		t.Errorf("another user: %v", err)
	}
	if _, err := w.handler.Get(t.Context(), "other", "c"); !errors.Is(err, dialog.ErrNotFound) {
		t.Errorf("another account: %v", err)
	}
	for _, id := range []string{"", "a/b", "..", strings.Repeat("a", 101), "a b"} {
		if _, err := w.handler.Message(t.Context(), account, id, dialog.Message{Text: "x", Actor: user}); !errors.Is(err, dialog.ErrInvalidID) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestMessage_NonBlockingQuestionFollowsTheAnswerAndLapsesWithItsDefault(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	r := w.say("c", dialog.Message{Text: "mail aside"})
	if n := len(r.Lines); r.Lines[n-2].Text != "Done." || r.Lines[n-2].From != dialog.ByAgent || !strings.Contains(last(r), "By the way") {
		t.Fatalf("%+v", r.Lines)
	}
	if facts, _ := w.handler.Facts(t.Context(), account, user, "anna-m"); len(facts) != 1 { // an error has no facts
		t.Errorf("no facts under the default")
	}
	w.say("c", dialog.Message{Text: "hello"})
	r = w.say("c", dialog.Message{Text: "hello again"})
	if a := r.Questions[0]; a.Status != dialog.Lapsed || a.Answer.Option != "anna-m" || a.Answer.Method != dialog.ByDefault {
		t.Errorf("%+v", a)
	}
	if !r.Runs[0].Settled {
		t.Errorf("the run still waits: %+v", r.Runs)
	}
}

func TestMessage_LaterAnswerCorrectsTheDefault(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.say("c", dialog.Message{Text: "mail aside"})
	w.say("c", dialog.Message{Text: "sales"})
	before, err := w.handler.Facts(t.Context(), account, user, "anna-m")
	after, err2 := w.handler.Facts(t.Context(), account, user, "anna-s")
	if err != nil || err2 != nil || len(before) != 0 || len(after) != 1 || after[0].Value != "today" {
		t.Errorf("facts of the default %v, of the answer %v, %v %v", before, after, err, err2)
	}
}

// A correction after the effect says what has happened, and offers to do it again. Then the run
// does not ask again what the user has answered, except for confirmations.
func TestMessage_CorrectionAfterTheEffectOffersToStartAgain(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	for _, text := range []string{"mail anna send", "legal", "yes"} {
		w.say("c", dialog.Message{Text: text})
	}
	r := w.say("c", dialog.Message{Question: "q1", Choice: "anna-s"})
	if n := len(r.Lines); r.Lines[n-2].Text != "Corrected: Anna Schmidt (sales). But the task has already ended with Anna Meier (legal): “Did: mail anna send” That stays as it is." ||
		!strings.Contains(last(r), "Shall I start it again with Anna Schmidt (sales)? You asked: “mail anna send”") || len(r.Runs) != 1 {
		t.Fatalf("%+v", r.Lines)
	}
	if before, after := w.hasFact("anna-m", "tea"), w.hasFact("anna-s", "tea"); before || !after {
		t.Errorf("facts before %v, after %v", before, after)
	}
	r = w.say("c", dialog.Message{Text: "yes"})
	if len(r.Runs) != 2 || r.Runs[1].Again != r.Runs[0].Run || !strings.Contains(last(r), "Send it?") || len(r.Open()) != 1 {
		t.Fatalf("%+v %+v", r.Runs, r.Lines)
	}
	if r = w.say("c", dialog.Message{Text: "yes"}); last(r) != "Did: mail anna send" || len(r.Open()) != 0 {
		t.Errorf("%+v", r.Lines)
	}
	again := r.Questions[slices.IndexFunc(r.Questions, func(a *dialog.Asking) bool {
		return a.Target.Run == r.Runs[1].Run && a.Question.Kind == dialog.Disambiguation
	})]
	if again.Answer.Option != "anna-s" || again.Answer.Method != dialog.ByMemory {
		t.Errorf("%+v", again.Answer)
	}
}

func TestMessage_AnswerIsRememberedForTheUserInAnotherConversation(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	w.say("c1", dialog.Message{Text: "mail usual"})
	w.say("c1", dialog.Message{Text: "legal"})
	r := w.say("c2", dialog.Message{Text: "call usual"})
	if last(r) != "Did: call usual" || r.Questions[0].Answer.Method != dialog.ByMemory {
		t.Fatalf("%+v", r.Lines)
	}
	w.clock.add(91 * 24 * time.Hour)
	if r = w.say("c3", dialog.Message{Text: "call usual"}); !strings.Contains(last(r), "as usual?") {
		t.Errorf("an expired answer was used: %+v", r.Lines)
	}
}

func TestMessage_SomeoneElseIsCreatedWithTheFactsInOneTransaction(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	for _, text := range []string{"mail anna", "someone else", "Anna Weber, auditor, from the fair", "yes"} {
		w.say("c", dialog.Message{Text: text})
	}
	entities, err := w.handler.Entities(t.Context(), account, user)
	if err != nil || len(entities) != 1 || entities[0].Name != "Anna Weber" || entities[0].Role != "auditor" {
		t.Fatalf("%+v, %v", entities, err)
	}
	facts, err := w.handler.Facts(t.Context(), account, user, entities[0].ID)
	if err != nil || len(facts) != 1 {
		t.Errorf("facts %v, %v", facts, err)
	}
	for _, text := range []string{"mail anna", "someone else"} {
		w.say("c", dialog.Message{Text: text})
	}
	if r := w.say("c", dialog.Message{Text: "Anna Webber"}); !strings.Contains(last(r), "already know") {
		t.Errorf("the near duplicate was not found: %s", last(r))
	}
}

func TestMessage_ThreeUnclearRepliesOnVoiceReachAPersonWithTheTranscript(t *testing.T) {
	w := newWorld(t, openStore(t, "clock"))
	w.say("c", dialog.Message{Text: "mail anna", Modality: dialog.Voice})
	for range 3 {
		w.say("c", dialog.Message{Text: "blue", Modality: dialog.Voice})
	}
	list, err := w.executor.ListRequests(t.Context(), account, store.InboxFilter{})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, request := range list {
		if request.Kind == "conversation-hand-over" {
			id = request.ID
			if !strings.Contains(string(request.Data), "blue") || !strings.Contains(string(request.Data), "anna-s") {
				t.Errorf("the request has no transcript or options: %s", request.Data)
			}
		}
	}
	decide := func(value string) error {
		_, err := w.executor.Decide(t.Context(), executor.DecideRequest{
			Account: account, ResumeID: value, Actor: "clerk", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(value)}},
		})
		return err
	}
	if err := decide(`{"option":"anna-x"}`); err == nil {
		t.Error("an unknown option was accepted")
	}
	if err := decide(`{"option":"anna-s"}`); err != nil {
		t.Fatal(err)
	}
	w.clock.add(time.Minute)
	if n, err := w.handler.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d swept, %v", n, err)
	}
	r, err := w.settled("c")
	if err != nil || last(r) != "Did: mail anna" || r.Questions[0].Answer.Method != dialog.ByPerson {
		t.Errorf("%+v, %v", r.Lines, err)
	}
}

func TestSweep_ExpiresQuestionsWithoutAMessage(t *testing.T) {
	w := newWorld(t, openStore(t, "clock"))
	w.say("c", dialog.Message{Text: "do it soon"})
	if n, err := w.handler.Sweep(t.Context()); n != 0 || err != nil {
		t.Fatalf("%d swept, %v", n, err)
	}
	w.clock.add(time.Hour)
	if n, err := w.handler.Sweep(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d swept, %v", n, err)
	}
	r, err := w.settled("c")
	if err != nil || r.Questions[0].Status != dialog.Expired || last(r) != "Did: do it soon" {
		t.Errorf("%+v, %v", r.Lines, err)
	}
}

func TestMessage_NewIntentStartsItsOwnRunAndTheQuestionIsAskedAgain(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	w.model = judge(func(text string) dialog.Judgement {
		return dialog.Judgement{Verdict: dialog.IsNewIntent, Score: 0.95}
	})
	w.restart()
	w.say("c", dialog.Message{Text: "mail anna"})
	r := w.say("c", dialog.Message{Text: "the weather"})
	if n := len(r.Lines); len(r.Runs) != 2 || r.Lines[n-2].Text != "Did: the weather" || !strings.Contains(last(r), "Which Anna?") {
		t.Errorf("%+v", r.Lines)
	}
}

func TestEraseAccount_LeavesNothingOfItsConversations(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	for _, text := range []string{"mail anna usual", "cancel everything", "mail anna", "someone else", "Anna Weber, auditor", "yes", "mail usual", "legal"} {
		w.say("c", dialog.Message{Text: text})
	}
	documents := func() (count int) {
		for _, kind := range []store.DocumentKind{conversation.ConversationDocument, conversation.EntityDocument, conversation.FactsDocument, conversation.MemoryDocument, conversation.ListDocument, conversation.ReportDocument} {
			list, err := w.store.Documents(t.Context(), account, kind, store.DocumentFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range list {
				if len(doc.Body) > 0 {
					count++
				}
			}
		}
		return count
	}
	if n := documents(); n != 6 {
		t.Fatalf("%d documents before", n)
	}
	var exported strings.Builder
	if _, err := w.executor.ExportAccount(t.Context(), account, &exported); err != nil || !strings.Contains(exported.String(), "Anna Weber") {
		t.Errorf("the export has no conversation: %v", err)
	}
	if _, err := w.executor.EraseAccount(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	if n := documents(); n != 0 {
		t.Errorf("%d documents are left", n)
	}
	if _, err := w.handler.Get(t.Context(), account, "c"); !errors.Is(err, dialog.ErrNotFound) {
		t.Errorf("get: %v", err)
	}
	if r := w.say("c", dialog.Message{Text: "mail usual"}); len(r.Lines) != 2 || r.Questions[0].Status != dialog.Asked {
		t.Errorf("a new conversation: %+v", r.Lines)
	}
}

func TestMessage_RunCancelledElsewhereWithdrawsItsQuestion(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	r := w.say("c", dialog.Message{Text: "mail anna"})
	if err := w.executor.Abandon(t.Context(), account, r.Questions[0].Target.Interrupt, abandon(user)); err != nil {
		t.Fatal(err)
	}
	r, err := w.handler.Get(t.Context(), account, "c")
	if err != nil || r.Questions[0].Status != dialog.Withdrawn {
		t.Errorf("%+v, %v", r.Questions[0], err)
	}
}
