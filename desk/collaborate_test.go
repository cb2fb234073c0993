package desk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/desk"
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
		t.Error("somebody looks after what is over")
	}
}

// Whoever left the group could not be asked to give it back, and nobody else could look after it.
func TestClaim_OfFormerMemberCanBeTakenOver(t *testing.T) {
	w := open(t, actionSpec())
	w.apply(desk.Claim{From: w.from("ann")})
	w.leave("ann")
	w.apply(desk.Claim{From: w.from("bob")})
	if c := w.request.Claim; c == nil || c.By != "bob" {
		t.Errorf("it is claimed by %+v", c)
	}
	w.mustRefuse("claimed", desk.Claim{From: w.from("cleo")})
}

func TestAskClarification_ReplyKeepsRequestOpen(t *testing.T) {
	w := open(t, actionSpec())
	if to := noticeTargets(w.apply(desk.AskClarification{From: w.from("ann"), Question: "why?"}), desk.NoticeRequester); !slices.Equal(to, []string{"user:rita"}) {
		t.Errorf("asked %v", to)
	}
	w.mustRefuse("not_yours", desk.AnswerClarification{From: w.from("bob"), Number: 1, Answer: "I guess"}) // nobody speaks for the run
	w.mustRefuse("bad_text", desk.AnswerClarification{From: w.fromRun(), Number: 1})
	w.mustRefuse("no_question", desk.AnswerClarification{From: w.fromRun(), Number: 2, Answer: "what?"})
	if to := noticeTargets(w.apply(desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "because"}), desk.NoticeNotify); !slices.Equal(to, []string{"user:ann"}) {
		t.Errorf("told %v", to)
	}
	w.mustRefuse("no_question", desk.AnswerClarification{From: w.fromRun(), Number: 1, Answer: "or rather"}) // ann has read the first
	if q := w.request.Clarifications; len(q) != 1 || q[0].Text != "why?" || q[0].Answer.Text != "because" {
		t.Errorf("questions = %+v", q)
	}
	w.mustBeOpen()
}

// Somebody who got no answer does it again, also when it is over by now. What they did counts once.
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
		t.Error("the audit is told the digest of a comment")
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
		{"somebody else", desk.Comment{From: under("bob", "k", "so"), Text: "so"}, false, nil},
		{"something else", desk.Comment{From: under("ann", "k", "not so"), Text: "not so"}, false, desk.ErrKeyReused},
	} {
		if again, err := desk.IsRepeat(w.request, test.act); again != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", test.name, again, err)
		}
	}
}

func TestDelegate_TargetMustBeEligible(t *testing.T) {
	w := open(t, actionSpec())
	if err := w.mustRefuse("not_member", desk.Delegate{From: w.from("ann"), To: "eve"}); !strings.HasSuffix(err.Error(), ": eve") {
		t.Errorf("who is in none of the groups? %v", err) // it sounded as if it were ann
	}
	w.mustRefuse("excluded", desk.Delegate{From: w.from("ann"), To: "rita"})
	w.mustRefuse("not_yours", desk.Delegate{From: w.from("ann"), To: "ann"})
	w.apply(desk.Claim{From: w.from("ann")})
	if to := noticeTargets(w.apply(desk.Delegate{From: w.from("ann"), To: "bob"}), desk.NoticeNotify); !slices.Equal(to, []string{"user:bob"}) {
		t.Errorf("told %v", to)
	}
	if w.request.Claim != nil {
		t.Error("ann still looks after it")
	}
	w.apply(desk.Approve{From: w.from("ann")}) // and can still decide
	w.mustEnd(desk.OutcomeApproved, "ann")
}

func TestChange_RerendersCopies(t *testing.T) {
	w := open(t, actionSpec())
	rerenders := func(change desk.Change) bool {
		return slices.ContainsFunc(change.Notices, func(n desk.Notice) bool { return n.Kind == desk.NoticeRerender && n.Rev == change.Request.Rev })
	}
	if change := w.apply(desk.Comment{From: w.from("ann"), Text: "hm"}); !rerenders(change) {
		t.Errorf("a comment is not shown: %+v", change.Notices)
	}
	if change := w.apply(desk.View{From: w.from("ann")}); rerenders(change) {
		t.Errorf("a view makes every copy blink: %+v", change.Notices)
	}
	if change := w.apply(desk.Approve{From: w.from("ann")}); !rerenders(change) {
		t.Errorf("the end is not shown: %+v", change.Notices)
	}
	mustHaveUniqueKeys(t, w.notices)
}

func TestEventsSince_ReturnsEventsAfterRevision(t *testing.T) {
	w := open(t, actionSpec())
	rev := w.request.Rev
	w.apply(desk.Comment{From: w.from("ann"), Text: "hm"})
	w.apply(desk.Claim{From: w.from("bob")})
	got := w.request.EventsSince(rev)
	if len(got) != 2 || got[0].String() != "ann commented" || got[1].String() != "bob looks after it" || len(w.request.EventsSince(w.request.Rev)) != 0 {
		t.Errorf("since then: %v", got)
	}
}
