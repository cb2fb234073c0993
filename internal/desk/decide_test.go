package desk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

func TestQuorum_TwoGroupsNeedTwoPeople(t *testing.T) {
	w := open(t, specNeeding(group(1, "group:dba"), group(1, "group:finops")))
	w.mustHaveProgress("0 of 2, needs 1 × dba, needs 1 × finops")
	w.apply(desk.Approve{From: w.from("ann")}) // ann is in both groups
	w.mustBeOpen()
	w.apply(desk.Approve{From: w.from("ann")}) // still one person
	w.mustBeOpen()
	w.mustHaveProgress("1 of 2, needs 1 × finops")
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "ann", "bob")
	if f := w.last.Decision; f.Digest != actionSpec().Subject.ActionDigest || f.Args != nil {
		t.Errorf("approved %q with %s, want the original arguments", f.Digest, f.Args)
	}
}

func TestQuorum_FormerMemberDoesNotCountAtLastVote(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("ann")})
	w.members["group:dba"] = []string{"bob", "cleo"}
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustBeOpen()
	w.mustHaveProgress("1 of 2, needs 1 × dba, the vote of ann no longer counts: has left the group")
	w.apply(desk.Approve{From: w.from("cleo")})
	w.mustEnd(desk.OutcomeApproved, "bob", "cleo")
}

func TestQuorum_RepeatedVoteCountsReturnedMembers(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	w.apply(desk.Approve{From: w.from("ann")})
	w.members["group:dba"] = []string{"bob"}
	w.apply(desk.Approve{From: w.from("bob")})
	w.members["group:dba"] = []string{"bob", "ann"}
	w.mustBeOpen()
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "ann", "bob")
}

func TestQuorum_ChangedVoteCountsOnce(t *testing.T) {
	ask := specNeeding(group(2, "group:dba"))
	ask.Requirement.DenyCount = 2
	w := open(t, ask)
	w.apply(desk.Approve{From: w.from("ann")})
	w.apply(desk.Reject{From: w.from("ann"), Reason: "too much"})
	w.mustHaveProgress("0 of 2, needs 2 × dba, 1 of 2 against")
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustBeOpen()
	w.apply(desk.Reject{From: w.from("bob"), Codes: []string{"too_broad"}, Reason: "indeed", Retry: true})
	w.mustEnd(desk.OutcomeRejected, "ann", "bob")
	if f := w.last.Decision; f.Reason != "indeed" || !f.Retry || !slices.Equal(f.Codes, []string{"too_broad"}) {
		t.Errorf("decision = %+v, want the last reason", f)
	}
}

func TestReject_OneIsEnoughUnlessDenialsIsHigher(t *testing.T) {
	w := open(t, specNeeding(group(3, "group:dba")))
	w.mustRefuse("bad_text", desk.Reject{From: w.from("bob")}) // a rejection needs a reason
	w.apply(desk.Reject{From: w.from("bob"), Reason: "wrong table"})
	w.mustEnd(desk.OutcomeRejected, "bob")
}

func TestReject_OfFormerMemberDoesNotCount(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.DenyCount = 2
	w := open(t, ask)
	w.apply(desk.Reject{From: w.from("ann"), Reason: "no"})
	w.members["group:dba"] = []string{"bob"}
	w.apply(desk.Reject{From: w.from("bob"), Reason: "no"})
	w.mustBeOpen()
}

func TestAuth_MustBeStrongEnough(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.MinAuth = requirement.AuthMFA
	w := open(t, ask)
	weak := w.from("ann")
	w.mustRefuse("weak_auth", desk.Approve{From: weak})
	w.mustRefuse("weak_auth", desk.Reject{From: weak, Reason: "no"})
	w.apply(desk.Comment{From: weak, Text: "from my phone"})
	strong := weak
	strong.Actor.Auth = requirement.AuthHardware
	w.apply(desk.Approve{From: strong})
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestExclude_UnknownDutyExcludesEveryone(t *testing.T) {
	w := open(t, actionSpec())
	w.request.Requirement.Exclude = []requirement.Duty{"janitor"} // as a later version might write it
	w.mustRefuse("excluded", desk.Approve{From: w.from("ann")})
}

func TestAuth_UnknownStrengths(t *testing.T) {
	for _, test := range []struct {
		has, least requirement.Auth
		want       bool
	}{
		{"", "", true}, {"magic", "", true}, {"magic", requirement.AuthLinked, false}, {requirement.AuthHardware, "magic", false},
		{requirement.AuthSSO, requirement.AuthSSO, true}, {requirement.AuthToken, requirement.AuthSSO, false}, {requirement.AuthHardware, requirement.AuthLinked, true},
	} {
		if got := test.has.AtLeast(test.least); got != test.want {
			t.Errorf("%q at least %q = %v", test.has, test.least, got)
		}
	}
}

func TestDirectory_UnavailableRefusesDecisions(t *testing.T) {
	w := open(t, actionSpec())
	env := w.env()
	env.Directory = brokenDirectory{}
	for _, act := range []desk.Command{desk.Approve{From: w.from("ann")}, desk.Reject{From: w.from("ann"), Reason: "no"}, desk.Claim{From: w.from("ann")}, desk.View{From: w.from("ann")}} {
		if _, err := desk.Apply(w.request, act, env); !errors.Is(err, desk.ErrDirectoryUnavailable) {
			t.Errorf("%T: %v, want ErrDirectoryUnavailable", act, err)
		}
	}
	env.Now = w.request.Deadline
	if _, err := desk.Apply(w.request, desk.Tick{}, env); err != nil {
		t.Errorf("a timer must not need the directory: %v", err)
	}
}

type brokenDirectory struct{}

func (brokenDirectory) Member(string, string) (bool, error) {
	return false, errors.New("no route to host")
}

func TestRequester_CanConfirm(t *testing.T) {
	ask := specNeeding(group(1, requirement.Requester))
	ask.Requirement.Exclude = nil
	w := open(t, ask)
	w.mustRefuse("not_member", desk.Approve{From: w.from("ann")})
	w.apply(desk.Approve{From: w.from("rita")})
	w.mustEnd(desk.OutcomeApproved, "rita")
}

func TestRespond_PeopleMustAgreeOnAnAnswer(t *testing.T) {
	ask := questionSpec()
	ask.Requirement.Groups = []requirement.Group{group(2, "group:dba")}
	w := open(t, ask)
	w.mustRefuse("bad_value", desk.Respond{From: w.from("ann"), Value: json.RawMessage(`{"a":1,"a":2}`)})
	w.apply(desk.Respond{From: w.from("ann"), Value: json.RawMessage(`{"a":1}`)})
	w.apply(desk.Respond{From: w.from("bob"), Value: json.RawMessage(`{"a":2}`)})
	w.mustBeOpen()
	w.mustHaveProgress("1 of 2, needs 1 × dba")
	// the same value, encoded differently
	w.apply(desk.Respond{From: w.from("bob"), Value: json.RawMessage(` {"a": 1} `)})
	w.mustEnd(desk.OutcomeAnswered, "ann", "bob")
}

func TestRespond_EqualChoicesCountTogether(t *testing.T) {
	ask := questionSpec()
	ask.Requirement.Groups = []requirement.Group{group(2, "group:dba")}
	w := open(t, ask)
	w.apply(desk.Respond{From: w.from("ann"), Value: json.RawMessage(`{"ok":true,"note":"fine"}`), Choice: "ok"})
	w.apply(desk.Respond{From: w.from("bob"), Value: json.RawMessage(`{"ok":true}`), Choice: "ok"})
	w.mustEnd(desk.OutcomeAnswered, "ann", "bob")
	if got := string(w.last.Decision.Value); got != `{"ok":true}` {
		t.Errorf("value = %s, want the value of the last vote", got)
	}
}

func TestVerbs_OthersAreRefused(t *testing.T) {
	ask := actionSpec()
	ask.Requirement.Verbs = []requirement.Verb{requirement.VerbApprove, requirement.VerbReject, requirement.VerbRespond}
	w := open(t, ask)
	w.mustRefuse("not_allowed", desk.Snooze{From: w.from("ann"), Until: w.now.Add(time.Hour)})
	// an action is approved, not answered
	w.mustRefuse("not_allowed", desk.Respond{From: w.from("ann"), Value: json.RawMessage(`1`)})
	w.apply(desk.Approve{From: w.from("ann")})

	w = open(t, questionSpec())
	w.mustRefuse("not_allowed", desk.Approve{From: w.from("ann")})
	w.mustRefuse("not_allowed", desk.Reject{From: w.from("ann"), Reason: "no"})
}

func TestApply_StaleViewReportsChanges(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	before := w.from("cleo")
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.apply(desk.AskClarification{From: w.from("bob"), Question: "why 50?"})
	w.apply(desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "half of them"})
	err := w.mustRefuse("changed", desk.Approve{From: before})
	changed, ok := errors.AsType[*desk.ChangedError](err)
	if !ok || changed.Rev != w.request.Rev || changed.Digest != w.request.Digest() || changed.Seen != 1 {
		t.Fatalf("%+v", changed)
	}
	want := "request has changed since it was viewed: ann edited /limit; run answered clarification 1 of bob"
	if err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	again := before
	again.Seen = desk.Seen{Rev: changed.Rev, Digest: changed.Digest}
	w.apply(desk.Approve{From: again})
	w.mustBeOpen() // ann is the editor and does not count
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "cleo", "bob")
}

func TestApply_InsignificantEventsDoNotMakeViewStale(t *testing.T) {
	w := open(t, specNeeding(group(2, "group:dba")))
	before := w.from("cleo")
	w.apply(desk.View{From: w.from("bob")})
	w.apply(desk.Claim{From: w.from("bob")})
	w.apply(desk.Comment{From: w.from("bob"), Text: "looks good"})
	w.apply(desk.Approve{From: w.from("bob")})
	w.apply(desk.Approve{From: before})
	w.mustEnd(desk.OutcomeApproved, "bob", "cleo")
}

func TestI6_VoteWithoutSeenMeansOriginalRevision(t *testing.T) {
	silent := desk.From{Actor: desk.PersonActor("cleo", requirement.AuthSSO)}
	w := open(t, actionSpec())
	w.apply(desk.ApproveEdited{From: w.from("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.mustRefuse("changed", desk.Approve{From: silent})
	for name, seen := range map[string]desk.Seen{
		"original digest":              {Digest: "shown"},
		"another digest":               {Rev: w.request.Rev, Digest: "other"},
		"future revision":              {Rev: w.request.Rev + 1},
		"old revision":                 {Rev: 1},
		"old revision, current digest": {Rev: 1, Digest: w.request.Digest()},
	} {
		from := silent
		from.Seen = seen
		t.Run(name, func(t *testing.T) { w.mustRefuse("changed", desk.Approve{From: from}) })
	}
	digest := silent
	digest.Seen.Digest = w.request.Digest()
	w.apply(desk.Approve{From: digest})
	w.mustEnd(desk.OutcomeApproved, "cleo")

	w = open(t, actionSpec()) // nothing significant has changed
	w.apply(desk.Approve{From: silent})
	w.mustEnd(desk.OutcomeApproved, "cleo")
}

func TestAbandon_NeedsNoQuorum(t *testing.T) {
	ask := questionSpec()
	ask.Requirement.Groups = []requirement.Group{group(3, "group:dba")}
	w := open(t, ask)
	w.apply(desk.Abandon{From: w.from("rita"), Reason: "never mind"})
	w.mustEnd(desk.OutcomeAbandoned, "rita")
}

// The requester may be a program: it abandons its own request, and no other.
func TestAbandon_RequesterMayBeAnAgent(t *testing.T) {
	for id, want := range map[string]string{"rita": "", "other-bot": "not_human"} {
		w := open(t, questionSpec())
		from := w.from(id)
		from.Actor.Kind = desk.ActorAgent
		if want != "" {
			w.mustRefuse(want, desk.Abandon{From: from})
			continue
		}
		w.apply(desk.Abandon{From: from, Reason: "never mind"})
		w.mustEnd(desk.OutcomeAbandoned, id)
	}
}

// A task can be abandoned if the request is about an action, unless the verb is forbidden.
func TestAbandon_ActionUnlessVerbIsForbidden(t *testing.T) {
	w := open(t, specNeeding(group(3, "group:dba")))
	w.apply(desk.Abandon{From: w.from("ann"), Reason: "never mind"})
	w.mustEnd(desk.OutcomeAbandoned, "ann")
	ask := actionSpec()
	ask.Requirement.Verbs = []requirement.Verb{requirement.VerbApprove, requirement.VerbReject}
	w = open(t, ask)
	w.mustRefuse("not_allowed", desk.Abandon{From: w.from("ann")})
}

// Every person with input is an author, not only the first.
func TestExclude_EachOfTheAuthors(t *testing.T) {
	ask := actionSpec()
	ask.Subject.Authors = append(ask.Subject.Authors, "ann", "bob")
	w := open(t, ask)
	for _, author := range []string{"arno", "ann", "bob"} {
		w.mustRefuse("excluded", desk.Approve{From: w.from(author)})
	}
	w.apply(desk.Approve{From: w.from("cleo")})
	w.mustEnd(desk.OutcomeApproved, "cleo")
}

func TestTexts_AreLimited(t *testing.T) {
	w := open(t, actionSpec())
	w.mustRefuse("bad_text", desk.Comment{From: w.from("ann")})
	w.mustRefuse("bad_text", desk.Comment{From: w.from("ann"), Text: strings.Repeat("é", 4001)})
	w.mustRefuse("bad_text", desk.Comment{From: w.from("ann"), Text: "\xff"})
	w.apply(desk.Comment{From: w.from("ann"), Text: strings.Repeat("é", 4000)})
	agent := w.from("robot")
	agent.Actor.Kind = desk.ActorAgent
	for range 99 {
		w.apply(desk.Comment{From: agent, Text: "again and again"})
	}
	w.mustRefuse("too_many", desk.Comment{From: agent, Text: "again and again"})
	for range 100 { // people have capacity left
		w.apply(desk.Comment{From: w.from("ann"), Text: "again"})
	}
	w.mustRefuse("too_many", desk.Comment{From: w.from("ann"), Text: "again"})
	if len(w.request.Log) > 200 {
		t.Errorf("the log has %d entries", len(w.request.Log))
	}
	// The log no longer reaches back to the creation, so a vote on the original revision is
	// refused.
	old := w.from("bob")
	old.Seen.Rev = 1
	w.apply(desk.AskClarification{From: w.from("ann"), Question: "one more"})
	w.apply(desk.AskClarification{From: w.from("ann"), Question: "and one"})
	w.apply(desk.AskClarification{From: w.from("ann"), Question: "and another"})
	w.mustRefuse("changed", desk.Approve{From: old})
}
