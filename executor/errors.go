package executor

import (
	"errors"

	"github.com/fermata-go/fermata/internal/executor"
)

var (
	// ErrInvalid says that a request is invalid. It changed nothing.
	ErrInvalid = executor.ErrInvalid

	// ErrGraphNotFound says that no provider has this graph.
	ErrGraphNotFound = executor.ErrGraphNotFound

	// ErrRunNotFound says that the account has no run with this state key.
	ErrRunNotFound = executor.ErrRunNotFound

	// ErrStateKeyInUse says that the state key belongs to a run that began with something else.
	ErrStateKeyInUse = executor.ErrStateKeyInUse

	// ErrRunEnded says that the run has ended.
	ErrRunEnded = executor.ErrRunEnded

	// ErrNotRetryable says that the run is neither parked nor failed, or that its failure is final.
	ErrNotRetryable = executor.ErrNotRetryable

	// ErrDecisionIDReused says that the id of the decision was used for another decision.
	ErrDecisionIDReused = executor.ErrResumeIDReused

	// ErrRefused says that a decision does not count: the question is not open any more, or this
	// person may not decide it. It changed nothing.
	ErrRefused = errors.New("executor: the decision does not count")

	// ErrPending says that the start or the decision is recorded, and its execution takes longer.
	// Repeat the call to wait again.
	ErrPending = executor.ErrPending

	// ErrClosed says that the executor was stopped.
	ErrClosed = executor.ErrClosed

	// ErrWrongKey says that the key file does not have the key of the store.
	ErrWrongKey = executor.ErrWrongKey
)
