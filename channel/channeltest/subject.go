package channeltest

import (
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/adversarialtext"
)

// Subject is a channel with its peer.
type Subject struct {
	Channel channel.Channel
	// To is an address that the peer accepts. Unknown is one that can never be reached; "" if the
	// channel cannot tell.
	To, Unknown string
	// Many, if set, returns the address of the i-th of many concurrent messages. Otherwise all of
	// them are for To.
	Many func(i int) string
	// Copies returns what people see at the peer, oldest first. Messages that a person recognizes
	// as one, such as e-mails with one Message-ID, are one copy.
	Copies func() []Copy
	// Fail makes the next message fail.
	Fail func(Failure)
	// Harmless, if set, checks the copy of a forged payload. plain is the copy of the same request
	// with a harmless value.
	Harmless func(t testing.TB, payload adversarialtext.Payload, copied, plain Copy)

	// The rest says what the channel cannot do.

	// NoState: its messages do not say whether the request has ended.
	NoState bool
	// NoFacts: it does not show arguments.
	NoFacts bool
	// NoReplace: it cannot replace a message that was posted. It posts the outcome as another one.
	NoReplace bool
	// NoUpdates: it does not show votes.
	NoUpdates bool
	// NoOutcome: it shows that a request has ended, and not how.
	NoOutcome bool
	// NoDuplicateCheck: a message whose response was lost is posted twice.
	NoDuplicateCheck bool
	// NoRetryAfter: its peer cannot demand a pause.
	NoRetryAfter bool
}

// Copy is a message at the peer.
type Copy struct {
	// Text is everything that the message contains, decoded.
	Text string
	// Actions are the controls with which a person decides.
	Actions []string
	// Ended says that the copy shows the request as closed.
	Ended bool
}

// Failure is the way in which a peer fails.
type Failure struct {
	Kind FailureKind
	// RetryAfter is the pause that the peer demands, for RateLimited.
	RetryAfter time.Duration
}

// FailureKind is a kind of failure.
type FailureKind string

// The kinds of failures.
const (
	// LoseResponse: the peer accepts the message, and its response does not arrive.
	LoseResponse FailureKind = "lost response"
	// RateLimited: the peer refuses the message for a while.
	RateLimited FailureKind = "rate limit"
	// Temporary: the peer has a problem of its own.
	Temporary FailureKind = "temporary error"
	// Permanent: the peer refuses the message for good.
	Permanent FailureKind = "permanent error"
)

// limits returns what the channel cannot do.
func (s Subject) limits() (all []string) {
	for _, limit := range []struct {
		set  bool
		text string
	}{
		{s.Unknown == "", "cannot tell an unknown address"}, {s.NoState, "does not say whether a request has ended"}, {s.NoFacts, "shows no arguments"}, {s.NoReplace, "cannot replace a message"}, {s.NoUpdates, "shows no votes"},
		{s.NoOutcome, "does not show how a request ended"}, {s.NoDuplicateCheck, "may post twice after a lost response"}, {s.NoRetryAfter, "its peer demands no pause"},
	} {
		if limit.set {
			all = append(all, limit.text)
		}
	}
	return all
}
