package desk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
)

// chainSpec needs one dba, then one of finops.
func chainSpec() desk.RequestSpec {
	first, second := group(1, "group:dba"), group(1, "group:finops")
	second.Stage = 1
	ask := specNeeding(first, second)
	ask.Route = desk.Route{Name: "chain", Steps: []desk.Step{
		{Notify: []string{desk.TargetApprovers}}, {At: hoursOf(1), Remind: []string{desk.TargetApprovers}}, {At: hoursOf(8), Expire: "stale"},
	}, Cap: hoursOf(24)}
	return ask
}

func TestStage_LaterStageWaitsForTheEarlierOne(t *testing.T) {
	w := open(t, chainSpec())
	w.mustHaveProgress("0 of 2, stage 1 of 2, needs 1 × dba")
	err := w.mustRefuse(desk.Code(desk.ErrEarlierStage), desk.Approve{From: w.from("fay")})
	if !strings.Contains(err.Error(), "stage 1 of 2 is open: 1 × dba") {
		t.Errorf("the refusal does not name the open stage: %v", err)
	}
	w.mustRefuse(desk.Code(desk.ErrEarlierStage), desk.Reject{From: w.from("fay"), Reason: "no"})
	if err := desk.CheckEligible(w.request, "fay", w.members); !errors.Is(err, desk.ErrEarlierStage) {
		t.Errorf("CheckEligible: %v, want ErrEarlierStage", err)
	}
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustHaveProgress("1 of 2, stage 2 of 2, needs 1 × finops")
	w.apply(desk.Approve{From: w.from("fay")})
	w.mustEnd(desk.OutcomeApproved, "bob", "fay")
}

func TestStage_NoticesGoToTheOpenStage(t *testing.T) {
	w := open(t, chainSpec())
	if got := w.last.Notices[0].Targets; !slices.Equal(got, []string{"group:dba"}) {
		t.Errorf("first notice to %v, want group:dba only", got)
	}
	w.apply(desk.Approve{From: w.from("bob")})
	told := slices.IndexFunc(w.last.Notices, func(n desk.Notice) bool { return n.Cause == desk.EventStageOpened })
	if told < 0 || !slices.Equal(w.last.Notices[told].Targets, []string{"group:finops"}) {
		t.Errorf("notices after the first stage: %+v, want one to group:finops", w.last.Notices)
	}
}

func TestStage_PersonOfBothStagesVotesAgain(t *testing.T) {
	w := open(t, chainSpec())
	w.apply(desk.Approve{From: w.from("ann")}) // ann is in both groups
	w.mustHaveProgress("1 of 2, stage 2 of 2, needs 1 × finops")
	w.apply(desk.Approve{From: w.from("bob")}) // bob could replace ann in the first stage
	w.mustBeOpen()                             // but ann has not approved in the second
	w.apply(desk.Approve{From: w.from("ann")})
	w.mustEnd(desk.OutcomeApproved, "bob", "ann")
}

func TestStage_LaterVoteDoesNotCountAfterTheEarlierOneLapses(t *testing.T) {
	ask := chainSpec()
	ask.Requirement.Groups[1].Count = 2
	w := open(t, ask)
	w.members["group:finops"] = []string{"fay", "flo"}
	w.apply(desk.Approve{From: w.from("bob")})
	w.apply(desk.Approve{From: w.from("fay")})
	w.leave("bob")
	w.mustRefuse(desk.Code(desk.ErrEarlierStage), desk.Approve{From: w.from("flo")})
	w.apply(desk.Approve{From: w.from("cleo")})
	w.apply(desk.Approve{From: w.from("flo")})
	w.mustEnd(desk.OutcomeApproved, "fay", "cleo", "flo")
}

func TestStage_EditStartsTheChainAgain(t *testing.T) {
	ask := chainSpec()
	ask.Requirement.Exclude = nil
	w := open(t, ask)
	w.apply(desk.Approve{From: w.from("bob")})
	w.apply(desk.ApproveEdited{From: w.from("fay"), Args: []byte(`{"table":"users","limit":5}`)})
	w.mustBeOpen()
	w.mustHaveProgress("0 of 2, stage 1 of 2, needs 1 × dba")
	w.apply(desk.Approve{From: w.from("bob")})
	w.apply(desk.Approve{From: w.from("fay")})
	w.mustEnd(desk.OutcomeApproved, "bob", "fay")
}
