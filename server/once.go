package server

import (
	"errors"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/ident"
)

// once sees to it that a start can be repeated. A state key does that by itself; a start without one has it made from the key that the
// client chose, or else it is one that nobody can repeat.
func once(request *executor.Request, key string) {
	switch {
	case request.StateKey != "" && request.StartID == "":
		request.StartID = key
	case request.StateKey == "" && key != "":
		request.StateKey, request.Once = ident.Derive("idem", request.Actor, key), true
	case request.StateKey == "":
		request.StateKey = ident.Random("key")
	}
}

// explainStart makes a problem of why something could not be begun, or of any other error.
func explainStart(request executor.Request, err error) *Problem {
	if request.Once && errors.Is(err, executor.ErrInUse) {
		return problem("idempotency_key_reused", "this Idempotency-Key belongs to another start")
	}
	return explain(err)
}
