package runs_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/dialog/voice"
)

// call plays a call, checks that each text is short and has at most three options, and returns the
// conversation.
func (w *world) call(replies ...voice.Heard) (dialog.Record, []string) {
	w.t.Helper()
	line := &voice.Script{Replies: replies}
	call := voice.Call{Handler: w.handler, Account: account, Conversation: "c", User: user, Line: line}
	if err := call.Run(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	for _, said := range line.Said {
		if len(said) > 160 || strings.Count(said, ": ") > 3 {
			w.t.Errorf("too long to listen to: %s", said)
		}
	}
	r, err := w.handler.Get(w.t.Context(), account, "c")
	if err != nil {
		w.t.Fatal(err)
	}
	return r, line.Said
}

func spoken(texts ...string) (all []voice.Heard) {
	for _, text := range texts {
		all = append(all, voice.Heard{Text: text, Confidence: 0.9})
	}
	return all
}

func keys(digits string) voice.Heard { return voice.Heard{Digits: digits} }

func TestCall_ReadsThreeOptionsThenMore(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	r, said := w.call(append(spoken("book room", "more"), keys("5"))...)
	if len(said) != 3 || !strings.Contains(said[0], "“more”") || strings.Contains(said[0], "Lima") || !strings.Contains(said[1], "5: Oslo") {
		t.Errorf("%q", said)
	}
	if a := r.Questions[0]; a.Answer == nil || a.Answer.Option != "oslo" || a.Answer.Method != dialog.ByOrdinal || said[2] != "Did: book room" {
		t.Errorf("%+v, %q", a.Answer, said)
	}
}

func TestCall_BadlyRecognizedAnswerIsReadBack(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	r, said := w.call(append(spoken("mail anna"), voice.Heard{Text: "second", Confidence: 0.5}, voice.Heard{Text: "yes", Confidence: 0.9})...)
	if !strings.Contains(said[1], "Anna Schmidt") || r.Questions[0].Answer.Method != dialog.ByReadBack || said[len(said)-1] != "Did: mail anna" {
		t.Errorf("%q, %+v", said, r.Questions[0].Answer)
	}
}

func TestCall_RiskyYesIsReadBack(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	if r, said := w.call(append(spoken("send it", "ok"), keys("1"))...); r.Questions[0].Status != dialog.Asked {
		t.Fatalf("%q: %s", said, r.Questions[0].Status)
	}
	if r, _ := w.call(spoken("yes")...); r.Questions[0].Status != dialog.Confirming {
		t.Fatal(r.Questions[0].Status)
	}
	if r, said := w.call(spoken("yes")...); !r.Questions[0].Answer.Yes || !strings.Contains(said[0], "once more") {
		t.Errorf("%q, %+v", said, r.Questions[0].Answer)
	}
}

func TestCall_CriticalConfirmationMovesToTheScreen(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	r, said := w.call(append(spoken("wire", "yes", "yes"), keys("1"))...)
	if a := r.Questions[0]; a.Status != dialog.Asked || !a.Screen || !strings.Contains(said[1], "on the screen") {
		t.Fatalf("%q, %s", said, a.Status)
	}
	if r = w.say("c", dialog.Message{Question: r.Questions[0].ID, Choice: dialog.ChoiceYes}); !r.Questions[0].Answer.Yes || r.Questions[0].Answer.Method != dialog.ByButton {
		t.Errorf("%+v", r.Questions[0].Answer)
	}
}

func TestCall_QuestionOfAnEarlierCallIsRepeated(t *testing.T) {
	w := newWorld(t, openStore(t, "memory"))
	_, first := w.call(spoken("mail anna subject")...)
	if len(first) != 1 {
		t.Fatalf("two questions were spoken at once: %q", first)
	}
	w.restart()
	_, said := w.call(spoken("legal", "lunch")...)
	if said[0] != first[0] || !strings.Contains(said[1], "Which subject?") || said[2] != "Did: mail anna subject" {
		t.Errorf("%q then %q", first, said)
	}
}
