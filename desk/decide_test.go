package desk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
)

func TestQuorum_TwoGroupsNeedTwoPeople(t *testing.T) {
	w := open(t, needing(group(1, "group:dba"), group(1, "group:finops")))
	w.progress("0 of 2, needs 1 × dba, needs 1 × finops")
	w.do(desk.Approve{From: w.by("ann")}) // who is in both
	w.stillOpen()
	w.do(desk.Approve{From: w.by("ann")}) // and still one person
	w.stillOpen()
	w.progress("1 of 2, needs 1 × finops")
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "ann", "bob")
	if f := w.last.Final; f.Digest != action().Asked.Digest || f.Args != nil {
		t.Errorf("approved %q with %s, want what was asked", f.Digest, f.Args)
	}
}

func TestQuorum_WhoHasLeftDoesNotCountWhenTheLastVoteComes(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	w.do(desk.Approve{From: w.by("ann")})
	w.members["group:dba"] = []string{"bob", "cleo"}
	w.do(desk.Approve{From: w.by("bob")})
	w.stillOpen()
	w.progress("1 of 2, needs 1 × dba, the vote of ann does not count any more: has left the group")
	w.do(desk.Approve{From: w.by("cleo")})
	w.ended(desk.Approved, "bob", "cleo")
}

func TestQuorum_SayingItAgainCountsThoseWhoAreBack(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	w.do(desk.Approve{From: w.by("ann")})
	w.members["group:dba"] = []string{"bob"}
	w.do(desk.Approve{From: w.by("bob")})
	w.members["group:dba"] = []string{"bob", "ann"}
	w.stillOpen()
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "ann", "bob")
}

func TestQuorum_ChangesOfMindCountOnce(t *testing.T) {
	ask := needing(group(2, "group:dba"))
	ask.Need.Denials = 2
	w := open(t, ask)
	w.do(desk.Approve{From: w.by("ann")})
	w.do(desk.Reject{From: w.by("ann"), Reason: "too much"})
	w.progress("0 of 2, needs 2 × dba, 1 of 2 against")
	w.do(desk.Approve{From: w.by("bob")})
	w.stillOpen()
	w.do(desk.Reject{From: w.by("bob"), Codes: []string{"too_broad"}, Reason: "indeed", Retry: true})
	w.ended(desk.Rejected, "ann", "bob")
	if f := w.last.Final; f.Reason != "indeed" || !f.Retry || !slices.Equal(f.Codes, []string{"too_broad"}) {
		t.Errorf("final = %+v, want the last reason", f)
	}
}

func TestReject_OneIsEnoughUnlessMoreAreWanted(t *testing.T) {
	w := open(t, needing(group(3, "group:dba")))
	w.refused("bad_text", desk.Reject{From: w.by("bob")}) // a no without a reason helps nobody
	w.do(desk.Reject{From: w.by("bob"), Reason: "wrong table"})
	w.ended(desk.Rejected, "bob")
}

func TestReject_OfSomebodyWhoHasLeftDoesNotCount(t *testing.T) {
	ask := action()
	ask.Need.Denials = 2
	w := open(t, ask)
	w.do(desk.Reject{From: w.by("ann"), Reason: "no"})
	w.members["group:dba"] = []string{"bob"}
	w.do(desk.Reject{From: w.by("bob"), Reason: "no"})
	w.stillOpen()
}

func TestAuth_MustBeStrongEnough(t *testing.T) {
	ask := action()
	ask.Need.MinAuth = desk.AuthMFA
	w := open(t, ask)
	weak := w.by("ann")
	w.refused("weak_auth", desk.Approve{From: weak})
	w.refused("weak_auth", desk.Reject{From: weak, Reason: "no"})
	w.do(desk.Comment{From: weak, Text: "from my phone"})
	strong := weak
	strong.Actor.Auth = desk.AuthHardware
	w.do(desk.Approve{From: strong})
	w.ended(desk.Approved, "ann")
}

func TestExclude_ADutyThatNobodyKnowsExcludesEverybody(t *testing.T) {
	w := open(t, action())
	w.request.Need.Exclude = []desk.Duty{"janitor"} // as a later version might write it
	w.refused("excluded", desk.Approve{From: w.by("ann")})
}

func TestAuth_UnknownStrengths(t *testing.T) {
	for _, test := range []struct {
		has, least desk.Auth
		want       bool
	}{
		{"", "", true}, {"magic", "", true}, {"magic", desk.AuthLinked, false}, {desk.AuthHardware, "magic", false},
		{desk.AuthSSO, desk.AuthSSO, true}, {desk.AuthToken, desk.AuthSSO, false}, {desk.AuthHardware, desk.AuthLinked, true},
	} {
		if got := test.has.AtLeast(test.least); got != test.want {
			t.Errorf("%q at least %q = %v", test.has, test.least, got)
		}
	}
}

func TestDirectory_ThatIsDownDecidesNothing(t *testing.T) {
	w := open(t, action())
	env := w.env()
	env.Directory = brokenDirectory{}
	for _, act := range []desk.Act{desk.Approve{From: w.by("ann")}, desk.Reject{From: w.by("ann"), Reason: "no"}, desk.Claim{From: w.by("ann")}, desk.View{From: w.by("ann")}} {
		if _, err := desk.Apply(w.request, act, env); !errors.Is(err, desk.ErrDirectory) {
			t.Errorf("%T: %v, want that nobody knows", act, err)
		}
	}
	env.Now = w.request.Deadline
	if _, err := desk.Apply(w.request, desk.Tick{}, env); err != nil {
		t.Errorf("the clock needs no directory: %v", err)
	}
}

type brokenDirectory struct{}

func (brokenDirectory) Member(string, string) (bool, error) {
	return false, errors.New("no route to host")
}

func TestRequester_CanBeAskedToConfirm(t *testing.T) {
	ask := needing(group(1, desk.TheRequester))
	ask.Need.Exclude = nil
	w := open(t, ask)
	w.refused("not_member", desk.Approve{From: w.by("ann")})
	w.do(desk.Approve{From: w.by("rita")})
	w.ended(desk.Approved, "rita")
}

func TestRespond_PeopleMustAgreeOnAnAnswer(t *testing.T) {
	ask := question()
	ask.Need.Groups = []desk.Group{group(2, "group:dba")}
	w := open(t, ask)
	w.refused("bad_value", desk.Respond{From: w.by("ann"), Value: json.RawMessage(`{"a":1,"a":2}`)})
	w.do(desk.Respond{From: w.by("ann"), Value: json.RawMessage(`{"a":1}`)})
	w.do(desk.Respond{From: w.by("bob"), Value: json.RawMessage(`{"a":2}`)})
	w.stillOpen()
	w.progress("1 of 2, needs 1 × dba")
	w.do(desk.Respond{From: w.by("bob"), Value: json.RawMessage(` {"a": 1} `)}) // the same, spelt differently
	w.ended(desk.Responded, "ann", "bob")
}

func TestRespond_WordsCountTogether(t *testing.T) {
	ask := question()
	ask.Need.Groups = []desk.Group{group(2, "group:dba")}
	w := open(t, ask)
	w.do(desk.Respond{From: w.by("ann"), Value: json.RawMessage(`{"ok":true,"note":"fine"}`), Word: "ok"})
	w.do(desk.Respond{From: w.by("bob"), Value: json.RawMessage(`{"ok":true}`), Word: "ok"})
	w.ended(desk.Responded, "ann", "bob")
	if got := string(w.last.Final.Value); got != `{"ok":true}` {
		t.Errorf("value = %s, want that of the last vote", got)
	}
}

func TestVerbs_NamesWhatIsAllowed(t *testing.T) {
	ask := action()
	ask.Need.Verbs = []desk.Verb{desk.VerbApprove, desk.VerbReject, desk.VerbRespond}
	w := open(t, ask)
	w.refused("not_allowed", desk.Snooze{From: w.by("ann"), Until: w.now.Add(time.Hour)})
	w.refused("not_allowed", desk.Respond{From: w.by("ann"), Value: json.RawMessage(`1`)}) // an action is approved, not answered
	w.do(desk.Approve{From: w.by("ann")})

	w = open(t, question())
	w.refused("not_allowed", desk.Approve{From: w.by("ann")})
	w.refused("not_allowed", desk.Reject{From: w.by("ann"), Reason: "no"})
}

func TestStale_SaysWhatHasChanged(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	before := w.by("cleo")
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.do(desk.AskBack{From: w.by("bob"), Question: "why 50?"})
	w.do(desk.AnswerBack{From: w.run(), Question: 1, Answer: "half of them"})
	err := w.refused("changed", desk.Approve{From: before})
	changed, ok := errors.AsType[*desk.ChangedError](err)
	if !ok || changed.Rev != w.request.Rev || changed.Digest != w.request.Digest() || changed.Seen != 1 {
		t.Fatalf("%+v", changed)
	}
	want := "it has changed since they saw it: ann edited /limit; run answered question 1 of bob"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	again := before
	again.Seen = desk.Seen{Rev: changed.Rev, Digest: changed.Digest}
	w.do(desk.Approve{From: again})
	w.stillOpen() // ann edited, and does not count
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "cleo", "bob")
}

func TestStale_NoiseIsNotInTheWay(t *testing.T) {
	w := open(t, needing(group(2, "group:dba")))
	before := w.by("cleo")
	w.do(desk.View{From: w.by("bob")})
	w.do(desk.Claim{From: w.by("bob")})
	w.do(desk.Comment{From: w.by("bob"), Text: "looks good"})
	w.do(desk.Approve{From: w.by("bob")})
	w.do(desk.Approve{From: before})
	w.ended(desk.Approved, "bob", "cleo")
}

func TestI6_WhoeverDoesNotSayWhatTheySawSawWhatWasAsked(t *testing.T) {
	silent := desk.From{Actor: desk.Person("cleo", desk.AuthSSO)}
	w := open(t, action())
	w.do(desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.refused("changed", desk.Approve{From: silent})
	for name, seen := range map[string]desk.Seen{
		"what was asked":     {Digest: "shown"},
		"something else":     {Rev: w.request.Rev, Digest: "other"},
		"what is yet to be":  {Rev: w.request.Rev + 1},
		"an old revision":    {Rev: 1},
		"old, but right now": {Rev: 1, Digest: w.request.Digest()},
	} {
		from := silent
		from.Seen = seen
		t.Run(name, func(t *testing.T) { w.refused("changed", desk.Approve{From: from}) })
	}
	digest := silent
	digest.Seen.Digest = w.request.Digest()
	w.do(desk.Approve{From: digest})
	w.ended(desk.Approved, "cleo")

	w = open(t, action()) // nothing has changed: there is nothing that could be missed
	w.do(desk.Approve{From: silent})
	w.ended(desk.Approved, "cleo")
}

func TestEscape_NeedsNoQuorum(t *testing.T) {
	ask := question()
	ask.Need.Groups = []desk.Group{group(3, "group:dba")}
	w := open(t, ask)
	w.do(desk.Escape{From: w.by("rita"), Reason: "never mind"})
	w.ended(desk.Escaped, "rita")
}

// A task can be given up where it wants to do something, too, unless that is forbidden.
func TestEscape_OfAnActionUnlessItIsForbidden(t *testing.T) {
	w := open(t, needing(group(3, "group:dba")))
	w.do(desk.Escape{From: w.by("ann"), Reason: "never mind"})
	w.ended(desk.Escaped, "ann")
	ask := action()
	ask.Need.Verbs = []desk.Verb{desk.VerbApprove, desk.VerbReject}
	w = open(t, ask)
	w.refused("not_allowed", desk.Escape{From: w.by("ann")})
}

// Everybody who wrote a part of it is an author, not only the first.
func TestExclude_EachOfTheAuthors(t *testing.T) {
	ask := action()
	ask.Asked.Authors = append(ask.Asked.Authors, "ann", "bob")
	w := open(t, ask)
	for _, author := range []string{"arno", "ann", "bob"} {
		w.refused("excluded", desk.Approve{From: w.by(author)})
	}
	w.do(desk.Approve{From: w.by("cleo")})
	w.ended(desk.Approved, "cleo")
}

func TestTexts_AreLimited(t *testing.T) {
	w := open(t, action())
	w.refused("bad_text", desk.Comment{From: w.by("ann")})
	w.refused("bad_text", desk.Comment{From: w.by("ann"), Text: strings.Repeat("é", 4001)})
	w.refused("bad_text", desk.Comment{From: w.by("ann"), Text: "\xff"})
	w.do(desk.Comment{From: w.by("ann"), Text: strings.Repeat("é", 4000)})
	agent := w.by("robot")
	agent.Actor.Kind = desk.Agent
	for range 99 {
		w.do(desk.Comment{From: agent, Text: "again and again"})
	}
	w.refused("too_many", desk.Comment{From: agent, Text: "again and again"})
	for range 100 { // there is a place left for people
		w.do(desk.Comment{From: w.by("ann"), Text: "again"})
	}
	w.refused("too_many", desk.Comment{From: w.by("ann"), Text: "again"})
	if len(w.request.Log) > 200 {
		t.Errorf("the log has grown to %d", len(w.request.Log))
	}
	// The log does not reach back to the beginning any more: nobody can tell what somebody missed who saw only that.
	old := w.by("bob")
	old.Seen.Rev = 1
	w.do(desk.AskBack{From: w.by("ann"), Question: "one more"})
	w.do(desk.AskBack{From: w.by("ann"), Question: "and one"})
	w.do(desk.AskBack{From: w.by("ann"), Question: "and another"})
	w.refused("changed", desk.Approve{From: old})
}
