package desk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

// undoable is a request to one dba with an undo window of 30 seconds.
func undoable(t *testing.T, ask desk.RequestSpec) *fixture {
	t.Helper()
	ask.Requirement.Undo = timespan.Duration(30 * time.Second)
	return open(t, ask)
}

func TestUndo_DecisionIsEffectiveAfterTheWindow(t *testing.T) {
	w := undoable(t, actionSpec())
	w.apply(desk.Approve{From: w.from("ann"), Reason: "fine"})
	w.mustBeOpen()
	p := w.request.Pending
	if p == nil || p.By != "ann" || !p.EffectiveAt.Equal(start.Add(30*time.Second)) || p.Outcome != desk.OutcomeApproved || p.Reason != "fine" {
		t.Fatalf("pending = %+v", p)
	}
	if !w.last.NextDue.Equal(p.EffectiveAt) {
		t.Errorf("next due %s, want %s", w.last.NextDue, p.EffectiveAt)
	}
	if want := "approved by ann, effective at 10:00:30 UTC"; w.request.Summary(w.now) != want {
		t.Errorf("summary = %q, want %q", w.request.Summary(w.now), want)
	}
	w.now = p.EffectiveAt.Add(-time.Millisecond)
	if w.apply(desk.Tick{}); w.last.Changed() {
		t.Fatalf("a tick before the end of the window changed %+v", w.last)
	}
	w.now = p.EffectiveAt
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeApproved, "ann")
	decided := w.last.Events[0]
	if decided.Type != desk.EventDecided || decided.By != "ann" || decided.Auth != requirement.AuthSSO || decided.Via != "web" || decided.Detail["shown"] != "shown" || decided.Detail["groups"] != "dba" {
		t.Errorf("event = %+v, want the decision of ann", decided)
	}
	if w.request.Pending != nil {
		t.Error("it is pending and decided")
	}
	w.mustRefuse("already_decided", desk.Undo{From: w.from("ann")})
}

func TestUndo_ForEveryKindOfVote(t *testing.T) {
	for name, test := range map[string]struct {
		ask  desk.RequestSpec
		act  func(w *fixture) desk.Command
		want desk.Outcome
	}{
		"reject":  {actionSpec(), func(w *fixture) desk.Command { return desk.Reject{From: w.from("ann"), Reason: "no"} }, desk.OutcomeRejected},
		"respond": {questionSpec(), func(w *fixture) desk.Command { return desk.Respond{From: w.from("ann"), Value: json.RawMessage(`1`)} }, desk.OutcomeAnswered},
		"edit": {withoutDuties(actionSpec()), func(w *fixture) desk.Command {
			return desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"users","limit":5}`)}
		}, desk.OutcomeApproved},
	} {
		t.Run(name, func(t *testing.T) {
			w := undoable(t, test.ask)
			w.apply(test.act(w))
			w.mustBeOpen()
			w.now = w.now.Add(time.Minute)
			w.apply(desk.Tick{})
			w.mustEnd(test.want, "ann")
			if name == "edit" && string(w.last.Decision.Args) != `{"table":"users","limit":5}` {
				t.Errorf("approved %s", w.last.Decision.Args)
			}
		})
	}
}

func withoutDuties(ask desk.RequestSpec) desk.RequestSpec {
	ask.Requirement.Exclude = nil
	return ask
}

func TestUndo_WithdrawsTheVote(t *testing.T) {
	w := undoable(t, actionSpec())
	w.apply(desk.Approve{From: w.from("ann")})
	w.mustRefuse("not_yours", desk.Undo{From: w.from("bob")})
	w.now = w.now.Add(29 * time.Second)
	w.apply(desk.Undo{From: w.from("ann")})
	w.mustBeOpen()
	if w.request.Pending != nil || len(w.request.Votes) > 0 {
		t.Fatalf("pending %+v, votes %+v", w.request.Pending, w.request.Votes)
	}
	if e := w.last.Events[0]; e.Type != desk.EventVoteWithdrawn || e.By != "ann" || e.Text != "withdrew the vote" {
		t.Errorf("event = %+v", e)
	}
	w.mustHaveProgress("0 of 1, needs 1 × dba")
	w.now = w.now.Add(time.Minute)
	w.apply(desk.Tick{})
	w.mustBeOpen()
	w.apply(desk.Reject{From: w.from("ann"), Reason: "no"}) // and the other way round
	w.now = w.now.Add(time.Minute)
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeRejected, "ann")
}

func TestUndo_RefusedAfterTheWindow(t *testing.T) {
	w := undoable(t, actionSpec())
	w.apply(desk.Approve{From: w.from("ann")})
	w.now = w.now.Add(30 * time.Second) // no tick yet
	w.mustRefuse("already_decided", desk.Undo{From: w.from("ann")})
}

func TestUndo_OnlyTheLastVoteOfAQuorumIsPending(t *testing.T) {
	w := undoable(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("ann")})
	if w.request.Pending != nil {
		t.Fatal("one vote of two is pending")
	}
	w.apply(desk.Approve{From: w.from("bob")})
	err := w.mustRefuse("decision_pending", desk.Reject{From: w.from("cleo"), Reason: "no"})
	if !strings.Contains(err.Error(), "approved by bob, effective at 2026-11-16 10:00:30 UTC") {
		t.Errorf("refused with %v", err)
	}
	w.apply(desk.Undo{From: w.from("bob")})
	w.mustHaveProgress("1 of 2, needs 1 × dba")
	w.apply(desk.Approve{From: w.from("cleo")})
	w.now = w.now.Add(time.Minute)
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeApproved, "ann", "cleo")
}

func TestUndo_EffectiveAtTheDeadlineAtTheLatest(t *testing.T) {
	w := undoable(t, actionSpec())
	w.advanceTo(24*time.Hour - 10*time.Second)
	w.apply(desk.Approve{From: w.from("ann")})
	if p := w.request.Pending; p == nil || !p.EffectiveAt.Equal(w.request.Deadline) {
		t.Fatalf("pending = %+v, deadline %s", p, w.request.Deadline)
	}
	w.now = w.request.Deadline.Add(time.Hour) // the service was down
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestUndo_VoterWhoLeftTheGroupDecidesNothing(t *testing.T) {
	w := undoable(t, actionSpec())
	w.apply(desk.Approve{From: w.from("ann")})
	w.leave("ann")
	w.now = w.now.Add(time.Minute)
	w.apply(desk.Tick{})
	w.mustBeOpen()
	if w.request.Pending != nil {
		t.Error("it is still pending")
	}
	w.mustHaveProgress("0 of 1, needs 1 × dba, the vote of ann no longer counts: has left the group")
}

func TestUndo_NoRemindersWhilePending(t *testing.T) {
	w := undoable(t, actionSpec())
	first := desk.NextDue(w.request, w.now)
	w.now = first.Add(-time.Second)
	w.apply(desk.Approve{From: w.from("ann")})
	sent := len(w.sentTargets(desk.NoticeRemind)) + len(w.sentTargets(desk.NoticeNotify))
	w.now = first.Add(time.Second)
	w.apply(desk.Tick{})
	if now := len(w.sentTargets(desk.NoticeRemind)) + len(w.sentTargets(desk.NoticeNotify)); now != sent {
		t.Errorf("%d notices while a decision is pending", now-sent)
	}
	w.apply(desk.Undo{From: w.from("ann")})
	if !slices.ContainsFunc(w.last.Events, func(e desk.Event) bool { return e.Type == desk.EventRouteStep }) {
		t.Errorf("the step that was due did not follow: %+v", w.last.Events)
	}
}

func TestUndo_EditStays(t *testing.T) {
	w := undoable(t, withoutDuties(actionSpec()))
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"users","limit":5}`)})
	epoch := w.request.RouteProgress.Epoch
	w.apply(desk.Undo{From: w.from("ann"), Reason: "too early"})
	if w.request.Edit == nil || len(w.request.Votes) > 0 || w.request.RouteProgress.Epoch != epoch+1 {
		t.Errorf("edit %+v, votes %+v, epoch %d", w.request.Edit, w.request.Votes, w.request.RouteProgress.Epoch)
	}
}

func TestUndo_WindowIsLimited(t *testing.T) {
	for _, undo := range []timespan.Duration{-1, requirement.MaxUndo + 1} {
		ask := actionSpec()
		ask.Requirement.Undo = undo
		if _, err := desk.New(ask, desk.Env{Now: start}); err == nil || !strings.Contains(err.Error(), "undo") {
			t.Errorf("undo %s: %v", undo, err)
		}
	}
	longer := requirement.Requirement{Undo: timespan.Duration(time.Minute)}
	if merged := (requirement.Requirement{Undo: 1}).Merge(longer); merged.Undo != longer.Undo {
		t.Errorf("merged to %s", merged.Undo)
	}
}
