package desk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/timespan"
)

var (
	half  = json.RawMessage(`{"table":"users","limit":50}`)
	other = json.RawMessage(`{"table":"orders","limit":100}`)
)

func TestEdit_LastEditorCannotApprove(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.mustBeOpen()
	w.mustRefuse("excluded", desk.Approve{From: w.from("ann")})
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "bob")
	want, err := fermata.ApprovalRequest{Action: "drop"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: half})
	if f := w.last.Decision; err != nil || f.Digest != want || string(f.Args) != string(half) {
		t.Errorf("approved %q with %s, want %q with %s", f.Digest, f.Args, want, half)
	}
}

func TestEdit_CountsAsApprovalWhereEditorsMayApprove(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Exclude = []requirement.Duty{requirement.DutyRequester}
	w := open(t, ask)
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestEdit_LastEditorCanReject(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.apply(desk.Reject{From: w.from("ann"), Reason: "on second thoughts"})
	w.mustEnd(desk.OutcomeRejected, "ann")
}

func TestEdit_VoidsEarlierVotes(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("bob")})
	change := w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.mustHaveProgress("0 of 2, needs 2 × dba")
	if !slices.ContainsFunc(change.Notices, func(n desk.Notice) bool {
		return n.Kind == desk.NoticeNotify && slices.Equal(n.Targets, []string{"user:bob"})
	}) {
		t.Errorf("bob is not notified: %+v", change.Notices)
	}
	if got := w.sentTargets(desk.NoticeNotify); len(got) != 3 || got[2][0] != "inbox" || w.request.RouteProgress.Epoch != 2 {
		t.Errorf("the route does not restart: %v", got)
	}
	w.apply(desk.Approve{From: w.from("cleo")})
	w.mustBeOpen()
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "cleo", "bob")
}

func TestEdit_OnlyEditableFields(t *testing.T) {
	w := open(t, actionSpec())
	for name, test := range map[string]struct{ args, code string }{
		"another field":   {`{"table":"orders","limit":100}`, "bad_edit"},
		"new field":       {`{"table":"users","limit":100,"force":true}`, "bad_edit"},
		"removed field":   {`{"limit":100}`, "bad_edit"},
		"other value":     {`[]`, "bad_edit"},
		"duplicate field": {`{"table":"users","limit":1,"limit":2}`, "bad_edit"},
		"invalid JSON":    {`{"table":`, "bad_edit"},
		"wrong type":      {`{"table":"users","limits":1,"limit":100}`, "bad_edit"},
	} {
		t.Run(name, func(t *testing.T) {
			w.mustRefuse(test.code, desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(test.args)})
		})
	}
	w.args = half // not the original arguments
	w.mustRefuse("invalid", desk.ApproveEdited{From: w.from("ann"), Args: half})
}

func TestEdit_WithoutChangesIsApproval(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{ "limit":100, "table":"users" }`)})
	w.mustEnd(desk.OutcomeApproved, "ann")
	if w.last.Decision.Args != nil {
		t.Errorf("it is recorded as edited: %s", w.last.Decision.Args)
	}
}

func TestEdit_AsksPolicyAgain(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Editable = []string{""}
	w := open(t, ask)
	w.policy = func(args json.RawMessage) (desk.EditRuling, error) {
		switch string(args) {
		case string(half):
			return desk.EditRuling{}, nil
		case string(other):
			return desk.EditRuling{Requirement: &requirement.Requirement{
				Groups: []requirement.Group{group(1, "group:finops")}, Editable: []string{"/table"}, MinAuth: requirement.AuthSSO, Deadline: timespan.Duration(time.Hour),
			}}, nil
		case `{}`:
			return desk.EditRuling{Deny: true, Reason: "all tables"}, nil
		}
		return desk.EditRuling{}, errors.New("out of order")
	}
	w.mustRefuse("denied", desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{}`)})
	w.mustRefuse("policy_down", desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`[]`)})
	w.apply(desk.ApproveEdited{From: w.from("bob"), Args: other})
	w.mustHaveProgress("0 of 2, needs 1 × dba, needs 1 × finops")
	if want := start.Add(time.Hour); !w.request.Deadline.Equal(want) {
		t.Errorf("deadline = %s, want the shorter one, %s", w.request.Deadline, want)
	}
	// The stricter requirement stays, and so do its editable fields.
	w.mustRefuse("bad_edit", desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.apply(desk.Approve{From: w.from("fay")})
	w.mustBeOpen()
	w.apply(desk.Approve{From: w.from("cleo")})
	w.mustEnd(desk.OutcomeApproved, "fay", "cleo")
}

// An edit can need people who are not on the route. They are notified of the edit. People on the
// route are notified once.
func TestEdit_NotifiesNewApprovers(t *testing.T) {
	for _, tells := range []struct {
		first string
		want  []string
	}{{"group:dba", []string{"user:bob", "group:finops"}}, {"slack:C1", []string{"user:bob", "group:finops"}}, {"approvers", []string{"user:bob"}}, {"inbox", []string{"user:bob"}}} {
		ask := specNeeding(group(2, "group:dba"))
		ask.Route = desk.Route{Name: "dba", Steps: []desk.Step{{Notify: []string{tells.first}}, {At: dur(hour), Expire: "stale"}}}
		w := open(t, ask)
		w.policy = func(json.RawMessage) (desk.EditRuling, error) {
			return desk.EditRuling{Requirement: &requirement.Requirement{Groups: []requirement.Group{group(2, "group:dba"), group(1, "group:finops")}, Editable: []string{""}}}, nil
		}
		w.apply(desk.Approve{From: w.from("bob")})
		var edited []string
		for _, n := range w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half}).Notices {
			if n.Kind == desk.NoticeNotify && n.Cause == desk.EventEdited {
				edited = append(edited, n.Targets...)
			}
		}
		if !slices.Equal(edited, tells.want) {
			t.Errorf("the route notifies %s, the edit notifies %v", tells.first, edited)
		}
	}
}

func TestEdit_InvalidRequirementIsRefused(t *testing.T) {
	w := open(t, actionSpec())
	w.policy = func(json.RawMessage) (desk.EditRuling, error) {
		return desk.EditRuling{Requirement: &requirement.Requirement{}}, nil
	}
	w.mustRefuse("policy_down", desk.ApproveEdited{From: w.from("ann"), Args: half})
}

func TestEdit_BackToOriginalArgumentsIsEdit(t *testing.T) {
	w := open(t, specNeeding(group(1, "group:dba")))
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: half})
	w.apply(desk.ApproveEdited{From: w.from("bob"), Args: dropArgs})
	w.mustBeOpen() // bob is the last editor now
	w.apply(desk.Approve{From: w.from("ann")})
	w.mustEnd(desk.OutcomeApproved, "ann")
	if w.last.Decision.Digest != actionSpec().Subject.ActionDigest {
		t.Error("approved something other than the original arguments")
	}
}

func TestMerge_IsAsStrictAsBoth(t *testing.T) {
	a := requirement.Requirement{
		Groups:  []requirement.Group{{From: []string{"group:a", "group:b"}, Count: 1, Widen: []string{"group:x", "group:y"}}},
		Exclude: []requirement.Duty{requirement.DutyRequester}, DenyCount: 3, Editable: []string{"/a", "/b/c"}, MinAuth: requirement.AuthSSO,
		Verbs: []requirement.Verb{requirement.VerbApprove, requirement.VerbReject, requirement.VerbSnooze}, Deadline: timespan.Duration(2 * time.Hour), OnTimeout: requirement.EscalateOnTimeout,
	}
	b := requirement.Requirement{
		Groups:  []requirement.Group{{From: []string{"group:b", "group:a"}, Count: 2, Widen: []string{"group:y"}}, group(1, "group:c")},
		Exclude: []requirement.Duty{requirement.DutyAuthor, requirement.DutyRequester}, Editable: []string{"/a/x", "/b"}, MinAuth: requirement.AuthLinked,
		Verbs: []requirement.Verb{requirement.VerbReject, requirement.VerbApprove}, Deadline: timespan.Duration(3 * time.Hour),
	}
	want := requirement.Requirement{
		Groups:  []requirement.Group{{From: []string{"group:a", "group:b"}, Count: 2, Widen: []string{"group:y"}}, group(1, "group:c")},
		Exclude: []requirement.Duty{requirement.DutyRequester, requirement.DutyAuthor}, DenyCount: 1, Editable: []string{"/a/x", "/b/c"}, MinAuth: requirement.AuthSSO,
		Verbs: []requirement.Verb{requirement.VerbApprove, requirement.VerbReject}, Deadline: timespan.Duration(2 * time.Hour),
	}
	if got, want := text(t, a.Merge(b)), text(t, want); got != want {
		t.Errorf("merged to %s\nwant      %s", got, want)
	}
	if got := a.Merge(requirement.OnePerson()).Groups; !slices.EqualFunc(got, a.Groups, func(x, y requirement.Group) bool { return text(t, x) == text(t, y) }) {
		t.Errorf("anyone must be satisfied by the named groups: %+v", got)
	}
}

// A named group satisfies anyone: an edit that needs a dba, of a request that needs any two people,
// needs two people, not three.
func TestMerge_NamedGroupSatisfiesAnyone(t *testing.T) {
	any2, dba, finops := group(2, requirement.Anyone), group(1, "group:dba"), group(1, "group:finops")
	for _, c := range []struct{ a, b, want []requirement.Group }{
		{[]requirement.Group{any2}, []requirement.Group{dba}, []requirement.Group{group(1, requirement.Anyone), dba}},
		{[]requirement.Group{dba}, []requirement.Group{any2}, []requirement.Group{dba, group(1, requirement.Anyone)}},
		{[]requirement.Group{any2}, []requirement.Group{dba, finops}, []requirement.Group{dba, finops}},
		{[]requirement.Group{dba, group(1, requirement.Anyone)}, []requirement.Group{finops}, []requirement.Group{dba, finops}},
		{[]requirement.Group{dba, group(1, requirement.Anyone)}, []requirement.Group{dba, group(2, requirement.Anyone)}, []requirement.Group{dba, any2}},
		{[]requirement.Group{any2}, []requirement.Group{group(3, requirement.Anyone)}, []requirement.Group{group(3, requirement.Anyone)}},
	} {
		got := requirement.Requirement{Groups: c.a}.Merge(requirement.Requirement{Groups: c.b}).Groups
		if text(t, got) != text(t, c.want) {
			t.Errorf("%v and %v: %s", c.a, c.b, text(t, got))
		}
	}
}

// Members that the route added stay if the other side permits them too. They do not make it another
// group.
func TestMerge_WidenedGroupMatchesOriginal(t *testing.T) {
	asked := requirement.Group{From: []string{"group:a"}, Widen: []string{"group:x", "group:y"}}
	widened := requirement.Group{From: []string{"group:a", "group:x", "group:y"}, Widen: asked.Widen}
	for name, c := range map[string]struct{ other, want requirement.Group }{
		"the same":     {asked, requirement.Group{From: widened.From, Count: 1, Widen: asked.Widen}},
		"permits one":  {requirement.Group{From: asked.From, Widen: []string{"group:y"}}, requirement.Group{From: []string{"group:a", "group:y"}, Count: 1, Widen: []string{"group:y"}}},
		"permits none": {group(2, "group:a"), requirement.Group{From: asked.From, Count: 2}},
		"other group":  {group(1, "group:x"), widened},
	} {
		got := requirement.Requirement{Groups: []requirement.Group{widened}}.Merge(requirement.Requirement{Groups: []requirement.Group{c.other}}).Groups
		if text(t, got[0]) != text(t, c.want) || (len(got) > 1) != (name == "other group") {
			t.Errorf("%s: merged to %+v", name, got)
		}
	}
	x, y := requirement.Group{From: []string{"group:x"}, Widen: []string{"group:x"}}, requirement.Group{From: []string{"group:y"}, Widen: []string{"group:y"}}
	if got := (requirement.Requirement{Groups: []requirement.Group{x}}).Merge(requirement.Requirement{Groups: []requirement.Group{y}}).Groups; len(got) != 2 {
		t.Errorf("another group with the same widen is treated as the same: %+v", got)
	}
}

// The rules give the edited arguments one hour, and the request has been open for two. The edit
// must not be approved after its own deadline.
func TestI10_EditIsNotApprovedAfterItsNewDeadline(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Exclude = nil
	w := open(t, ask)
	w.policy = func(json.RawMessage) (desk.EditRuling, error) {
		need := w.request.Requirement
		need.Deadline = timespan.Duration(time.Hour)
		return desk.EditRuling{Requirement: &need}, nil
	}
	w.advanceTo(2 * time.Hour)
	w.mustRefuse("denied", desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.apply(desk.Approve{From: w.from("ann")}) // the original arguments have more time
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
