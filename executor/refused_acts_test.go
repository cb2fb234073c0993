package executor_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// refusalReasons are the refusals in the log, as "who what why".
func refusals(t *testing.T, s store.Store) (all []string) {
	t.Helper()
	kept, err := s.AuditLines(t.Context(), "acme", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range kept {
		var said struct {
			Kind  string
			Actor struct{ Principal, Via string }
			Place struct{ Run, Request string }
			Body  struct{ Verb, Act, Why string }
		}
		if err := json.Unmarshal(l.Raw, &said); err != nil {
			t.Fatal(err)
		}
		if said.Kind != "request.refused" {
			continue
		}
		if said.Place.Run == "" || said.Place.Request == "" || said.Actor.Via == "" {
			t.Errorf("a refusal that does not say where it was, or through which channel: %s", l.Raw)
		}
		all = append(all, said.Actor.Principal+" "+said.Body.Verb+said.Body.Act+" "+said.Body.Why)
	}
	return all
}

// A claim, a delegation and everything else that the desk refused left no trace, and a refused word did.
func TestRefused_WhateverPeopleAreNotLetDoIsInTheLog(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		soon := time.Now().Add(time.Minute)
		for _, step := range []struct {
			act  desk.Command
			want error
		}{
			{desk.Claim{From: by("mallory")}, desk.ErrNotMember},
			{desk.Delegate{From: by("bob"), To: "mallory"}, desk.ErrNotMember},
			{desk.Delegate{From: by("bob"), To: "req"}, desk.ErrExcluded},
			{desk.AskClarification{From: by("mallory"), Question: "why?"}, desk.ErrNotMember},
			{desk.Snooze{From: by("req"), Until: soon}, desk.ErrExcluded},
			{desk.Extend{From: by("bob"), Until: soon.AddDate(1, 0, 0)}, desk.ErrInvalidTime},
			{desk.Release{From: by("bob")}, desk.ErrNotClaimed},
			{desk.Comment{From: by("bob")}, desk.ErrInvalidText}, // a mistake, and no refusal
		} {
			if _, err := e.Act(t.Context(), "acme", id, step.act); !errors.Is(err, step.want) {
				t.Errorf("%T: %v", step.act, err)
			}
		}
		if err := e.Abandon(t.Context(), "acme", id, desk.Abandon{From: by("mallory")}); !errors.Is(err, desk.ErrNotMember) {
			t.Error(err)
		}
		want := []string{
			"mallory claim not_allowed", "bob delegate not_allowed", "bob delegate own_request", "mallory ask_back not_allowed", "req snooze own_request",
			"bob extend not_possible", "bob release not_possible", "mallory escape not_allowed",
		}
		if got := refusals(t, s); !slices.Equal(got, want) {
			t.Errorf("the log has the refusals\n%s", strings.Join(got, "\n"))
		}
		lines(t, s)
	})
}

// An act that comes too late is refused, and is in the log like a word that comes too late. To look is none.
func TestRefused_TooLate(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		if err := e.Cancel(t.Context(), "acme", "drop-1", by("req")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Act(t.Context(), "acme", id, desk.Comment{From: by("bob"), Text: "too late?"}); !errors.Is(err, desk.ErrWithdrawn) {
			t.Error(err)
		}
		if _, err := e.Act(t.Context(), "acme", id, desk.View{From: by("bob")}); err != nil {
			t.Error(err)
		}
		if got := refusals(t, s); !slices.Equal(got, []string{"bob comment superseded"}) {
			t.Errorf("the log has the refusals %q", got)
		}
	})
}

// A word that is too late says what it would have been: whoever comes a year later wants to know whether somebody was for it or against it.
func TestRefused_AWordThatIsTooLateSaysWhatItWas(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		say := func(who, value string) error {
			request := decision("by "+who, "approve")
			request.Actor, request.Via, request.Value = who, "test", nil
			request.Targets = map[string]executor.Answer{id: {Value: json.RawMessage(value)}}
			_, err := e.Run(t.Context(), request)
			return err
		}
		if err := say("bob", `{"verb":"reject","reason":"no"}`); err != nil {
			t.Fatal(err)
		}
		for who, value := range map[string]string{"ann": yes, "eve": `{"verb":"approve","args":"others"}`, "req": `{"verb":"reject","reason":"no"}`} {
			if _, ok := errors.AsType[*executor.RefusedError](say(who, value)); !ok {
				t.Errorf("%s is not refused", who)
			}
		}
		got := refusals(t, s)
		slices.Sort(got)
		if want := []string{"ann approve already_decided", "eve approve_with_edits already_decided", "req reject already_decided"}; !slices.Equal(got, want) {
			t.Errorf("the log has the refusals %q", got)
		}
	})
}

// The line of a refusal could not be written, because the database was busy for too long, and the one who was refused was told so all the same: nobody repeats
// a word after that, and the log never had it.
func TestRefused_NobodyIsToldBeforeItIsInTheLog(t *testing.T) {
	for nth := range 3 {
		s := &hiccup{Store: memory.NewStore(nil), what: "Amend"}
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		if err := e.Cancel(t.Context(), "acme", "drop-1", by("req")); err != nil {
			t.Fatal(err)
		}
		late := word("bob", "drop-1", "late", id, yes)
		late.Via = "test"
		s.left = nth + 1
		for range 2 {
			_, err := e.Run(t.Context(), late)
			if _, told := errors.AsType[*executor.RefusedError](err); told && len(refusals(t, s)) == 0 {
				t.Errorf("write %d fails: he is told, and there is no line", nth+1)
			}
		}
		if got := refusals(t, s); !slices.Equal(got, []string{"bob approve superseded"}) {
			t.Errorf("write %d fails: the log has the refusals %q", nth+1, got)
		}
	}
}

const fixedTable = `
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask:
    groups: [{from: ["group:dba"]}]
    editable: ["/reason"]
    deadline: 1h
`

// Whoever changes what nobody may change is told that it does not fit. It was not in the log, and whoever wants to know what somebody tried looks there.
func TestRefused_AnEditOfWhatMustNotBeEdited(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), func(c *executor.Config) { c.Desk.Policy = loadRules(t, fixedTable) })
		id := startAs(t, e, "req").Interrupts[0].ID
		request := decision("r1", "approve")
		request.Actor, request.Via, request.Value = "bob", "test", nil
		request.Targets = map[string]executor.Answer{id: {Value: json.RawMessage(`{"verb":"approve","args":"audit"}`)}}
		if _, err := e.Run(t.Context(), request); !errors.Is(err, desk.ErrInvalidEdit) {
			t.Fatal(err)
		}
		if got := refusals(t, s); !slices.Equal(got, []string{"bob approve_with_edits bad_answer"}) {
			t.Errorf("the log has the refusals %q", got)
		}
		request.Targets[id] = executor.Answer{Value: json.RawMessage(yes)}
		if outcome, err := e.Run(t.Context(), request); err != nil {
			t.Error(err)
		} else {
			completed(t, outcome)
		}
	})
}

// The log says what somebody was shown if they said so, and not because it was there to be seen.
func TestAudit_WhatWasShownIsWhatSomebodySaysThatTheySaw(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		asked := startAs(t, e, "req").Interrupts[0]
		say := func(who, shown string) {
			request := decision("by "+who, "approve")
			request.Actor, request.Value = who, nil
			request.Targets = map[string]executor.Answer{asked.ID: {Value: json.RawMessage(yes), Shown: shown}}
			if _, err := e.Run(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		say("bob", "")
		say("eve", executor.EnvelopeDigest(asked.Envelope))
		kept, err := s.AuditLines(t.Context(), "acme", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		said := make(map[string]bool)
		for _, l := range kept {
			if strings.Contains(string(l.Raw), `"kind":"request.decided"`) {
				said[string(l.Raw)] = strings.Contains(string(l.Raw), `"rendered":`)
				if strings.Contains(string(l.Raw), `"principal":"eve"`) != said[string(l.Raw)] {
					t.Errorf("who said what they saw? %s", l.Raw)
				}
			}
		}
		if len(said) != 2 {
			t.Errorf("%d decisions", len(said))
		}
	})
}
