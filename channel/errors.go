package channel

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
)

// ErrNotLinked says that an account of a channel is not linked to a person. The channel offers
// [Desk.LinkURL].
var ErrNotLinked = errors.New("channel: the account is not linked to a person")

// CodeGone is the code of an address that does not exist any more. If it belongs to a person, it is
// removed.
const CodeGone = "gone"

// Error says why a message was not sent.
type Error struct {
	// Code may be shown to people. It has 1 to 50 lower-case letters, digits and underscores, such
	// as channel_not_found.
	Code string
	// Permanent says that another attempt would fail too. The delivery is not tried again.
	Permanent bool
	// RetryAfter is the shortest pause before the next attempt, as the peer demands; 0 leaves it to
	// the executor.
	RetryAfter time.Duration
	// Err is the cause. It is neither logged nor shown.
	Err error
}

// Error returns the code and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return "channel: " + e.Code
	}
	return fmt.Sprintf("channel: %s: %v", e.Code, e.Err)
}

// Unwrap returns the code for package desk, and the cause.
func (e *Error) Unwrap() error { return &desk.NoticeError{Code: e.Code, Err: e.Err} }
