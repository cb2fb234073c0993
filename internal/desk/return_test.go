package desk_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

func TestReturn_EscalationEndsTheRequestWithItsReason(t *testing.T) {
	ask := specNeeding(group(2, "group:dba"))
	ask.Requirement.OnEscalate = requirement.EscalateReturns
	w := open(t, ask)
	w.mustRefuse(desk.Code(desk.ErrInvalidText), desk.Escalate{From: w.from("ann")})
	w.mustRefuse(desk.Code(desk.ErrNotMember), desk.Escalate{From: w.from("max"), Reason: "no"})
	w.mustRefuse(desk.Code(desk.ErrExcluded), desk.Escalate{From: w.from("rita"), Reason: "no"})
	w.mustRefuse(desk.Code(desk.ErrNotHuman), desk.Escalate{From: desk.From{Actor: desk.Actor{ID: "run", Kind: desk.ActorAgent}}, Reason: "no"})
	w.apply(desk.Escalate{From: w.from("ann"), Reason: "use the archive"})
	w.mustEnd(desk.OutcomeReturned, "ann")
	if f := w.last.Decision; f.Reason != "use the archive" || f.Digest != "" {
		t.Errorf("decision %+v, want the reason and no approved digest", f)
	}
	if got := w.request.Summary(w.now); got != "returned for redesign by ann: use the archive" {
		t.Errorf("summary %q", got)
	}
	w.mustRefuse(desk.Code(desk.ErrDecided), desk.Approve{From: w.from("bob")})
}

func TestReturn_NeedsTheAuthenticationOfAVote(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.OnEscalate, ask.Requirement.MinAuth = requirement.EscalateReturns, requirement.AuthMFA
	w := open(t, ask)
	w.mustRefuse(desk.Code(desk.ErrWeakAuth), desk.Escalate{From: w.from("ann"), Reason: "no"})
	w.mustBeOpen()
}

func TestReturn_EffectInDoubtIsNeverReturnedOrRejected(t *testing.T) {
	ask := questionSpec()
	ask.Subject.Kind = fermata.EffectInDoubt.Name()
	ask.Requirement.OnEscalate, ask.Requirement.OnTimeout = requirement.EscalateReturns, requirement.RejectOnTimeout
	w := open(t, ask)
	if q := w.request.Requirement; q.OnEscalate == requirement.EscalateReturns || q.OnTimeout == requirement.RejectOnTimeout {
		t.Errorf("requirement %+v", q)
	}
}

func TestTimeout_RuleRejectsAtTheDeadline(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.OnTimeout, ask.Requirement.Deadline = requirement.RejectOnTimeout, hoursOf(2)
	ask.Subject.Rules = []string{"drops"}
	w := open(t, ask)
	w.now = start.Add(2 * time.Hour)
	w.mustRefuse(desk.Code(desk.ErrExpired), desk.Approve{From: w.from("ann")})
	w.apply(desk.Tick{})
	w.mustEnd(desk.OutcomeRejected, desk.ClockName)
	if reason := w.last.Decision.Reason; !strings.Contains(reason, "drops") || !strings.Contains(reason, "2026-11-16 12:00 UTC") {
		t.Errorf("reason %q names no rule or deadline", reason)
	}
}

func TestTimeout_DefaultAnswersOnlyQuestionsThatDeclareOne(t *testing.T) {
	for _, tt := range []struct {
		name string
		ask  desk.RequestSpec
		kind string
		has  bool
		want desk.Outcome
	}{
		{"question", questionSpec(), "review", true, desk.OutcomeAnswered},
		{"question without a default", questionSpec(), "review", false, desk.OutcomeExpired},
		{"gate", questionSpec(), "approval-gate", true, desk.OutcomeExpired},
		{"hold", questionSpec(), "hold", true, desk.OutcomeExpired},
		{"effect in doubt", questionSpec(), fermata.EffectInDoubt.Name(), true, desk.OutcomeExpired},
		{"action", actionSpec(), "approval", true, desk.OutcomeExpired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.ask.Subject.Kind = tt.kind
			tt.ask.Requirement.OnTimeout, tt.ask.Requirement.Deadline = requirement.DefaultOnTimeout, hoursOf(1)
			if tt.has {
				tt.ask.DefaultAnswer = json.RawMessage(`{"score":1}`)
			}
			w := open(t, tt.ask)
			w.now = start.Add(time.Hour)
			w.apply(desk.Tick{})
			if got := w.last.Decision; got.Outcome != tt.want {
				t.Fatalf("outcome %s, want %s", got.Outcome, tt.want)
			}
			if got := string(w.last.Decision.Value); (got != "") != (tt.want == desk.OutcomeAnswered) {
				t.Errorf("value %s", got)
			}
		})
	}
}

func TestEditReasons_EditNeedsAKnownCode(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Exclude, ask.Requirement.EditReasons = nil, []string{"scope", "cost"}
	w := open(t, ask)
	edit := desk.ApproveEdited{From: w.from("ann"), Args: []byte(`{"table":"users","limit":5}`)}
	if err := w.mustRefuse(desk.Code(desk.ErrInvalidEdit), edit); !strings.Contains(err.Error(), "scope, cost") {
		t.Errorf("error %v does not list the codes", err)
	}
	edit.Codes = []string{"other"}
	if err := w.mustRefuse(desk.Code(desk.ErrInvalidEdit), edit); !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("error %v does not name the code", err)
	}
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: dropArgs}) // nothing is edited
	w = open(t, ask)
	edit.From, edit.Codes = w.from("ann"), []string{"cost"}
	w.apply(edit)
	w.mustEnd(desk.OutcomeApproved, "ann")
	if f := w.last.Decision; !slices.Equal(f.Codes, []string{"cost"}) || !slices.Equal(w.request.Edit.Codes, []string{"cost"}) {
		t.Errorf("codes %v and %v", f.Codes, w.request.Edit.Codes)
	}
}

func hoursOf(n int) timespan.Duration { return timespan.Duration(time.Duration(n) * time.Hour) }
