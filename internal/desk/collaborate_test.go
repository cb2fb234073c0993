package desk_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
)

func noticeTargets(change desk.Change, kind desk.NoticeKind) []string {
	for _, n := range change.Notices {
		if n.Kind == kind {
			return n.Targets
		}
	}
	return nil
}

func TestClaim_DoesNotBlockOthers(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.Claim{From: w.from("ann")})
	w.mustRefuse("claimed", desk.Claim{From: w.from("bob")})
	w.mustRefuse("not_claimed", desk.Release{From: w.from("bob")})
	w.apply(desk.Approve{From: w.from("bob")})
	w.mustEnd(desk.OutcomeApproved, "bob")
	if w.request.Claim != nil {
		t.Error("a closed request has a claim")
	}
}

// A claim of a former member can be taken over. The former member could not release it.
func TestClaim_OfFormerMemberCanBeTakenOver(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.Claim{From: w.from("ann")})
	w.leave("ann")
	w.apply(desk.Claim{From: w.from("bob")})
	if c := w.request.Claim; c == nil || c.By != "bob" {
		t.Errorf("claim = %+v", c)
	}
	w.mustRefuse("claimed", desk.Claim{From: w.from("cleo")})
}

func TestAskClarification_ReplyKeepsRequestOpen(t *testing.T) {
	w := open(t, actionSpec())
	if to := noticeTargets(w.apply(desk.AskClarification{From: w.from("ann"), Question: "why?"}), desk.NoticeRequester); !slices.Equal(to, []string{"user:rita"}) {
		t.Errorf("asked %v", to)
	}
	// another person cannot answer for the run
	w.mustRefuse("not_yours", desk.AnswerClarification{From: w.from("bob"), Number: 1, Answer: "I guess"})
	w.mustRefuse("bad_text", desk.AnswerClarification{From: w.fromRun(), Number: 1})
	w.mustRefuse("no_question", desk.AnswerClarification{From: w.fromRun(), Number: 2, Answer: "what?"})
	if to := noticeTargets(w.apply(desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "because"}), desk.NoticeNotify); !slices.Equal(to, []string{"user:ann"}) {
		t.Errorf("told %v", to)
	}
	// ann has seen the first answer
	w.mustRefuse("no_question", desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "or rather"})
	if q := w.request.Clarifications; len(q) != 1 || q[0].Text != "why?" || q[0].Answer.Text != "because" {
		t.Errorf("questions = %+v", q)
	}
	w.mustBeOpen()
}

// A client that got no reply retries, even if the request is closed by then. The command counts
// once.
func TestIsRepeat_RecognizesIdempotencyKey(t *testing.T) {
	w := open(t, actionSpec())
	under := func(who, key, digest string) desk.From {
		from := w.from(who)
		from.IdempotencyKey = desk.IdempotencyKey{Key: key, Digest: digest}
		return from
	}
	first := desk.Comment{From: under("ann", "k", "so"), Text: "so"}
	if again, err := desk.IsRepeat(w.request, first); again || err != nil {
		t.Errorf("before: %t, %v", again, err)
	}
	change := w.apply(first)
	if change.Events[0].IdempotencyKey != nil {
		t.Error("the audit event has the digest of a comment")
	}
	w.apply(desk.Approve{From: w.from("bob")})
	for _, test := range []struct {
		name string
		act  desk.Command
		want bool
		err  error
	}{
		{"the same", first, true, nil},
		{"without a key", desk.Comment{From: w.from("ann"), Text: "so"}, false, nil},
		{"another key", desk.Comment{From: under("ann", "l", "so"), Text: "so"}, false, nil},
		{"another person", desk.Comment{From: under("bob", "k", "so"), Text: "so"}, false, nil},
		{"another text", desk.Comment{From: under("ann", "k", "not so"), Text: "not so"}, false, desk.ErrKeyReused},
	} {
		if again, err := desk.IsRepeat(w.request, test.act); again != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", test.name, again, err)
		}
	}
}

func TestDelegate_TargetMustBeEligible(t *testing.T) {
	w := open(t, actionSpec())
	for to, why := range map[string]string{
		"eve":  "eve is not in a group that decides this",
		"rita": "rita is excluded by separation of duties",
		"ann":  "a person cannot delegate to themselves",
		"":     "name a person",
	} {
		err := w.mustRefuse("delegate_not_eligible", desk.Delegate{From: w.from("ann"), To: to})
		if got, want := desk.Sentence(err), "The decision cannot be delegated to this person: "+why+"."; got != want {
			t.Errorf("to %q: %s, want %s", to, got, want)
		}
	}
	w.apply(desk.Claim{From: w.from("ann")})
	if to := noticeTargets(w.apply(desk.Delegate{From: w.from("ann"), To: "bob"}), desk.NoticeNotify); !slices.Equal(to, []string{"user:bob"}) {
		t.Errorf("told %v", to)
	}
	if w.request.Claim != nil {
		t.Error("ann still has the claim")
	}
	w.apply(desk.Approve{From: w.from("ann")}) // and can still vote
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestChange_RerendersCopies(t *testing.T) {
	w := open(t, actionSpec())
	rerenders := func(change desk.Change) bool {
		return slices.ContainsFunc(change.Notices, func(n desk.Notice) bool { return n.Kind == desk.NoticeRerender && n.Rev == change.Request.Rev })
	}
	if change := w.apply(desk.Comment{From: w.from("ann"), Text: "hm"}); !rerenders(change) {
		t.Errorf("no re-render after a comment: %+v", change.Notices)
	}
	if change := w.apply(desk.View{From: w.from("ann")}); rerenders(change) {
		t.Errorf("a view causes a re-render: %+v", change.Notices)
	}
	if change := w.apply(desk.Approve{From: w.from("ann")}); !rerenders(change) {
		t.Errorf("no re-render after the decision: %+v", change.Notices)
	}
	mustHaveUniqueKeys(t, w.notices)
}

func TestEventsSince_ReturnsEventsAfterRevision(t *testing.T) {
	w := open(t, actionSpec())
	rev := w.request.Rev
	w.apply(desk.Comment{From: w.from("ann"), Text: "hm"})
	w.apply(desk.Claim{From: w.from("bob")})
	got := w.request.EventsSince(rev)
	if len(got) != 2 || got[0].String() != "ann commented" || got[1].String() != "bob claimed it" || len(w.request.EventsSince(w.request.Rev)) != 0 {
		t.Errorf("events since then: %v", got)
	}
}
