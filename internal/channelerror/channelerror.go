// Package channelerror says what an error of a channel means for the next attempt.
package channelerror

import (
	"errors"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
)

// IsPermanent reports whether another attempt would fail too.
func IsPermanent(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	return ok && e.Permanent
}

// IsOutage reports whether the peer did not answer, or failed by itself: other messages would fail
// too.
func IsOutage(err error) bool {
	e, ok := errors.AsType[*channel.Error](err)
	if !ok || e.Permanent {
		return false
	}
	switch e.Code {
	case "unreachable", "timeout", "tls_failed", "fatal_error", "internal_error", "service_unavailable":
		return true
	}
	return strings.HasPrefix(e.Code, "http_5")
}

// RetryAfter returns the shortest pause that an error demands, or 0.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*channel.Error](err); ok {
		return max(e.RetryAfter, 0)
	}
	return 0
}
