package desk_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// propertyRun is a random request in a random environment, with its own record of the votes.
type propertyRun struct {
	t       *rapid.T
	now     time.Time
	members desk.StaticDirectory
	request desk.Request
	next    time.Time
	finals  int
	keys    map[string]bool
	// said is the last choice of each person on the current request, as the test understands it.
	said map[string]string
}

var (
	people = []string{"ann", "bob", "cleo", "dan", "rita", "arno"}
	groups = []string{"group:a", "group:b", "group:c"}
	edits  = []json.RawMessage{dropArgs, half, json.RawMessage(`{"table":"users","limit":7}`)}
)

func draw[T any](t *rapid.T, name string, from ...T) T { return rapid.SampledFrom(from).Draw(t, name) }

func newPropertyRun(t *rapid.T) *propertyRun {
	l := &propertyRun{t: t, now: start, members: desk.StaticDirectory{}, keys: map[string]bool{}, said: map[string]string{}}
	for _, g := range groups {
		l.members[g] = rapid.SliceOfDistinct(rapid.SampledFrom(people), rapid.ID[string]).Draw(t, g)
	}
	ask := actionSpec()
	if rapid.Bool().Draw(t, "question") {
		ask = questionSpec()
	}
	ask.Requirement.Groups = nil
	for range rapid.IntRange(1, 2).Draw(t, "groups") {
		ask.Requirement.Groups = append(ask.Requirement.Groups, requirement.Group{
			From: []string{draw(t, "from", groups...)}, Count: rapid.IntRange(1, 2).Draw(t, "count"), Widen: []string{"group:c"},
		})
	}
	ask.Requirement.Exclude = rapid.SliceOfDistinct(rapid.SampledFrom([]requirement.Duty{requirement.DutyRequester, requirement.DutyAuthor, requirement.DutyLastEditor}), rapid.ID[requirement.Duty]).Draw(t, "exclude")
	ask.Requirement.DenyCount = rapid.IntRange(0, 2).Draw(t, "denials")
	ask.Requirement.Deadline = draw(t, "deadline", dur(0), dur(5*hour))
	ask.Requirement.OnTimeout = requirement.ExpireOnTimeout
	if ask.Requirement.Deadline > 0 {
		ask.Requirement.OnTimeout = draw(t, "on timeout", requirement.ExpireOnTimeout, requirement.EscalateOnTimeout)
	}
	ask.Route = draw(t, "route", desk.DefaultRoute(desk.DefaultPage), followTheSunRoute(), desk.Route{Name: "wide", Cap: dur(9 * hour), Steps: []desk.Step{
		{At: dur(hour), Notify: []string{"approvers"}, Widen: []string{"group:c"}}, {At: dur(2 * hour), Remind: []string{"claimer"}}, {At: dur(8 * hour), Expire: "stale"},
	}})
	change, err := desk.New(ask, l.env())
	if err != nil {
		t.Fatal(err)
	}
	l.checkNotices(change)
	return l
}

func (l *propertyRun) env() desk.Env {
	return desk.Env{Now: l.now, Directory: l.members, Args: dropArgs}
}

// randomCommand draws a command from a person who saw the current request or does not say what they
// saw.
func (l *propertyRun) randomCommand() desk.Command {
	who := draw(l.t, "who", people...)
	from := desk.From{Actor: desk.PersonActor(who, requirement.AuthSSO)}
	if rapid.Bool().Draw(l.t, "looked") {
		from.Seen = desk.Seen{Rev: l.request.Rev, Digest: l.request.Digest()}
	}
	soon := l.now.Add(time.Duration(rapid.IntRange(-10, 600).Draw(l.t, "soon")) * minute)
	return draw[desk.Command](l.t, "act",
		desk.Approve{From: from}, desk.Approve{From: from}, desk.ApproveEdited{From: from, Args: draw(l.t, "args", edits...)},
		desk.Reject{From: from, Reason: "no"}, desk.Respond{From: from, Value: draw(l.t, "value", json.RawMessage(`1`), json.RawMessage(`2`))},
		desk.Respond{From: from, Value: json.RawMessage(`1`)},
		desk.Abandon{From: from}, desk.Claim{From: from}, desk.Release{From: from}, desk.View{From: from}, desk.Comment{From: from, Text: "hm"},
		desk.AskClarification{From: from, Question: "why?"}, desk.AnswerClarification{From: desk.From{Actor: desk.SystemActor("executor")}, Number: rapid.IntRange(0, 3).Draw(l.t, "question"), Answer: "so"},
		desk.Delegate{From: from, To: draw(l.t, "to", people...)}, desk.Snooze{From: from, Until: soon}, desk.Extend{From: from, Until: soon},
		desk.Escalate{From: from}, desk.Withdraw{From: from}, desk.Tick{}, desk.Tick{}, desk.RecordDelivery{Target: "inbox", At: l.now},
		desk.RecordOutage{Start: l.now.Add(-hour), End: l.now},
	)
}

// step does one thing and checks the invariants.
func (l *propertyRun) step() {
	switch rapid.IntRange(0, 9).Draw(l.t, "what") {
	case 0: // a person joins or leaves
		g, who := draw(l.t, "group", groups...), draw(l.t, "moves", people...)
		if i := slices.Index(l.members[g], who); i >= 0 {
			l.members[g] = slices.Delete(slices.Clone(l.members[g]), i, i+1)
		} else {
			l.members[g] = append(slices.Clone(l.members[g]), who)
		}
	case 1, 2:
		l.now = l.now.Add(time.Duration(rapid.IntRange(0, 300).Draw(l.t, "minutes")) * minute)
	default:
		l.apply(l.randomCommand())
	}
}

func (l *propertyRun) apply(act desk.Command) {
	before := encoded(l.t, l.request)
	state, rev := l.request.State, l.request.Rev
	change, err := desk.Apply(l.request, act, l.env())
	if got := encoded(l.t, l.request); got != before {
		l.t.Fatalf("%T has changed its input:\n%s\n%s", act, before, got)
	}
	if err != nil {
		if desk.Code(err) == "" || change.Changed() || change.Decision != nil {
			l.t.Fatalf("%T: %v, with %+v", act, err, change)
		}
		return
	}
	if !change.Changed() {
		if encoded(l.t, change.Request) != before || len(change.Notices) > 0 || change.Decision != nil {
			l.t.Fatalf("%T reports no change but has changed something", act)
		}
		return
	}
	if state != desk.StateOpen {
		l.t.Fatalf("%T after the decision, %s", act, state)
	}
	if change.Request.Rev != rev+1 {
		l.t.Fatalf("%T: revision %d after %d", act, change.Request.Rev, rev)
	}
	l.checkChange(act, change)
	if change.Decision != nil {
		l.checkDecision(act, *change.Decision, change.Request.Edit)
	}
	l.checkNotices(change)
	if _, tick := act.(desk.Tick); tick && !l.next.IsZero() && !l.next.After(l.now) {
		l.t.Fatalf("the timer stays at %s, now is %s", l.next, l.now)
	}
}

// checkChange updates the test's own record.
func (l *propertyRun) checkChange(act desk.Command, change desk.Change) {
	subject := func(r desk.Request) string { return "yes " + r.ActionDigest() }
	switch a := act.(type) {
	case desk.Approve:
		l.said[a.Actor.ID] = subject(change.Request)
	case desk.ApproveEdited:
		if subject(change.Request) != subject(l.request) {
			l.said = map[string]string{}
		}
		l.said[a.Actor.ID] = subject(change.Request)
	case desk.Reject:
		l.said[a.Actor.ID] = "no"
	case desk.Respond:
		l.said[a.Actor.ID] = string(a.Value)
	}
}

// checkDecision checks a decision against the record, by brute force.
func (l *propertyRun) checkDecision(act desk.Command, f desk.Decision, edit *desk.Edit) {
	l.finals++
	if late := !l.now.Before(l.request.Deadline); late && f.Outcome != desk.OutcomeExpired && f.Outcome != desk.OutcomeWithdrawn {
		l.t.Fatalf("%s at %s, after the deadline %s", f.Outcome, l.now, l.request.Deadline)
	} else if !late && f.Outcome == desk.OutcomeExpired {
		l.t.Fatalf("expired before the deadline")
	}
	switch f.Outcome {
	case desk.OutcomeApproved:
		if edit != nil && string(f.Args) != string(edit.Args) || edit == nil && f.Args != nil {
			l.t.Fatalf("approved %s with the edit %+v", f.Args, edit)
		}
		if edit != nil && slices.Contains(f.By, edit.By) && slices.Contains(l.request.Requirement.Exclude, requirement.DutyLastEditor) {
			l.t.Fatalf("%s counts for their own edit", edit.By)
		}
		l.checkQuorum("yes "+f.Digest, f.By)
	case desk.OutcomeAnswered:
		l.checkQuorum(string(f.Value), f.By)
	case desk.OutcomeRejected:
		l.checkVoters("no", f.By)
		if len(f.By) < max(1, l.request.Requirement.DenyCount) {
			l.t.Fatalf("rejected by %v, %d are needed", f.By, l.request.Requirement.DenyCount)
		}
	case desk.OutcomeExpired:
		if _, tick := act.(desk.Tick); !tick || f.Digest != "" || f.Args != nil || f.Value != nil {
			l.t.Fatalf("expired by %T: %+v", act, f)
		}
	}
}

// checkVoters checks that the voters voted so, are eligible, and are listed once.
func (l *propertyRun) checkVoters(word string, by []string) {
	for i, who := range by {
		need := l.request.Requirement
		switch {
		case l.said[who] != word:
			l.t.Fatalf("%s counts for %q but voted %q", who, word, l.said[who])
		case slices.Contains(by[:i], who):
			l.t.Fatalf("%s counts twice", who)
		case who == "rita" && slices.Contains(need.Exclude, requirement.DutyRequester), who == "arno" && slices.Contains(need.Exclude, requirement.DutyAuthor):
			l.t.Fatalf("%s counts but is excluded by %v", who, need.Exclude)
		case !slices.ContainsFunc(need.Groups, func(g requirement.Group) bool { return l.in(g, who) }):
			l.t.Fatalf("%s counts but is in no group", who)
		}
	}
}

func (l *propertyRun) in(g requirement.Group, who string) bool {
	return slices.ContainsFunc(g.From, func(from string) bool { return slices.Contains(l.members[from], who) })
}

func (l *propertyRun) checkQuorum(word string, by []string) {
	l.checkVoters(word, by)
	var places []requirement.Group
	for _, g := range l.request.Requirement.Groups {
		for range max(1, g.Count) {
			places = append(places, g)
		}
	}
	if !l.canFill(places, by) {
		l.t.Fatalf("%v do not satisfy %+v with %v", by, l.request.Requirement.Groups, l.members)
	}
}

// canFill tries every assignment of people to places.
func (l *propertyRun) canFill(places []requirement.Group, by []string) bool {
	if len(places) == 0 {
		return true
	}
	for i, who := range by {
		if l.in(places[0], who) && l.canFill(places[1:], slices.Delete(slices.Clone(by), i, i+1)) {
			return true
		}
	}
	return false
}

// checkNotices stores a change as bytes and checks that nothing is lost.
func (l *propertyRun) checkNotices(change desk.Change) {
	for _, n := range change.Notices {
		if l.keys[n.Key] {
			l.t.Fatalf("duplicate notice %s", n.Key)
		}
		l.keys[n.Key] = true
	}
	text := encoded(l.t, change.Request)
	read, err := desk.Decode([]byte(text))
	if err != nil || encoded(l.t, read) != text {
		l.t.Fatalf("%v: %s\nis decoded as %s", err, text, encoded(l.t, read))
	}
	if !reflect.DeepEqual(read.Subject, change.Request.Subject) || !reflect.DeepEqual(read.Route, change.Request.Route) {
		l.t.Fatal("the subject or the route has changed")
	}
	if over := change.NextDue.IsZero(); over != (read.State != desk.StateOpen) || !over && change.NextDue.After(read.Deadline) {
		l.t.Fatalf("next due is %s in state %s with deadline %s", change.NextDue, read.State, read.Deadline)
	}
	l.request, l.next = read, change.NextDue
}

func encoded(t *rapid.T, r desk.Request) string {
	text, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestProperties_RandomCommands(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newPropertyRun(t)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			l.step()
		}
		// I17: without commands the request expires, and a timer is always due until then.
		for n := 0; l.request.State == desk.StateOpen; n++ {
			if n > 100 {
				t.Fatalf("it does not expire: %s", l.request.Summary(l.now))
			}
			l.now = latest(l.now, desk.NextDue(l.request, l.now))
			l.apply(desk.Tick{})
		}
		if l.finals != 1 {
			t.Fatalf("%d decisions", l.finals)
		}
		if s := l.request.Summary(l.now); s == "" || fmt.Sprint(l.request.Decision) == "" {
			t.Fatal("the summary is empty")
		}
	})
}
