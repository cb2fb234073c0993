package executor_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// refusals returns the refusals in the log, as "actor verb reason".
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
			t.Errorf("a refusal without its run, request or channel: %s", l.Raw)
		}
		all = append(all, said.Actor.Principal+" "+said.Body.Verb+said.Body.Act+" "+said.Body.Why)
	}
	return all
}

// Regression: refused claims, delegations and other acts were not in the log; refused votes were.
func TestRefused_EveryRefusedActIsInTheLog(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		soon := time.Now().Add(time.Minute)
		for _, step := range []struct {
			act  desk.Command
			want error
		}{
			{desk.Claim{From: by("mallory")}, desk.ErrNotMember},
			{desk.Delegate{From: by("bob"), To: "mallory"}, desk.ErrInvalidDelegate},
			{desk.Delegate{From: by("bob"), To: "req"}, desk.ErrInvalidDelegate},
			{desk.AskClarification{From: by("mallory"), Question: "why?"}, desk.ErrNotMember},
			{desk.Snooze{From: by("req"), Until: soon}, desk.ErrExcluded},
			{desk.Extend{From: by("bob"), Until: soon.AddDate(1, 0, 0)}, desk.ErrInvalidTime},
			{desk.Release{From: by("bob")}, desk.ErrNotClaimed},
			{desk.Comment{From: by("bob")}, desk.ErrInvalidText}, // invalid, not refused
		} {
			if _, err := e.Act(t.Context(), "acme", id, step.act); !errors.Is(err, step.want) {
				t.Errorf("%T: %v", step.act, err)
			}
		}
		if err := e.Abandon(t.Context(), "acme", id, desk.Abandon{From: by("mallory")}); !errors.Is(err, desk.ErrNotMember) {
			t.Error(err)
		}
		want := []string{
			"mallory claim not_allowed", "bob delegate not_allowed", "bob delegate not_allowed", "mallory ask_back not_allowed", "req snooze own_request",
			"bob extend not_possible", "bob release not_possible", "mallory abandon not_allowed",
		}
		if got := refusals(t, s); !slices.Equal(got, want) {
			t.Errorf("refusals in the log:\n%s", strings.Join(got, "\n"))
		}
		lines(t, s)
	})
}

// An act that is too late is refused and logged, like a vote that is too late. Viewing is allowed.
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
			t.Errorf("refusals in the log: %q", got)
		}
	})
}

// The log line of a late vote contains the verb, so that an auditor can see whether the person was
// for or against.
func TestRefused_LateVoteIsLoggedWithItsVerb(t *testing.T) {
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
				t.Errorf("the vote of %s is not refused", who)
			}
		}
		got := refusals(t, s)
		slices.Sort(got)
		if want := []string{"ann approve already_decided", "eve approve_with_edits already_decided", "req reject already_decided"}; !slices.Equal(got, want) {
			t.Errorf("refusals in the log: %q", got)
		}
	})
}

// Regression: the line of a refusal could not be written, because the database was busy, but the
// refusal was returned anyway. The client does not repeat the vote after that, so the log never had
// the line.
func TestRefused_IsReturnedOnlyAfterItIsLogged(t *testing.T) {
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
				t.Errorf("write %d fails: the refusal is returned without a line", nth+1)
			}
		}
		if got := refusals(t, s); !slices.Equal(got, []string{"bob approve superseded"}) {
			t.Errorf("write %d fails: refusals in the log: %q", nth+1, got)
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

// Regression: an edit of a field that is not editable was rejected, but not logged.
func TestRefused_EditOfAFieldThatIsNotEditable(t *testing.T) {
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
			t.Errorf("refusals in the log: %q", got)
		}
		request.Targets[id] = executor.Answer{Value: json.RawMessage(yes)}
		if outcome, err := e.Run(t.Context(), request); err != nil {
			t.Error(err)
		} else {
			completed(t, outcome)
		}
	})
}

// The log contains a shown digest only if the client sent it.
func TestAudit_ShownDigestIsTheOneThatTheClientSent(t *testing.T) {
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
					t.Errorf("unexpected shown digest: %s", l.Raw)
				}
			}
		}
		if len(said) != 2 {
			t.Errorf("%d decisions", len(said))
		}
	})
}
