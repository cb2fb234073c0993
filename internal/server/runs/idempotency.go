package runs

import (
	"errors"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// applyIdempotencyKey makes a start repeatable. A state key is sufficient for that. A start without
// one gets a state key derived from the client's idempotency key; without either it cannot be
// repeated.
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

// startProblem converts an error of a start, or any other error.
func startProblem(request executor.RunRequest, err error) *problems.Problem {
	if request.ReserveStateKey && errors.Is(err, executor.ErrStateKeyInUse) {
		return problems.New("idempotency_key_reused", "this Idempotency-Key was used for another start")
	}
	return problems.Of(err)
}
