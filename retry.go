package fermata

import "time"

// Retry marks an error as temporary: the code that failed should run again. Return it from a node,
// a tool, or the function of an [Effect]. A server executes the run again after the delay and
// continues from the last saved step. Without a server, the caller of the run gets an error that
// wraps a [*RetryError] and resumes the run.
//
// Without [After] the delay grows with each attempt. Without [AtMost] the limit of the server for
// failed attempts applies, and the run is parked when it is reached. With AtMost the run fails with
// err after the last retry.
//
//	if resp.StatusCode == http.StatusTooManyRequests {
//		return s, fermata.Retry(errors.New("rate limited"), fermata.After(time.Minute), fermata.AtMost(5))
//	}
//
// In the function of an effect, Retry alone does not permit a second call. The call is repeated if
// the target is [Idempotent], if it is [Fenced] and [Lookup] says that nothing happened, or if the
// error is also marked with [NotDone]. Otherwise a person is asked.
func Retry(err error, options ...RetryOption) error {
	if err == nil {
		return nil
	}
	retry := &RetryError{Err: err}
	for _, option := range options {
		option(retry)
	}
	return retry
}

// RetryOption configures [Retry].
type RetryOption func(*RetryError)

// After sets the delay before the next attempt.
func After(delay time.Duration) RetryOption { return func(e *RetryError) { e.After = delay } }

// AtMost limits the number of retries. It counts the retries of the node, or of the effect if its
// function returns the error. In an agent it counts the retries of the agent's run.
func AtMost(retries int) RetryOption { return func(e *RetryError) { e.AtMost = retries } }

// RetryError is an error that [Retry] returned.
type RetryError struct {
	Err error
	// After is the delay before the next attempt; 0 leaves it to the server. AtMost is the maximum
	// number of retries; 0 leaves it to the server.
	After  time.Duration
	AtMost int
}

func (e *RetryError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *RetryError) Unwrap() error { return e.Err }

// RunError marks the error as an error of the run: it is not reported to a model.
func (e *RetryError) RunError() {}
