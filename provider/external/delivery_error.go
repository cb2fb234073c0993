package external

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
)

// retrySchedule is the delay after each failed attempt. It is that of the Standard Webhooks
// specification, and spans three days.
var retrySchedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// maxDelay limits the delay that a receiver can request.
const maxDelay = 24 * time.Hour

// DeliveryError reports why a webhook was not delivered. It contains only the status and the host
// of the URL, and no other data of the receiver.
type DeliveryError struct {
	Host string
	// Status is the HTTP status; 0 if there is none, and then Problem is the reason.
	Status  int
	Problem string

	after time.Duration // the delay that the receiver requested
	final bool          // a retry is useless
}

func (e *DeliveryError) Error() string { return "external: " + e.ForLog() }

// ForLog returns the text for the operator's log; see [provider.LogError].
func (e *DeliveryError) ForLog() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d", e.Host, e.Status)
	}
	return fmt.Sprintf("%s was not reached: %s", e.Host, e.Problem)
}

var _ provider.LogError = (*DeliveryError)(nil)

// statusError returns nil if the receiver accepted the message.
func statusError(host string, response *http.Response) error {
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	return &DeliveryError{
		Host: host, Status: response.StatusCode, final: response.StatusCode == http.StatusGone,
		after: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

// retryAfter parses the Retry-After header: seconds, or a date. It returns 0 for other values.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxDelay/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxDelay)
	}
	return 0
}

// connectError describes why there is no response. It does not include the texts of the net
// package, which may contain data of the receiver.
func connectError(host string, err error) error {
	e := &DeliveryError{Host: host, Problem: "the connection failed"}
	if errors.Is(err, errForbidden) {
		e.Problem, e.final = errForbidden.Error(), true
		return e
	}
	if _, unknown := errors.AsType[*net.DNSError](err); unknown {
		e.Problem = "its name cannot be resolved"
		return e
	}
	if _, untrusted := errors.AsType[*tls.CertificateVerificationError](err); untrusted {
		e.Problem = "its certificate is not trusted"
		return e
	}
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		e.Problem = "it timed out"
	}
	return e
}

// retryError returns the error with the delay of the next attempt, if any.
func retryError(attempt int, err error) error {
	failed, ok := errors.AsType[*DeliveryError](err)
	switch {
	case !ok:
		return err
	case failed.final || attempt >= len(retrySchedule):
		return fmt.Errorf("%w: %w", provider.ErrPark, err)
	}
	delay := retrySchedule[max(attempt, 0)]
	// jitter, so that simultaneous failures are not retried simultaneously
	delay += rand.N(delay / 5)
	return &fermata.RetryError{After: max(delay, failed.after), Err: err}
}
