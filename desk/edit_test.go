package desk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
)

var (
	half  = json.RawMessage(`{"table":"users","limit":50}`)
	other = json.RawMessage(`{"table":"orders","limit":100}`)
)

func TestEdit_TheEditorDoesNotApproveTheEdit(t *testing.T) {
	w := open(t, action())
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.stillOpen()
	w.refused("excluded", desk.Approve{From: w.by("ann")})
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "bob")
	want, err := fermata.ApprovalRequest{Action: "drop"}.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: half})
	if f := w.last.Final; err != nil || f.Digest != want || string(f.Args) != string(half) {
		t.Errorf("approved %q with %s, want %q with %s", f.Digest, f.Args, want, half)
	}
}

func TestEdit_CountsAsApproveWhereEditorsMayApprove(t *testing.T) {
	ask := action()
	ask.Need.Exclude = []desk.Duty{desk.Requester}
	w := open(t, ask)
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.ended(desk.Approved, "ann")
}

func TestEdit_TheEditorCanStillReject(t *testing.T) {
	w := open(t, action())
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.do(desk.Reject{From: w.by("ann"), Reason: "on second thoughts"})
	w.ended(desk.Rejected, "ann")
}

func TestEdit_VoidsWhatWasSaidBefore(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	w.do(desk.Approve{From: w.by("bob")})
	change := w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.progress("0 of 2, needs 2 × dba")
	if !slices.ContainsFunc(change.Notices, func(n desk.Notice) bool {
		return n.Kind == desk.Notify && slices.Equal(n.Targets, []string{"user:bob"})
	}) {
		t.Errorf("bob is not told: %+v", change.Notices)
	}
	if got := w.sent(desk.Notify); len(got) != 3 || got[2][0] != "inbox" || w.request.Place.Epoch != 2 {
		t.Errorf("the route does not begin anew: %v", got)
	}
	w.do(desk.Approve{From: w.by("cleo")})
	w.stillOpen()
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "cleo", "bob")
}

func TestEdit_OnlyWhatMayBeEdited(t *testing.T) {
	w := open(t, action())
	for name, test := range map[string]struct{ args, code string }{
		"another field":       {`{"table":"orders","limit":100}`, "bad_edit"},
		"a new field":         {`{"table":"users","limit":100,"force":true}`, "bad_edit"},
		"a field less":        {`{"limit":100}`, "bad_edit"},
		"something else":      {`[]`, "bad_edit"},
		"two fields for one":  {`{"table":"users","limit":1,"limit":2}`, "bad_edit"},
		"no JSON":             {`{"table":`, "bad_edit"},
		"a name of that kind": {`{"table":"users","limits":1,"limit":100}`, "bad_edit"},
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(test.code, desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(test.args)})
		})
	}
	w.args = half // not what was asked
	w.refused("invalid", desk.ApproveEdited{From: w.by("ann"), Args: half})
}

func TestEdit_OfNothingIsAnApprove(t *testing.T) {
	w := open(t, action())
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{ "limit":100, "table":"users" }`)})
	w.ended(desk.Approved, "ann")
	if w.last.Final.Args != nil {
		t.Errorf("it is said to be edited: %s", w.last.Final.Args)
	}
}

func TestEdit_ThePolicyIsAskedAgain(t *testing.T) {
	ask := action()
	ask.Need.Editable = []string{""}
	w := open(t, ask)
	w.policy = func(args json.RawMessage) (desk.Ruling, error) {
		switch string(args) {
		case string(half):
			return desk.Ruling{}, nil
		case string(other):
			return desk.Ruling{Need: &desk.Requirement{
				Groups: []desk.Group{group(1, "group:finops")}, Editable: []string{"/table"}, MinAuth: desk.AuthSSO, Deadline: desk.Duration(time.Hour),
			}}, nil
		case `{}`:
			return desk.Ruling{Deny: true, Reason: "all tables"}, nil
		}
		return desk.Ruling{}, errors.New("out of order")
	}
	w.refused("denied", desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{}`)})
	w.refused("policy_down", desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`[]`)})
	w.do(desk.ApproveEdited{From: w.by("bob"), Args: other})
	w.progress("0 of 2, needs 1 × dba, needs 1 × finops")
	if want := start.Add(time.Hour); !w.request.Deadline.Equal(want) {
		t.Errorf("the deadline is %s, want the shorter one, %s", w.request.Deadline, want)
	}
	// The stricter requirement stays, and with it what may be edited.
	w.refused("bad_edit", desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.do(desk.Approve{From: w.by("fay")})
	w.stillOpen()
	w.do(desk.Approve{From: w.by("cleo")})
	w.ended(desk.Approved, "fay", "cleo")
}

// An edit can need people whom the route of what was asked does not tell: they heard of it when it was over. Those whom it tells are told once.
func TestEdit_TellsThoseWhoAreNeededForIt(t *testing.T) {
	for _, tells := range []struct {
		first string
		want  []string
	}{{"group:dba", []string{"user:bob", "group:finops"}}, {"slack:C1", []string{"user:bob", "group:finops"}}, {"approvers", []string{"user:bob"}}, {"inbox", []string{"user:bob"}}} {
		ask := needing(group(2, "group:dba"))
		ask.Route = desk.Route{Name: "dba", Steps: []desk.Step{{Notify: []string{tells.first}}, {At: d(hour), Expire: "stale"}}}
		w := open(t, ask)
		w.policy = func(json.RawMessage) (desk.Ruling, error) {
			return desk.Ruling{Need: &desk.Requirement{Groups: []desk.Group{group(2, "group:dba"), group(1, "group:finops")}, Editable: []string{""}}}, nil
		}
		w.do(desk.Approve{From: w.by("bob")})
		var edited []string
		for _, n := range w.do(desk.ApproveEdited{From: w.by("ann"), Args: half}).Notices {
			if n.Kind == desk.Notify && n.About == desk.WasEdited {
				edited = append(edited, n.Targets...)
			}
		}
		if !slices.Equal(edited, tells.want) {
			t.Errorf("the route tells %s, and the edit %v", tells.first, edited)
		}
	}
}

func TestEdit_ARequirementThatIsNoneIsRefused(t *testing.T) {
	w := open(t, action())
	w.policy = func(json.RawMessage) (desk.Ruling, error) { return desk.Ruling{Need: &desk.Requirement{}}, nil }
	w.refused("policy_down", desk.ApproveEdited{From: w.by("ann"), Args: half})
}

func TestEdit_BackToWhatWasAskedIsAnEditToo(t *testing.T) {
	w := open(t, needing(group(1, "group:dba")))
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: half})
	w.do(desk.ApproveEdited{From: w.by("bob"), Args: dropArgs})
	w.stillOpen() // bob is the last editor now
	w.do(desk.Approve{From: w.by("ann")})
	w.ended(desk.Approved, "ann")
	if w.last.Final.Digest != action().Asked.Digest {
		t.Error("approved is not what was asked")
	}
}

func TestMerge_IsAsStrictAsBoth(t *testing.T) {
	a := desk.Requirement{
		Groups:  []desk.Group{{From: []string{"group:a", "group:b"}, Count: 1, Widen: []string{"group:x", "group:y"}}},
		Exclude: []desk.Duty{desk.Requester}, Denials: 3, Editable: []string{"/a", "/b/c"}, MinAuth: desk.AuthSSO,
		Verbs: []desk.Verb{desk.VerbApprove, desk.VerbReject, desk.VerbSnooze}, Deadline: desk.Duration(2 * time.Hour), OnTimeout: desk.EscalateOnTimeout,
	}
	b := desk.Requirement{
		Groups:  []desk.Group{{From: []string{"group:b", "group:a"}, Count: 2, Widen: []string{"group:y"}}, group(1, "group:c")},
		Exclude: []desk.Duty{desk.Author, desk.Requester}, Editable: []string{"/a/x", "/b"}, MinAuth: desk.AuthLinked,
		Verbs: []desk.Verb{desk.VerbReject, desk.VerbApprove}, Deadline: desk.Duration(3 * time.Hour),
	}
	want := desk.Requirement{
		Groups:  []desk.Group{{From: []string{"group:a", "group:b"}, Count: 2, Widen: []string{"group:y"}}, group(1, "group:c")},
		Exclude: []desk.Duty{desk.Requester, desk.Author}, Denials: 1, Editable: []string{"/b/c", "/a/x"}, MinAuth: desk.AuthSSO,
		Verbs: []desk.Verb{desk.VerbApprove, desk.VerbReject}, Deadline: desk.Duration(2 * time.Hour),
	}
	if got, want := text(t, a.Merge(b)), text(t, want); got != want {
		t.Errorf("merged to %s\nwant      %s", got, want)
	}
	if got := a.Merge(desk.OnePerson()).Groups; !slices.EqualFunc(got, a.Groups, func(x, y desk.Group) bool { return text(t, x) == text(t, y) }) {
		t.Errorf("anyone is among those who are asked anyway, but %+v", got)
	}
}

// Whoever is asked by name is somebody: an edit that needs a dba, of a request that needs any two, needs two people, and needed three.
func TestMerge_AnyoneIsWhoeverIsAskedByName(t *testing.T) {
	any2, dba, finops := group(2, desk.Anyone), group(1, "group:dba"), group(1, "group:finops")
	for _, c := range []struct{ a, b, want []desk.Group }{
		{[]desk.Group{any2}, []desk.Group{dba}, []desk.Group{group(1, desk.Anyone), dba}},
		{[]desk.Group{dba}, []desk.Group{any2}, []desk.Group{dba, group(1, desk.Anyone)}},
		{[]desk.Group{any2}, []desk.Group{dba, finops}, []desk.Group{dba, finops}},
		{[]desk.Group{dba, group(1, desk.Anyone)}, []desk.Group{finops}, []desk.Group{dba, finops}},
		{[]desk.Group{dba, group(1, desk.Anyone)}, []desk.Group{dba, group(2, desk.Anyone)}, []desk.Group{dba, any2}},
		{[]desk.Group{any2}, []desk.Group{group(3, desk.Anyone)}, []desk.Group{group(3, desk.Anyone)}},
	} {
		got := desk.Requirement{Groups: c.a}.Merge(desk.Requirement{Groups: c.b}).Groups
		if text(t, got) != text(t, c.want) {
			t.Errorf("%v and %v: %s", c.a, c.b, text(t, got))
		}
	}
}

// Who was let in by the route stays, if the other side permits it too; and is no reason to ask the same people twice.
func TestMerge_KnowsThoseWhoWereLetIn(t *testing.T) {
	asked := desk.Group{From: []string{"group:a"}, Widen: []string{"group:x", "group:y"}}
	widened := desk.Group{From: []string{"group:a", "group:x", "group:y"}, Widen: asked.Widen}
	for name, c := range map[string]struct{ other, want desk.Group }{
		"the same":          {asked, desk.Group{From: widened.From, Count: 1, Widen: asked.Widen}},
		"permits one":       {desk.Group{From: asked.From, Widen: []string{"group:y"}}, desk.Group{From: []string{"group:a", "group:y"}, Count: 1, Widen: []string{"group:y"}}},
		"permits nobody":    {group(2, "group:a"), desk.Group{From: asked.From, Count: 2}},
		"asks other people": {group(1, "group:x"), widened},
	} {
		got := desk.Requirement{Groups: []desk.Group{widened}}.Merge(desk.Requirement{Groups: []desk.Group{c.other}}).Groups
		if text(t, got[0]) != text(t, c.want) || (len(got) > 1) != (name == "asks other people") {
			t.Errorf("%s: merged to %+v", name, got)
		}
	}
	x, y := desk.Group{From: []string{"group:x"}, Widen: []string{"group:x"}}, desk.Group{From: []string{"group:y"}, Widen: []string{"group:y"}}
	if got := (desk.Requirement{Groups: []desk.Group{x}}).Merge(desk.Requirement{Groups: []desk.Group{y}}).Groups; len(got) != 2 {
		t.Errorf("other people, who could be let in to their own group, are the same: %+v", got)
	}
}

// The rules give other arguments an hour, and the request has been open for two. Whoever edited it so decided after the deadline that the edit itself
// had set.
func TestI10_AnEditIsNotApprovedAfterTheDeadlineThatItBrings(t *testing.T) {
	ask := action()
	ask.Need.Exclude = nil
	w := open(t, ask)
	w.policy = func(json.RawMessage) (desk.Ruling, error) {
		need := w.request.Need
		need.Deadline = desk.Duration(time.Hour)
		return desk.Ruling{Need: &need}, nil
	}
	w.at(2 * time.Hour)
	w.refused("denied", desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.do(desk.Approve{From: w.by("ann")}) // what was asked has more time
	w.ended(desk.Approved, "ann")
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
