package external

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/provider"
)

// retrySchedule is the delay after each failed attempt. It is that of the Standard Webhooks
// specification, and spans three days.
var retrySchedule = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
}

// Time limits of a delivery.
const (
	totalTimeout = 15 * time.Second
	// if the account has many deliveries in progress: slow receivers would block all others
	busyTimeout   = 3 * time.Second
	busyThreshold = 32
)

// DeliveryError reports why a webhook was not delivered. It contains only the status and the host
// of the URL, and no other data of the receiver.
type DeliveryError outbound.Error

func (e *DeliveryError) Error() string { return "external: " + e.ForLog() }

// ForLog returns the text for the operator's log; see [provider.LogError].
func (e *DeliveryError) ForLog() string { return (*outbound.Error)(e).Error() }

var _ provider.LogError = (*DeliveryError)(nil)

// retryError returns the error with the delay of the next attempt, if any.
func retryError(attempt int, err error) error {
	failed, ok := errors.AsType[*DeliveryError](err)
	switch {
	case !ok:
		return err
	case failed.Final || attempt >= len(retrySchedule):
		return fmt.Errorf("%w: %w", provider.ErrPark, err)
	}
	delay := retrySchedule[max(attempt, 0)]
	// jitter, so that simultaneous failures are not retried simultaneously
	delay += rand.N(delay / 5)
	return &fermata.RetryError{After: max(delay, failed.RetryAfter), Err: err}
}
