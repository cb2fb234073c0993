package channeltest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/adversarialtext"
	"github.com/fermata-go/fermata/internal/channelerror"
	"github.com/fermata-go/fermata/internal/desk"
)

// Open returns a channel with a new peer. The peer is closed with the test.
type Open func(t testing.TB) Subject

// Run runs the suite.
func Run(t *testing.T, open Open) {
	t.Helper()
	if limits := open(t).limits(); len(limits) > 0 {
		t.Logf("the channel %s", strings.Join(limits, ", "))
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, open) })
	}
}

type check struct {
	name string
	run  func(t testing.TB, open Open)
}

var checks = []check{
	{"Kind", checkKind}, {"Post", checkPost}, {"Vote", checkVote}, {"Rejected", checkRejected}, {"Withdrawn", checkWithdrawn}, {"SentAfterTheEnd", checkSentAfterTheEnd},
	{"RepeatedUpdate", checkRepeatedUpdate}, {"LostResponse", checkLostResponse}, {"FindKnowsOtherDeliveries", checkFindOther}, {"UnknownAddress", checkUnknownAddress},
	{"PermanentError", checkPermanent}, {"TemporaryError", checkTemporary}, {"RetryAfter", checkRetryAfter}, {"CancelledContext", checkCancelled}, {"Concurrent", checkConcurrent},
	{"SensitiveArguments", checkSensitive}, {"ForgedPayloads", checkForged},
}

var kindForm = regexp.MustCompile(`^[a-z][a-z0-9-]{0,30}$`)

func checkKind(t testing.TB, open Open) {
	s := open(t)
	if kind := s.Channel.Kind(); kind != s.Channel.Kind() || kind != channel.AnyKind && !kindForm.MatchString(kind) {
		t.Errorf("kind %q", kind)
	}
}

// send sends a message and returns the reference of its copy.
func send(t testing.TB, s Subject, m channel.Message) string {
	t.Helper()
	ref, err := s.Channel.Send(t.Context(), m)
	if err != nil {
		t.Fatalf("send: %v", err)
	}
	return ref
}

// copies returns the copies and fails the test if there is another number of them.
func copies(t testing.TB, s Subject, want int) []Copy {
	t.Helper()
	all := s.Copies()
	if len(all) != want {
		t.Fatalf("%d copies; want %d: %+v", len(all), want, all)
	}
	return all
}

// ended returns the copy that tells the end, and checks the others.
func ended(t testing.TB, s Subject) Copy {
	t.Helper()
	want := 1
	if s.NoReplace {
		want = 2
	}
	all := copies(t, s, want)
	last := all[len(all)-1]
	if !last.Ended && !s.NoState || len(last.Actions) > 0 {
		t.Errorf("the request has ended; the copy is %+v", last)
	}
	return last
}

func checkPost(t testing.TB, open Open) {
	s := open(t)
	send(t, s, plainAsk(t, "int_1").message(s.To))
	c := copies(t, s, 1)[0]
	wants := []string{"int_1"}
	if !s.NoFacts {
		wants = append(wants, action, amount, "broken parcel", baseURL+"/requests/int_1")
	}
	for _, want := range wants {
		if !strings.Contains(c.Text, want) {
			t.Errorf("no %q in %s", want, c.Text)
		}
	}
	if c.Ended {
		t.Errorf("an open request is shown as closed: %s", c.Text)
	}
	if s.NoFacts && strings.Contains(c.Text, "broken parcel") {
		t.Errorf("arguments are sent: %s", c.Text)
	}
}

func checkVote(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	ref := send(t, s, m)
	if ref == "" {
		t.Fatal("no reference: the outcome would not be sent")
	}
	a = a.after(t, desk.Approve{From: a.from("ann")})
	if next := send(t, s, a.update(m, ref)); next == "" {
		t.Error("no reference after an update")
	}
	c := copies(t, s, 1)[0]
	if c.Ended {
		t.Errorf("one of two approvals closes the copy: %s", c.Text)
	}
	if !s.NoUpdates && !strings.Contains(c.Text, "1 of 2") {
		t.Errorf("the vote is not shown: %s", c.Text)
	}
}

func checkRejected(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	ref := send(t, s, m)
	send(t, s, a.rejected(t).update(m, ref))
	if c := ended(t, s); !s.NoOutcome && !strings.Contains(c.Text, "rejected by ann") {
		t.Errorf("the outcome is not shown: %s", c.Text)
	}
}

func checkWithdrawn(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	ref := send(t, s, m)
	a = a.after(t, desk.Withdraw{From: desk.From{Actor: desk.Actor{ID: "support-bot", Kind: desk.ActorAgent}}, Reason: "done by hand"})
	send(t, s, a.update(m, ref))
	if c := ended(t, s); !s.NoOutcome && !strings.Contains(c.Text, "withdrawn") {
		t.Errorf("the outcome is not shown: %s", c.Text)
	}
}

// A copy that is sent after the decision has no actions.
func checkSentAfterTheEnd(t testing.TB, open Open) {
	s := open(t)
	send(t, s, plainAsk(t, "int_1").rejected(t).message(s.To))
	for _, c := range s.Copies() {
		if !c.Ended && !s.NoState || len(c.Actions) > 0 {
			t.Errorf("the request has ended; the copy is %+v", c)
		}
	}
}

// An update may be sent again after another process took the delivery over.
func checkRepeatedUpdate(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	ref := send(t, s, m)
	end := a.rejected(t).update(m, ref)
	end.Ref = send(t, s, end)
	end.Attempt = 2
	send(t, s, end)
	ended(t, s)
}

// failure fails the test unless an error has the form that the executor needs.
func failure(t testing.TB, err error, permanent bool) {
	t.Helper()
	switch {
	case err == nil:
		t.Fatal("no error")
	case channelerror.IsPermanent(err) != permanent:
		t.Errorf("permanent is %v: %v", !permanent, err)
	}
	if code := desk.NoticeFailureCode(err); code == "" || strings.Contains(code, secret) {
		t.Errorf("code %q", code)
	}
}

func checkLostResponse(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	s.Fail(Failure{Kind: LoseResponse})
	_, err := s.Channel.Send(t.Context(), m)
	failure(t, err, false)
	m.Attempt = 2
	again := m
	if finder, ok := s.Channel.(channel.Finder); ok {
		ref, found, err := finder.Find(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if found {
			again = a.update(m, ref)
		}
	}
	ref := send(t, s, again)
	if !s.NoDuplicateCheck {
		copies(t, s, 1)
	}
	send(t, s, a.rejected(t).update(m, ref))
	if all := s.Copies(); !all[len(all)-1].Ended && !s.NoState {
		t.Errorf("the end is not shown: %+v", all)
	}
	if !s.NoDuplicateCheck {
		ended(t, s)
	}
}

func checkFindOther(t testing.TB, open Open) {
	s := open(t)
	finder, ok := s.Channel.(channel.Finder)
	if !ok {
		return
	}
	send(t, s, plainAsk(t, "int_1").message(s.To))
	if ref, found, err := finder.Find(t.Context(), plainAsk(t, "int_2").message(s.To)); err != nil || found {
		t.Errorf("found %q for a delivery that was not sent: %v", ref, err)
	}
}

func checkUnknownAddress(t testing.TB, open Open) {
	s := open(t)
	if s.Unknown == "" {
		return
	}
	_, err := s.Channel.Send(t.Context(), plainAsk(t, "int_1").message(s.Unknown))
	failure(t, err, true)
	copies(t, s, 0)
}

func checkPermanent(t testing.TB, open Open) {
	s := open(t)
	s.Fail(Failure{Kind: Permanent})
	_, err := s.Channel.Send(t.Context(), plainAsk(t, "int_1").message(s.To))
	failure(t, err, true)
}

func checkTemporary(t testing.TB, open Open) {
	s := open(t)
	m := plainAsk(t, "int_1").message(s.To)
	s.Fail(Failure{Kind: Temporary})
	_, err := s.Channel.Send(t.Context(), m)
	failure(t, err, false)
	copies(t, s, 0)
	m.Attempt = 2
	send(t, s, m)
	copies(t, s, 1)
}

func checkRetryAfter(t testing.TB, open Open) {
	s := open(t)
	if s.NoRetryAfter {
		return
	}
	const pause = 7 * time.Second
	s.Fail(Failure{Kind: RateLimited, RetryAfter: pause})
	_, err := s.Channel.Send(t.Context(), plainAsk(t, "int_1").message(s.To))
	failure(t, err, false)
	if got := channelerror.RetryAfter(err); got != pause {
		t.Errorf("retry after %v; want %v", got, pause)
	}
}

func checkCancelled(t testing.TB, open Open) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Channel.Send(ctx, plainAsk(t, "int_1").message(s.To))
	failure(t, err, false)
	copies(t, s, 0)
}

func checkConcurrent(t testing.TB, open Open) {
	s := open(t)
	const count = 20
	var all sync.WaitGroup
	errs := make([]error, count)
	for i := range count {
		to := s.To
		if s.Many != nil {
			to = s.Many(i)
		}
		m := plainAsk(t, fmt.Sprintf("int_c%02d", i)).message(to)
		all.Go(func() { _, errs[i] = s.Channel.Send(t.Context(), m) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got := copies(t, s, count)
	for i := range count {
		id := fmt.Sprintf("int_c%02d", i)
		if n := len(slices.DeleteFunc(slices.Clone(got), func(c Copy) bool { return !strings.Contains(c.Text, id) })); n != 1 {
			t.Errorf("%d copies of %s", n, id)
		}
	}
}

func checkSensitive(t testing.TB, open Open) {
	s := open(t)
	a := plainAsk(t, "int_1")
	m := a.message(s.To)
	ref := send(t, s, m)
	send(t, s, a.rejected(t).update(m, ref))
	for _, c := range s.Copies() {
		if strings.Contains(c.Text, secret) {
			t.Errorf("I8: the sensitive argument is sent: %s", c.Text)
		}
	}
}

// checkForged sends each forged payload as an argument and as the text of the agent. The copy has
// no other controls than that of a harmless request, and no characters that deceive.
func checkForged(t testing.TB, open Open) {
	s := open(t)
	send(t, s, newAsk(t, "int_1", []byte(`"ok"`), "ok").message(s.To))
	plain := copies(t, s, 1)[0]
	for _, p := range adversarialtext.All() {
		s := open(t)
		send(t, s, newAsk(t, "int_1", p.Value, p.Text).message(s.To))
		c := copies(t, s, 1)[0]
		// a request that does not fit has no button that approves
		if !slices.Equal(c.Actions, plain.Actions) && strings.Contains(strings.Join(c.Actions, " "), "Approve") {
			t.Errorf("%s: actions %q; want %q", p.Name, c.Actions, plain.Actions)
		}
		if c.Ended {
			t.Errorf("%s: the copy says that the request has ended", p.Name)
		}
		if i := strings.IndexFunc(c.Text, deceives); i >= 0 {
			t.Errorf("%s: the copy contains %+q", p.Name, []rune(c.Text[i:])[0])
		}
		if s.Harmless != nil {
			s.Harmless(t, p, c, plain)
		}
	}
}

// deceives reports characters that are invisible or change the direction of text, except line ends
// and the zero-width space with which channels break markup.
func deceives(r rune) bool {
	switch {
	case r == '\n' || r == '\r' || r == '\t' || r == 0x200b:
		return false
	case r < 0x20, r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x2069, r >= 0xe0000 && r < 0xe0080:
		return true
	}
	return slices.Contains([]rune{0xad, 0x34f, 0x61c, 0x115f, 0x180e, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x3164, 0xfeff, 0xffa0}, r)
}
