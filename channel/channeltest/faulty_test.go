package channeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/safehtml"
)

// board is a channel without a peer, with at most one fault.
type board struct {
	fault  string
	mu     sync.Mutex
	fail   Failure
	copies []Copy
	refs   map[string]string // by delivery
}

func (b *board) Kind() string { return "board" }

func (b *board) Send(ctx context.Context, m channel.Message) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fail := b.fail
	b.fail = Failure{}
	if b.fault != "ignores its context" && ctx.Err() != nil {
		return "", &channel.Error{Code: "cancelled", Err: ctx.Err()}
	}
	switch {
	case m.To != "wall":
		return "", &channel.Error{Code: "unknown_target", Permanent: b.fault != "retries an unknown address"}
	case fail.Kind == Permanent:
		return "", &channel.Error{Code: "refused", Permanent: b.fault != "retries a refusal"}
	case fail.Kind == Temporary:
		return "", &channel.Error{Code: "busy", Permanent: b.fault == "gives up after a temporary error"}
	case fail.Kind == RateLimited && b.fault == "forgets the pause":
		return "", &channel.Error{Code: "rate_limited"}
	case fail.Kind == RateLimited:
		return "", &channel.Error{Code: "rate_limited", RetryAfter: fail.RetryAfter}
	}
	c := b.draw(m.Card)
	if b.fault == "sends sensitive arguments" {
		c.Text += secret
	}
	if b.fault == "shows hidden characters" {
		for _, f := range m.Card.Facts {
			if f.Flagged {
				c.Text += "\u202e"
			}
		}
	}
	ref := m.Ref
	if ref != "" && b.fault != "posts updates as new messages" {
		var i int
		fmt.Sscan(ref, &i)
		if b.fault != "does not replace" {
			b.copies[i] = c
		}
	} else {
		ref = fmt.Sprint(len(b.copies))
		b.copies = append(b.copies, c)
		if b.fault != "cannot find" {
			b.refs[m.Delivery] = ref
		}
	}
	if b.fault == "mixes up concurrent messages" && len(b.copies) > 1 {
		b.copies[len(b.copies)-1] = b.copies[0]
	}
	if fail.Kind == LoseResponse {
		return "", &channel.Error{Code: "unreachable"}
	}
	return ref, nil
}

func (b *board) draw(card channel.Card) Copy {
	text := []string{card.Sentence, card.Link, card.Progress, card.Outcome}
	for _, f := range card.Facts {
		text = append(text, f.Label+": "+f.Value)
	}
	for _, s := range card.Said {
		text = append(text, s.By+": "+safehtml.Plain(s.Text))
	}
	c := Copy{Text: strings.Join(text, "\n"), Ended: !card.Open()}
	for _, a := range card.Actions {
		c.Actions = append(c.Actions, a.Name)
	}
	if b.fault == "leaves buttons" {
		c.Actions = []string{"approve"}
	}
	return c
}

func (b *board) Find(_ context.Context, m channel.Message) (string, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fault == "finds other deliveries" && len(b.copies) > 0 {
		return "0", true, nil
	}
	ref, found := b.refs[m.Delivery]
	return ref, found, nil
}

func openBoard(fault string) Open {
	return func(testing.TB) Subject {
		b := &board{fault: fault, refs: make(map[string]string)}
		copies := func() []Copy {
			b.mu.Lock()
			defer b.mu.Unlock()
			return slices.Clone(b.copies)
		}
		return Subject{Channel: b, To: "wall", Unknown: "floor", Copies: copies, Fail: func(f Failure) { b.fail = f }}
	}
}

func TestRun_AcceptsACorrectChannel(t *testing.T) { Run(t, openBoard("")) }

// recorder records failures in place of the test that it runs in.
type recorder struct {
	testing.TB
	failed []string
}

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failed = append(r.failed, fmt.Sprintf(format, args...))
}
func (r *recorder) Error(args ...any) { r.failed = append(r.failed, fmt.Sprint(args...)) }
func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic(r)
}
func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	panic(r)
}

// fails reports whether a check fails for a channel.
func fails(t *testing.T, c check, open Open) bool {
	r := &recorder{TB: t}
	func() {
		defer func() {
			if stopped := recover(); stopped != nil && stopped != any(r) {
				panic(stopped)
			}
		}()
		c.run(r, open)
	}()
	return len(r.failed) > 0
}

func TestRun_FindsFaults(t *testing.T) {
	for fault, want := range map[string]string{
		"ignores its context": "CancelledContext", "retries an unknown address": "UnknownAddress", "retries a refusal": "PermanentError",
		"gives up after a temporary error": "TemporaryError", "forgets the pause": "RetryAfter", "sends sensitive arguments": "SensitiveArguments",
		"shows hidden characters": "ForgedPayloads", "posts updates as new messages": "Vote", "does not replace": "Rejected", "cannot find": "LostResponse",
		"mixes up concurrent messages": "Concurrent", "leaves buttons": "Withdrawn", "finds other deliveries": "FindKnowsOtherDeliveries",
	} {
		t.Run(fault, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(c check) bool { return c.name == want })
			if i < 0 || !fails(t, checks[i], openBoard(fault)) {
				t.Errorf("the check %s does not find a channel that %s", want, fault)
			}
		})
	}
}
