package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// MaxDelay limits the delay that a receiver can request.
const MaxDelay = 24 * time.Hour

// Error reports why a call was not accepted. It contains only the status and the host of the URL,
// and no other data of the receiver.
type Error struct {
	Host string
	// Status is the HTTP status; 0 if there is none, and then Problem is the reason.
	Status  int
	Problem string

	// RetryAfter is the delay that the receiver requested, at most [MaxDelay].
	RetryAfter time.Duration
	// Final says that a retry is useless: the receiver is gone, or may not be called.
	Final bool
	// NotSent says that there was no connection, so the receiver has not got the request. Only
	// [Client.Call] sets it.
	NotSent bool
}

// Error returns the host and what happened.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s answered %d", e.Host, e.Status)
	}
	return fmt.Sprintf("%s was not reached: %s", e.Host, e.Problem)
}

// Timeout reports whether the receiver took too long.
func (e *Error) Timeout() bool { return e.Problem == problemTimeout }

const problemTimeout = "it timed out"

// Post makes one POST request. It returns nil if the receiver answers with a status from 200 to
// 299, an *Error if it does not, and the error of the context if that ends first.
func (c *Client) Post(ctx context.Context, timeout time.Duration, target *url.URL, header http.Header, body []byte) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return &Error{Host: target.Hostname(), Problem: "the URL cannot be called", Final: true}
	}
	request.Header = header
	response, err := c.client(target).Do(request)
	switch {
	case err == nil:
		_ = response.Body.Close() // only the status matters
		return statusError(target.Hostname(), response)
	case ctx.Err() != nil: // the caller stopped; this is not a failure of the receiver
		return ctx.Err()
	}
	return connectError(target.Hostname(), err)
}

// statusError returns nil if the receiver accepted the message.
func statusError(host string, response *http.Response) error {
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	return &Error{
		Host: host, Status: response.StatusCode, Final: response.StatusCode == http.StatusGone,
		RetryAfter: retryAfter(response.Header.Get("Retry-After"), time.Now()),
	}
}

// retryAfter parses the Retry-After header: seconds, or a date. It returns 0 for other values.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(MaxDelay/time.Second))) * time.Second
	}
	if date, err := http.ParseTime(value); err == nil {
		return min(max(date.Sub(now), 0), MaxDelay)
	}
	return 0
}

// connectError describes why there is no response. It does not include the texts of the net
// package, which may contain data of the receiver.
func connectError(host string, err error) *Error {
	e := &Error{Host: host, Problem: "the connection failed"}
	if errors.Is(err, errForbidden) {
		e.Problem, e.Final = errForbidden.Error(), true
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
		e.Problem = problemTimeout
	}
	return e
}
