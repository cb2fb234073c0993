package desk

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// NoticeError is a failed delivery with a code that may be shown. Other errors of a channel may
// contain anything, so people see only that it failed.
type NoticeError struct {
	// Code has 1 to 50 lower-case letters, digits and underscores, such as channel_not_found.
	Code string
	Err  error
}

// Error returns the code and the error.
func (e *NoticeError) Error() string { return fmt.Sprintf("%s: %v", e.Code, e.Err) }

// Unwrap returns the error of the channel.
func (e *NoticeError) Unwrap() error { return e.Err }

var validNoticeCode = regexp.MustCompile(`^[a-z0-9_]{1,50}$`)

// NoticeFailureCode returns the code of a failed delivery that may be shown: that of a
// [NoticeError], timeout, or failed.
func NoticeFailureCode(err error) string {
	if known, ok := errors.AsType[*NoticeError](err); ok && validNoticeCode.MatchString(known.Code) {
		return known.Code
	}
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		return "timeout"
	}
	return "failed"
}

func (a RecordNoticeFailure) apply(d *update) error {
	if !validNoticeCode.MatchString(a.Code) {
		return d.refuse(ErrInvalidText, "the code of a failure has 1 to 50 lower-case letters, digits and underscores")
	}
	detail := map[string]string{"kind": string(a.Kind), "target": a.Target, "code": a.Code, "attempt": strconv.Itoa(a.Attempt)}
	text := fmt.Sprintf("could not reach %s (%s: %s)", a.Target, a.Kind, a.Code)
	if a.Next.IsZero() {
		text += fmt.Sprintf("; gave up after %d attempts", a.Attempt)
	} else {
		next := a.Next.UTC().Round(0)
		detail["next"] = next.Format(time.RFC3339)
		text += "; next attempt at " + next.Format("15:04:05 UTC")
	}
	d.logEvent(EventNoticeFailed, text, detail)
	return nil
}
