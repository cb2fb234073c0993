package desk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/desk"
)

func told(change desk.Change, kind desk.NoticeKind) []string {
	for _, n := range change.Notices {
		if n.Kind == kind {
			return n.Targets
		}
	}
	return nil
}

func TestClaim_KeepsNobodyFromDeciding(t *testing.T) {
	w := open(t, action())
	w.do(desk.Claim{From: w.by("ann")})
	w.refused("claimed", desk.Claim{From: w.by("bob")})
	w.refused("not_claimed", desk.Release{From: w.by("bob")})
	w.do(desk.Approve{From: w.by("bob")})
	w.ended(desk.Approved, "bob")
	if w.request.Claim != nil {
		t.Error("somebody looks after what is over")
	}
}

// Whoever left the group could not be asked to give it back, and nobody else could look after it.
func TestClaim_OfSomebodyWhoHasLeftIsTakenOver(t *testing.T) {
	w := open(t, action())
	w.do(desk.Claim{From: w.by("ann")})
	w.leaves("ann")
	w.do(desk.Claim{From: w.by("bob")})
	if c := w.request.Claim; c == nil || c.By != "bob" {
		t.Errorf("it is claimed by %+v", c)
	}
	w.refused("claimed", desk.Claim{From: w.by("cleo")})
}

func TestAskBack_TheRunAnswersAndTheRequestStaysOpen(t *testing.T) {
	w := open(t, action())
	if to := told(w.do(desk.AskBack{From: w.by("ann"), Question: "why?"}), desk.TellRequester); !slices.Equal(to, []string{"user:rita"}) {
		t.Errorf("asked %v", to)
	}
	w.refused("not_yours", desk.AnswerBack{From: w.by("bob"), Question: 1, Answer: "I guess"}) // nobody speaks for the run
	w.refused("bad_text", desk.AnswerBack{From: w.run(), Question: 1})
	w.refused("no_question", desk.AnswerBack{From: w.run(), Question: 2, Answer: "what?"})
	if to := told(w.do(desk.AnswerBack{From: w.run(), Question: 1, Answer: "because"}), desk.Notify); !slices.Equal(to, []string{"user:ann"}) {
		t.Errorf("told %v", to)
	}
	w.refused("no_question", desk.AnswerBack{From: w.run(), Question: 1, Answer: "or rather"}) // ann has read the first
	if q := w.request.Questions; len(q) != 1 || q[0].Text != "why?" || q[0].Answer.Text != "because" {
		t.Errorf("questions = %+v", q)
	}
	w.stillOpen()
}

// Somebody who got no answer does it again, also when it is over by now. What they did counts once.
func TestRepeated_KnowsWhatWasDoneUnderAKey(t *testing.T) {
	w := open(t, action())
	under := func(who, key, digest string) desk.From {
		from := w.by(who)
		from.Once = desk.Once{Key: key, Digest: digest}
		return from
	}
	first := desk.Comment{From: under("ann", "k", "so"), Text: "so"}
	if again, err := desk.Repeated(w.request, first); again || err != nil {
		t.Errorf("before: %t, %v", again, err)
	}
	change := w.do(first)
	if change.Facts[0].Once != nil {
		t.Error("the audit is told the digest of a comment")
	}
	w.do(desk.Approve{From: w.by("bob")})
	for _, test := range []struct {
		name string
		act  desk.Act
		want bool
		err  error
	}{
		{"the same", first, true, nil},
		{"without a key", desk.Comment{From: w.by("ann"), Text: "so"}, false, nil},
		{"another key", desk.Comment{From: under("ann", "l", "so"), Text: "so"}, false, nil},
		{"somebody else", desk.Comment{From: under("bob", "k", "so"), Text: "so"}, false, nil},
		{"something else", desk.Comment{From: under("ann", "k", "not so"), Text: "not so"}, false, desk.ErrReused},
	} {
		if again, err := desk.Repeated(w.request, test.act); again != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %t, %v", test.name, again, err)
		}
	}
}

func TestDelegate_NobodyPassesOnARightThatIsNotTheirs(t *testing.T) {
	w := open(t, action())
	if err := w.refused("not_member", desk.Delegate{From: w.by("ann"), To: "eve"}); !strings.HasSuffix(err.Error(), ": eve") {
		t.Errorf("who is in none of the groups? %v", err) // it sounded as if it were ann
	}
	w.refused("excluded", desk.Delegate{From: w.by("ann"), To: "rita"})
	w.refused("not_yours", desk.Delegate{From: w.by("ann"), To: "ann"})
	w.do(desk.Claim{From: w.by("ann")})
	if to := told(w.do(desk.Delegate{From: w.by("ann"), To: "bob"}), desk.Notify); !slices.Equal(to, []string{"user:bob"}) {
		t.Errorf("told %v", to)
	}
	if w.request.Claim != nil {
		t.Error("ann still looks after it")
	}
	w.do(desk.Approve{From: w.by("ann")}) // and can still decide
	w.ended(desk.Approved, "ann")
}

func TestChange_TellsEveryCopyToShowIt(t *testing.T) {
	w := open(t, action())
	rerenders := func(change desk.Change) bool {
		return slices.ContainsFunc(change.Notices, func(n desk.Notice) bool { return n.Kind == desk.Rerender && n.Rev == change.Request.Rev })
	}
	if change := w.do(desk.Comment{From: w.by("ann"), Text: "hm"}); !rerenders(change) {
		t.Errorf("a comment is not shown: %+v", change.Notices)
	}
	if change := w.do(desk.View{From: w.by("ann")}); rerenders(change) {
		t.Errorf("a view makes every copy blink: %+v", change.Notices)
	}
	if change := w.do(desk.Approve{From: w.by("ann")}); !rerenders(change) {
		t.Errorf("the end is not shown: %+v", change.Notices)
	}
	unique(t, w.notices)
}

func TestSince_IsWhatHappenedAfterARevision(t *testing.T) {
	w := open(t, action())
	rev := w.request.Rev
	w.do(desk.Comment{From: w.by("ann"), Text: "hm"})
	w.do(desk.Claim{From: w.by("bob")})
	got := w.request.Since(rev)
	if len(got) != 2 || got[0].String() != "ann commented" || got[1].String() != "bob looks after it" || len(w.request.Since(w.request.Rev)) != 0 {
		t.Errorf("since then: %v", got)
	}
}
