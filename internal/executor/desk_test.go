package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/timespan"
)

const twoPeople = `
default: allow
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  reason: tables do not come back
  ask:
    groups: [{from: ["group:dba"]}, {from: ["group:owners"]}]
    separation_of_duties: [requester]
    editable: [""]
    deadline: 1h
- id: never
  when: req.tool == "drop-table" && args == "audit"
  then: deny
  reason: not that one
`

// office is an executor whose drops need the approval of a dba and an owner.
func office(t *testing.T, s store.Store, d *dropper, change func(*executor.Config)) *executor.Executor {
	t.Helper()
	return d.executor(t, s, func(c *executor.Config) {
		c.Desk.Policy = loadRules(t, twoPeople)
		c.Desk.Directory = desk.StaticDirectory{"group:dba": {"ann", "bob", "req"}, "group:owners": {"ann", "eve", "req"}}
		if change != nil {
			change(c)
		}
	})
}

// dropAs is a request to start a run that drops the table users, on behalf of who.
func dropAs(who, key string) executor.RunRequest {
	return executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:drop", Input: json.RawMessage(`{"table":"users"}`), Actor: who}
}

func startAs(t *testing.T, e *executor.Executor, who string) fermata.NeedsInput {
	t.Helper()
	return waits(t, mustRun(t, e, dropAs(who, "drop-1")))
}

// says answers the open request as who.
func says(t *testing.T, e *executor.Executor, who, resume, value string) (fermata.Outcome, error) {
	t.Helper()
	request := decision(resume, "approve")
	request.Actor, request.Value = who, json.RawMessage(value)
	return e.Run(t.Context(), addressed(t, e, request))
}

func lines(t *testing.T, s store.Store) (kinds []string) {
	t.Helper()
	end, err := s.AuditHead(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := s.AuditLines(t.Context(), "acme", 0, int(end.Seq))
	if err != nil {
		t.Fatal(err)
	}
	head := chain.Head{}
	for _, l := range kept {
		var said struct{ Kind, Prev string }
		if err := json.Unmarshal(l.Raw, &said); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(l.Raw), "users") {
			t.Errorf("I7: the log holds an argument: %s", l.Raw)
		}
		head = chain.Head{Seq: l.Seq, Hash: chain.Hash(l.Raw)}
		kinds = append(kinds, said.Kind)
	}
	if end != head {
		t.Errorf("the chain ends with %v, want %v", head, end)
	}
	return kinds
}

const yes = `{"verb":"approve"}`

func TestDesk_EachGroupMustApprove(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		asked := startAs(t, e, "req")
		first, err := says(t, e, "bob", "r1", yes)
		if err != nil || len(waits(t, first).Interrupts) != 1 || d.dropped.Load() != 0 {
			t.Fatalf("one of two approvals: %#v, %v", first, err)
		}
		if again, err := says(t, e, "bob", "r1", yes); err != nil || waits(t, again).Interrupts[0].ID != asked.Interrupts[0].ID {
			t.Fatalf("I3: the same answer again: %#v, %v", again, err)
		}
		if _, err := says(t, e, "bob", "r1", `{"verb":"reject","reason":"no"}`); !errors.Is(err, executor.ErrResumeIDReused) {
			t.Fatalf("I3: another answer under the same resume id: %v", err)
		}
		doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
		if err != nil || doc.VoteProgress.String() != "1 of 2, needs 1 × owners" || !slices.Equal(doc.Subject.Rules, []string{"drop"}) {
			t.Fatalf("%s, %+v, %v", doc.VoteProgress, doc.Subject, err)
		}
		last, err := says(t, e, "eve", "r2", yes)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, last)
		if d.dropped.Load() != 1 {
			t.Errorf("dropped %d times", d.dropped.Load())
		}
		want := []string{"run.started", "policy.loaded", "request.asked", "request.decided", "request.decided", "effect.begun", "effect.ended", "run.ended"}
		if got := lines(t, s); !slices.Equal(got, want) {
			t.Errorf("I12: audit lines: %q", got)
		}
		if late, err := says(t, e, "bob", "r1", yes); err != nil || d.dropped.Load() != 1 {
			t.Errorf("I3: the first answer again, after the end: %#v, %v", late, err)
		} else {
			completed(t, late) // the vote counted, and this is the outcome
		}
	})
}

// One person cannot fill two groups, whatever their memberships. The requester has no vote.
func TestDesk_ExcludedAndUnknownPeopleHaveNoVote(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		startAs(t, e, "req")
		for who, want := range map[string]error{"req": desk.ErrExcluded, "mallory": desk.ErrNotMember} {
			_, err := says(t, e, who, "by "+who, yes)
			refused, ok := errors.AsType[*executor.RefusedError](err)
			if !ok || refused.Result != executor.Forbidden || !errors.Is(err, want) {
				t.Errorf("vote of %s: %v", who, err)
			}
		}
		for _, resume := range []string{"r1", "r2"} {
			outcome, err := says(t, e, "ann", resume, yes)
			if err != nil || len(waits(t, outcome).Interrupts) != 1 {
				t.Fatalf("ann alone: %#v, %v", outcome, err)
			}
		}
		if d.dropped.Load() != 0 {
			t.Error("the table was dropped")
		}
		if got := lines(t, s); !slices.Equal(got, []string{"run.started", "policy.loaded", "request.asked", "request.refused", "request.refused", "request.decided"}) {
			t.Errorf("audit lines: %q", got)
		}
	})
}

// An edit is shown to the other approvers, and the policy evaluates it again.
func TestDesk_EditIsShownAndEvaluatedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, nil)
		asked := startAs(t, e, "req").Interrupts[0]
		if _, err := says(t, e, "bob", "r0", `{"verb":"approve","args":"audit"}`); !errors.Is(err, desk.ErrDenied) {
			t.Fatalf("an edit that the policy denies: %v", err)
		}
		if outcome, err := says(t, e, "bob", "r1", `{"verb":"approve","args":"old_users"}`); err != nil {
			t.Fatal(err)
		} else {
			waits(t, outcome)
		}
		request := decision("r2", "approve")
		request.Actor, request.Value = "eve", nil
		request.Targets = map[string]executor.Answer{asked.ID: {Value: json.RawMessage(yes), Shown: executor.EnvelopeDigest(asked.Envelope)}}
		_, err := e.Run(t.Context(), request)
		changed, ok := errors.AsType[*desk.ChangedError](err)
		if !ok || !strings.Contains(changed.Error(), "bob edited") {
			t.Fatalf("I6: an approval of the original arguments: %v", err)
		}
		request.ResumeID = "r3"
		request.Targets[asked.ID] = executor.Answer{Value: json.RawMessage(yes), Shown: changed.Digest}
		outcome, err := e.Run(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if done := completed(t, outcome); !strings.Contains(string(done.Output), "dropped old_users") {
			t.Errorf("I6: output %s", done.Output)
		}
	})
}

func TestDesk_PoliciesAllowAndDeny(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := office(t, s, d, func(c *executor.Config) {
			c.Desk.Policy = loadRules(t, "default: deny\nrules:\n- {id: old, when: 'args.startsWith(\"old_\")', then: allow}\n")
		})
		completed(t, began(t, e, "old", "inproc:drop", `{"table":"old_users"}`))
		if outcome, ok := began(t, e, "new", "inproc:drop", `{"table":"users"}`).(fermata.Failed); !ok {
			t.Errorf("a denied action has the outcome %#v", outcome)
		}
		if d.dropped.Load() != 1 {
			t.Errorf("dropped %d times", d.dropped.Load())
		}
	})
}

func TestDesk_ActsWithoutADecision(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		e := office(t, s, new(dropper), nil)
		id := startAs(t, e, "req").Interrupts[0].ID
		acts(t, e, id,
			desk.View{From: by("bob")}, desk.Claim{From: by("bob")}, desk.Comment{From: by("eve"), Text: "why now?"},
			desk.AskClarification{From: by("bob"), Question: "is there a backup?"})
		doc, err := e.RequestDocument(t.Context(), "acme", id)
		if err != nil || doc.Claim == nil || doc.Claim.By != "bob" || len(doc.Comments) != 1 || len(doc.Clarifications) != 1 || doc.State != desk.StateOpen {
			t.Fatalf("request %+v, %v", doc, err)
		}
		if _, err := e.Act(t.Context(), "acme", id, desk.Claim{From: by("mallory")}); !errors.Is(err, desk.ErrNotMember) {
			t.Errorf("claim by a non-member: %v", err)
		}
		if _, err := e.Act(t.Context(), "acme", id, desk.Approve{From: by("bob")}); !errors.Is(err, executor.ErrIsDecision) {
			t.Errorf("a decision without a resume id: %v", err)
		}
		if _, err := e.Act(t.Context(), "other", id, desk.View{From: by("bob")}); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("I8: from another account: %v", err)
		}
		if err := e.Cancel(t.Context(), "acme", "drop-1", by("req")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Act(t.Context(), "acme", id, desk.Comment{From: by("bob"), Text: "?"}); !errors.Is(err, desk.ErrWithdrawn) {
			t.Errorf("comment after the run was cancelled: %v", err)
		}
	})
}

// Each step of a route is taken once, however many replicas poll. No step is taken for a decided
// request.
func TestI10_EachStepOfARouteIsTakenOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		var mu sync.Mutex
		told := make(map[string]int)
		decided := make(chan struct{})
		change := func(c *executor.Config) {
			c.Desk.Routes = map[string]desk.Route{"default": {Name: "default", Cap: timespan.Duration(2 * time.Hour), Steps: []desk.Step{
				{Notify: []string{"inbox"}}, {At: timespan.Duration(20 * time.Millisecond), Remind: []string{"inbox"}},
				{At: timespan.Duration(40 * time.Millisecond), Page: []string{"oncall:dba"}, Severity: "error"}, {At: timespan.Duration(time.Hour), Expire: "stale"},
			}}}
			c.Desk.Channels = []channel.Channel{channel.Notify(func(_ context.Context, account string, n desk.Notice) error {
				mu.Lock()
				defer mu.Unlock()
				if account != "acme" {
					t.Errorf("a notice for account %s", account)
				}
				told[string(n.Kind)+" "+n.Key]++
				if n.Kind == desk.NoticeResolve {
					close(decided)
				}
				if n.Kind == desk.NoticeRemind && told[string(n.Kind)+" "+n.Key] == 1 {
					return errors.New("the channel is down")
				}
				return nil
			})}
		}
		a, b := office(t, s, new(dropper), change), office(t, s, new(dropper), change)
		a.StartWorkers()
		b.StartWorkers()
		startAs(t, a, "req")
		has := func(kind string) bool {
			mu.Lock()
			defer mu.Unlock()
			for key := range told {
				if strings.HasPrefix(key, kind) {
					return true
				}
			}
			return false
		}
		eventually(t, func() bool { return has("page ") })
		for _, who := range []string{"bob", "eve"} {
			if _, err := says(t, a, who, "by "+who, yes); err != nil {
				t.Fatal(err)
			}
		}
		<-decided
		mu.Lock()
		defer mu.Unlock()
		for key, times := range told {
			if want := 1; strings.HasPrefix(key, "remind ") && times == 2 {
				continue // the channel was down the first time
			} else if times != want {
				t.Errorf("%s was delivered %d times", key, times)
			}
		}
	})
}

func TestI11_UndecidedRequestExpires(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		d := new(dropper)
		e := d.executor(t, s, func(c *executor.Config) { c.RequestTimeout = 30 * time.Millisecond })
		asked := startDrop(t, e)
		e.StartWorkers()
		view := func() desk.Request {
			doc, err := e.RequestDocument(t.Context(), "acme", asked.Interrupts[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			return doc
		}
		eventually(t, func() bool { return view().State != desk.StateOpen })
		if doc := view(); doc.State != desk.StateExpired || doc.Decision.Outcome != desk.OutcomeExpired {
			t.Errorf("request %+v", doc)
		}
		if got := lines(t, s); !slices.Contains(got, "request.expired") || slices.Contains(got, "request.decided") || d.dropped.Load() != 0 {
			t.Errorf("audit lines: %q", got)
		}
	})
}

func onStores(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	onEachStore(t, func(t *testing.T, open func() store.Store) { test(t, open()) })
}
