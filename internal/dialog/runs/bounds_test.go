package runs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// bodySize returns the size of the document of a conversation.
func (w *world) bodySize(id string) int {
	w.t.Helper()
	documents := encrypted.New(w.store, w.sealer)
	doc, err := documents.Document(w.t.Context(), account, conversation.ConversationDocument, id)
	if err != nil {
		w.t.Fatal(err)
	}
	body, err := documents.Body(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	return len(body)
}

// A message writes the same amount however long the conversation is, and nothing is lost.
func TestBounds_LongConversationIsStoredInParts(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	const messages = 200
	half, most := 0, 0
	var r dialog.Record
	for n := range messages {
		text := fmt.Sprint("hello ", n)
		switch n % 4 {
		case 1:
			text = "mail anna"
		case 2:
			text = "legal"
		}
		r = w.say("c", dialog.Message{Text: text})
		if most = max(most, w.bodySize("c")); n == messages/2 {
			half = most
			w.restart()
		}
	}
	if most > half+half/10 {
		t.Errorf("the document has up to %d bytes, and %d in the first half", most, half)
	}
	if r.Earlier == 0 || len(r.Lines) >= 200 {
		t.Errorf("%d lines after %d earlier ones", len(r.Lines), r.Earlier)
	}
	whole, err := w.handler.Get(t.Context(), account, "c")
	if err != nil {
		t.Fatal(err)
	}
	if len(whole.Lines) != r.Earlier+len(r.Lines) || len(whole.Runs) != messages*3/4 || len(whole.Questions) != messages/4 || whole.Earlier != 0 {
		t.Errorf("%d lines, %d runs, %d questions", len(whole.Lines), len(whole.Runs), len(whole.Questions))
	}
	for i, line := range whole.Lines {
		if line.N != i+1 {
			t.Fatalf("line %d has the number %d", i+1, line.N)
		}
	}
	seen := make(map[string]bool)
	for _, link := range whole.Runs {
		if seen[link.Run] || !link.Settled {
			t.Errorf("run %+v", link)
		}
		seen[link.Run] = true
	}
	for _, a := range whole.Questions {
		if a.Status != dialog.Answered || seen[a.ID] {
			t.Errorf("%s is %s", a.ID, a.Status)
		}
		seen[a.ID] = true
	}
	if lines, complete := r.Since(r.Earlier); !complete || len(lines) != len(r.Lines) {
		t.Errorf("%d lines since %d", len(lines), r.Earlier)
	}
	if _, complete := r.Since(r.Earlier - 1); complete {
		t.Error("the newest part does not have the line before it")
	}
	list, err := w.handler.List(t.Context(), account, user)
	if err != nil || list[0].Title != "hello 0" || !list[0].At.Equal(w.clock.Now()) {
		t.Errorf("%+v, %v", list, err)
	}
	report, err := w.handler.Report(t.Context(), account, time.Time{}, time.Time{})
	if err != nil || report.Runs != messages*3/4 || report.RunsWithQuestions != messages/4 || report.Conversations != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestBounds_LongMessagesAreMovedToParts(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	for range 40 {
		w.say("c", dialog.Message{Text: strings.Repeat("long ", 3000)})
	}
	if size := w.bodySize("c"); size > 600<<10 {
		t.Errorf("%d bytes", size)
	}
	if r, err := w.handler.Get(t.Context(), account, "c"); err != nil || len(r.Lines) != 80 {
		t.Errorf("%d lines, %v", len(r.Lines), err)
	}
}

// A conversation has at most 20 open questions. The rest is asked when these are answered.
func TestBounds_FurtherQuestionsAreAskedAfterTheFirst(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	var words []string
	for n := range 30 {
		words = append(words, fmt.Sprint("subject-", n))
	}
	r := w.say("c", dialog.Message{Text: strings.Join(words, " ")})
	for asked := 20; asked <= 30; asked += 10 {
		if len(r.Questions) != asked {
			t.Fatalf("%d questions, want %d", len(r.Questions), asked)
		}
		parts := make(map[string]dialog.Reply)
		for _, a := range r.Open() {
			parts[a.ID] = dialog.Reply{Text: "lunch"}
			if len(parts) == 10 {
				break
			}
		}
		r = w.say("c", dialog.Message{Replies: parts})
	}
	parts := make(map[string]dialog.Reply)
	for _, a := range r.Open() {
		parts[a.ID] = dialog.Reply{Text: "lunch"}
	}
	if r = w.say("c", dialog.Message{Replies: parts}); !strings.HasPrefix(last(r), "Did: subject-0") {
		t.Errorf("%s", last(r))
	}
}

// After the retention the questions expire, their runs end, and the conversation is deleted. The
// report stays.
func TestRetention_SilentConversationIsDeleted(t *testing.T) {
	w := newWorld(t, openStore(t, "clock"))
	w.retention = 30 * 24 * time.Hour
	w.restart()
	for range 130 {
		w.say("c", dialog.Message{Text: "hello"})
	}
	w.say("c", dialog.Message{Text: "mail anna"})
	w.say("kept", dialog.Message{Text: "hello"})
	began := w.clock.Now()
	sweep := func() {
		t.Helper()
		if _, err := w.handler.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.add(29 * 24 * time.Hour)
	w.say("kept", dialog.Message{Text: "hello again"})
	sweep()
	r, err := w.handler.Get(t.Context(), account, "c")
	if err != nil || r.Questions[0].Status != dialog.Asked {
		t.Fatalf("before the retention: %v", err)
	}
	run := r.Questions[0].Target.Run
	w.clock.add(24 * time.Hour)
	sweep()
	if _, err := w.settled("c"); !errors.Is(err, dialog.ErrNotFound) {
		t.Errorf("after the retention: %v", err)
	}
	if view, err := w.executor.GetRun(t.Context(), account, run); err != nil || view.Status != "completed" {
		t.Errorf("its run: %v, %v", view.Status, err)
	}
	if list, err := w.handler.List(t.Context(), account, user); err != nil || len(list) != 1 || list[0].ID != "kept" {
		t.Errorf("%+v, %v", list, err)
	}
	for kind, id := range map[store.DocumentKind]string{conversation.ConversationDocument: "c", conversation.PartDocument: "c/000001"} {
		if doc, err := w.store.Document(t.Context(), account, kind, id); err != nil || len(doc.Body) != 0 || !doc.DueAt.IsZero() {
			t.Errorf("%s has %d bytes, %v", id, len(doc.Body), err)
		}
	}
	for from, want := range map[time.Time]int{{}: 133, began.AddDate(0, 0, 1): 2} { // hello again, and the expired one
		report, err := w.handler.Report(t.Context(), account, from, time.Time{})
		if err != nil || report.Runs != want {
			t.Errorf("since %v: %d runs, want %d, %v", from, report.Runs, want, err)
		}
	}
	// Another user may use the id again. Nothing is left, and lines are moved to parts again.
	for n := range 130 {
		r, err := w.handler.Message(t.Context(), account, "c", dialog.Message{Text: fmt.Sprint("other ", n), Actor: "bob"})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("Did: other ", n); last(r) != want || n == 0 && (len(r.Lines) != 2 || r.Lines[0].N != 1) {
			t.Fatalf("%+v, want %s", r.Lines, want)
		}
	}
	if r, err := w.handler.Get(t.Context(), account, "c"); err != nil || len(r.Lines) != 260 || r.Lines[0].Text != "other 0" {
		t.Errorf("%d lines, %v", len(r.Lines), err)
	}
}
