package runs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
)

func TestList_NewestFirstWithTitleAndOpenQuestions(t *testing.T) {
	w := newWorld(t, openStore(t, "sqlite"))
	w.say("c1", dialog.Message{Text: "mail anna " + strings.Repeat("ä", 100)})
	w.say("c2", dialog.Message{Text: "hello"})
	list := func() []conversation.Summary {
		t.Helper()
		all, err := w.handler.List(t.Context(), account, user)
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		return all
	}
	if all := list(); all[0].ID != "c2" || all[0].Open != 0 || all[1].Open != 1 || !strings.HasPrefix(all[1].Title, "mail anna ä") || len([]rune(all[1].Title)) != 81 {
		t.Errorf("%+v", all)
	}
	w.say("c1", dialog.Message{Text: "second"})
	if all := list(); all[0].ID != "c1" || all[0].Open != 0 || !strings.HasPrefix(all[0].Title, "mail anna") {
		t.Errorf("%+v", all)
	}
	if other, err := w.handler.List(t.Context(), account, "bob"); err != nil || len(other) != 0 {
		t.Errorf("another user: %+v, %v", other, err)
	}
}

func TestCreate_OnceAndOnlyForItsUser(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	opening := conversation.Opening{User: user, Assistant: "mail", Language: dialog.German}
	for range 2 {
		r, err := w.handler.Create(t.Context(), account, "c", opening)
		if err != nil || r.Assistant != "mail" || r.Language != dialog.German || r.Lines == nil {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := w.handler.Message(t.Context(), account, "c", dialog.Message{Text: "hello", Actor: user, Language: dialog.English}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.handler.Create(t.Context(), account, "c", opening); err != nil {
		t.Errorf("repeated after a message in another language: %v", err)
	}
	opening.Language = dialog.French
	if _, err := w.handler.Create(t.Context(), account, "c", opening); !errors.Is(err, conversation.ErrExists) {
		t.Errorf("another language: %v", err)
	}
	opening.Assistant, opening.Language = "other", dialog.German
	if _, err := w.handler.Create(t.Context(), account, "c", opening); !errors.Is(err, conversation.ErrExists) {
		t.Errorf("another assistant: %v", err)
	}
	opening.User = "bob"
	if _, err := w.handler.Create(t.Context(), account, "c", opening); !errors.Is(err, dialog.ErrNotFound) {
		t.Errorf("another user: %v", err)
	}
}

func TestAccept_ReturnsBeforeTheRunAndHintsItsWatchers(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	changed, stop := w.handler.Watch(account, "c")
	defer stop()
	r, err := w.handler.Accept(t.Context(), account, "c", dialog.Message{ID: "m1", Text: "mail anna", Actor: user})
	if err != nil || !r.Working || len(r.Lines) != 1 || r.Lines[0].Message != "m1" || len(r.Runs) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	select {
	case <-changed:
	default:
		t.Error("no hint")
	}
	if r, err = w.handler.Advance(t.Context(), account, "c"); err != nil || len(r.Questions) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
