package server

import (
	"errors"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/ident"
)

// applyIdempotencyKey sees to it that a start can be repeated. A state key does that by itself; a start without one has it made from the key that the
// client chose, or else it is one that nobody can repeat.
func applyIdempotencyKey(request *executor.RunRequest, key string) {
	switch {
	case request.StateKey != "" && request.StartID == "":
		request.StartID = key
	case request.StateKey == "" && key != "":
		request.StateKey, request.ReserveStateKey = ident.Derive("idem", request.Actor, key), true
	case request.StateKey == "":
		request.StateKey = ident.Random("key")
	}
}

// startProblem makes a problem of why something could not be begun, or of any other error.
func startProblem(request executor.RunRequest, err error) *Problem {
	if request.ReserveStateKey && errors.Is(err, executor.ErrStateKeyInUse) {
		return problem("idempotency_key_reused", "this Idempotency-Key belongs to another start")
	}
	return problemOf(err)
}
