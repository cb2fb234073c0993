package inproc

import (
	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// retryRequest returns the request of a node for another attempt; nil if there is none, or if the
// node has had as many as it asked for. Of several requests the one with the shortest delay counts.
func retryRequest(err error) *fermata.RetryError { return findRetry(err, 0) }

// findRetry searches an error of a node that has failed so often.
func findRetry(err error, attempt int) (found *fermata.RetryError) {
	switch e := err.(type) {
	case *fermata.RetryError:
		if e.AtMost > 0 && attempt > e.AtMost {
			return nil
		}
		return e
	case *graph.NodeError:
		return findRetry(e.Err, e.Attempt)
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			if retry := findRetry(part, attempt); retry != nil && (found == nil || retry.After < found.After) {
				found = retry
			}
		}
	case interface{ Unwrap() error }:
		return findRetry(e.Unwrap(), attempt)
	}
	return found
}
