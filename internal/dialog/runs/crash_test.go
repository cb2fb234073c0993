package runs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/testtier"
)

type judge func(text string) dialog.Judgement

func (j judge) Judge(_ context.Context, _ dialog.Asking, reply string) (dialog.Judgement, error) {
	return j(reply), nil
}

func abandon(by string) desk.Abandon {
	return desk.Abandon{From: desk.From{Actor: desk.Actor{ID: by, Kind: desk.ActorHuman}}, Reason: "changed"}
}

type documents = conversation.Documents

var errCrash = errors.New("crashed")

// crashing fails calls of the store and of the runs, before or after they are done, as the death of
// the process does.
type crashing struct {
	documents
	runs conversation.Runs
	rand *rand.Rand
	rate float64
}

func (c *crashing) crash(call func() error) error {
	switch at := c.rand.Float64(); {
	case at < c.rate/2:
		return errCrash
	case at < c.rate:
		if err := call(); err != nil {
			return err
		}
		return errCrash
	}
	return call()
}

func (c *crashing) CommitWrites(ctx context.Context, account string, w store.Writes) error {
	return c.crash(func() error { return c.documents.CommitWrites(ctx, account, w) })
}

func (c *crashing) Start(ctx context.Context, account string, s dialog.Start) error {
	return c.crash(func() error { return c.runs.Start(ctx, account, s) })
}

func (c *crashing) Resume(ctx context.Context, account string, r conversation.Resume) error {
	return c.crash(func() error { return c.runs.Resume(ctx, account, r) })
}

func (c *crashing) State(ctx context.Context, account, run string) (conversation.RunState, error) {
	return c.runs.State(ctx, account, run)
}

var words = []string{"anna", "send", "subject", "soon", "aside"}

var replies = []dialog.Message{
	{Text: "yes"}, {Text: "no"}, {Text: "ok"}, {Text: "first"}, {Text: "sales"}, {Text: "Anna"}, {Text: "lunch on Friday"}, {Text: "cancel"}, {Text: "why?"}, {Text: "someone else"},
	{Text: "Eva Braun, auditor"}, {Text: "cancel everything"}, {Text: "2"}, {Text: "blue", Modality: dialog.Voice}, {Text: "yes", Modality: dialog.Voice, Recognition: 0.6},
}

// Random conversations with crashes and restarts: every message counts once, every question of a
// run ends answered, escaped, expired, lapsed or open, once, its run got exactly that answer, and
// facts are at the chosen entity.
func TestProperty_ConversationsSurviveCrashes(t *testing.T) {
	soak := testtier.IsSoak()
	for kind, conversations := range map[string]int{"memory": 25, "sqlite": 25, "postgres": 8} {
		seed := uint64(7)
		if soak {
			conversations, seed = conversations*20, rand.Uint64()
		}
		t.Run(kind, func(t *testing.T) {
			t.Log("seed", seed)
			w := newWorld(t, openStore(t, kind))
			random := rand.New(rand.NewPCG(32, seed))
			w.wrap = func(d conversation.Documents, r conversation.Runs) (conversation.Documents, conversation.Runs) {
				c := &crashing{documents: d, runs: r, rand: random, rate: 0.15}
				return c, c
			}
			w.restart()
			ended := make(map[dialog.Status]int)
			for n := range conversations {
				conversation := fmt.Sprintf("c%d", n)
				messages := 4 + random.IntN(8)
				for m := range messages {
					msg := replies[random.IntN(len(replies))]
					if m == 0 || random.IntN(4) == 0 {
						first, second := random.IntN(len(words)), 1+random.IntN(len(words)-1)
						msg = dialog.Message{Text: words[first] + " " + words[(first+second)%len(words)]}
					}
					if random.IntN(10) == 0 {
						w.clock.add(2 * time.Hour)
					}
					msg.ID, msg.Actor = fmt.Sprintf("m%d", m), user
					w.untilDone(func() error {
						w.clock.add(time.Second)
						_, err := w.handler.Message(t.Context(), account, conversation, msg)
						return err
					})
				}
				if random.IntN(5) == 0 {
					w.restart()
				}
				var r dialog.Record
				w.untilDone(func() (err error) {
					r, err = w.handler.Get(t.Context(), account, conversation)
					return err
				})
				w.checkConversation(r, messages, ended)
			}
			for _, status := range []dialog.Status{dialog.Answered, dialog.Escaped, dialog.Expired, dialog.Asked, dialog.Lapsed} {
				if ended[status] == 0 && conversations >= 25 {
					t.Errorf("no question is %s: %v", status, ended)
				}
			}
			t.Log(ended)
		})
	}
}

// untilDone repeats a call with a new handler after each crash.
func (w *world) untilDone(call func() error) {
	w.t.Helper()
	for range 200 {
		err := call()
		if err == nil {
			return
		}
		if !errors.Is(err, errCrash) {
			w.t.Fatal(err)
		}
	}
	w.t.Fatal("200 crashes in a row")
}

func (w *world) checkConversation(r dialog.Record, messages int, ended map[dialog.Status]int) {
	w.t.Helper()
	said := 0
	for _, line := range r.Lines {
		if line.From == dialog.ByUser {
			said++
		}
	}
	if said != messages {
		w.t.Errorf("%s: %d messages were sent, %d are in the record", r.ID, messages, said)
	}
	asked := make(map[string]bool)
	for _, a := range r.Questions {
		ended[a.Status]++
		if asked[a.Target.Interrupt] {
			w.t.Errorf("%s: the interrupt %s has two questions", r.ID, a.Target.Interrupt)
		}
		asked[a.Target.Interrupt] = true
		if a.Status.Open() == (a.Answer != nil) || a.Status == dialog.Withdrawn || a.Undelivered != "" {
			w.t.Errorf("%s: %s is %s with answer %v, undelivered %q", r.ID, a.ID, a.Status, a.Answer, a.Undelivered)
		}
		w.checkFacts(r.ID, a)
	}
	for _, link := range r.Runs {
		view, err := w.executor.GetRun(w.t.Context(), account, link.Run)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, i := range view.Interrupts {
			if !asked[i.ID] && link.Question == "" {
				w.t.Errorf("%s: the question %s of %s was not asked", r.ID, i.ID, link.Run)
			}
		}
		if done, ok := view.Outcome.(fermata.Completed); ok && link.Question == "" {
			w.checkAnswers(r, link.Run, done)
		}
	}
}

// checkAnswers compares the answers that the run got with the record.
func (w *world) checkAnswers(r dialog.Record, run string, done fermata.Completed) {
	w.t.Helper()
	var output work
	if err := json.Unmarshal(done.Output, &output); err != nil {
		w.t.Fatal(err)
	}
	for _, a := range r.Questions {
		if a.Target.Run != run {
			continue
		}
		found := false
		for word, got := range output.Got {
			if questions[word].Text != a.Question.Text {
				continue
			}
			found = true
			same, _ := json.Marshal(got) // an answer
			want, _ := json.Marshal(a.Answer)
			if string(same) != string(want) {
				w.t.Errorf("%s: %s got %s, the record has %s", r.ID, run, same, want)
			}
		}
		if !found {
			w.t.Errorf("%s: %s has no answer to %q", r.ID, run, a.Question.Text)
		}
	}
}

// checkFacts looks for the facts of a question at the entity that was chosen, and only there.
func (w *world) checkFacts(conversation string, a *dialog.Asking) {
	w.t.Helper()
	if len(a.Question.Facts) == 0 {
		return
	}
	want := a.Question.Default
	if a.Status == dialog.Answered {
		want = a.Answer.Option
	}
	entities := []string{"anna-m", "anna-s"}
	if want != "" && !slices.Contains(entities, want) {
		entities = append(entities, want)
	}
	for _, entity := range entities {
		facts, err := w.handler.Facts(w.t.Context(), account, user, entity)
		if err != nil {
			w.t.Fatal(err)
		}
		count := 0
		for _, f := range facts {
			if f.Conversation == conversation && f.Question == a.ID {
				count++
			}
		}
		if expected := map[bool]int{true: len(a.Question.Facts)}[entity == want]; count != expected {
			w.t.Errorf("%s: %s has %d facts of %s (%s), want %d", conversation, entity, count, a.ID, a.Status, expected)
		}
	}
}
