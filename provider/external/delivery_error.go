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

	"github.com/fermata-go/fermata/provider"
)

// retrySchedule is how long to wait after each attempt that failed. It is the one of the Standard Webhooks specification, and spans three days.
var retrySchedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// maxDelay is how long a receiver can have us wait.
const maxDelay = 24 * time.Hour

// DeliveryError says why a webhook did not arrive. It holds nothing that came from the receiver but the status, and of the URL only the host.
type DeliveryError struct {
	Host string
	// Status is what the receiver said; 0 if there is none, and then Problem says why.
	Status  int
	Problem string

	after time.Duration // how long the receiver wants us to wait
	final bool          // it makes no sense to try again
}

func (e *DeliveryError) Error() string { return "external: " + e.ForLog() }

// ForLog is what an operator may read; see [provider.LogError].
func (e *DeliveryError) ForLog() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d", e.Host, e.Status)
	}
	return fmt.Sprintf("%s was not reached: %s", e.Host, e.Problem)
}

var _ provider.LogError = (*DeliveryError)(nil)

// statusError is nil if the receiver took the message.
func statusError(host string, response *http.Response) error {
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	return &DeliveryError{
		Host: host, Status: response.StatusCode, final: response.StatusCode == http.StatusGone,
		after: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

// retryAfter reads the header of that name: seconds, or a date. What cannot be read is 0.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(maxDelay/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), maxDelay)
	}
	return 0
}

// connectError says in our own words why there is no response: those of the net package may hold what the other side sent.
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
		e.Problem = "it took too long"
	}
	return e
}

// retryError says when to try again, if at all.
func retryError(attempt int, err error) error {
	failed, ok := errors.AsType[*DeliveryError](err)
	switch {
	case !ok:
		return err
	case failed.final || attempt >= len(retrySchedule):
		return fmt.Errorf("%w: %w", provider.ErrPark, err)
	}
	delay := retrySchedule[max(attempt, 0)]
	delay += rand.N(delay / 5) // so that what failed together does not come back together
	return &provider.RetryError{After: max(delay, failed.after), Err: err}
}
