package stream

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// Opener answers operations with event streams.
type Opener struct {
	// WriteTimeout is how long a client may take to read an event.
	WriteTimeout time.Duration
	// Heartbeat is the interval of keep-alive comments.
	Heartbeat time.Duration
	// Recheck is how often Authorized is called during a stream.
	Recheck time.Duration
	// Authorized reports whether a request for an operation would still be admitted.
	Authorized func(r *http.Request, op *huma.Operation) bool
}

// Deferrer is the response writer of a request. It calls a function after the operation has
// returned.
type Deferrer interface{ Defer(write func()) }

// Open answers an operation with an event stream: write is called after the operation has
// returned. A stream stays open for hours, and the call stack between the middleware and an
// operation needs four times the memory of a stream.
//
// The stream ends when its client is no longer authorized. Other responses are too short for that
// to matter; a stream would outlive the session or key it was opened with.
func (o *Opener) Open(hctx huma.Context, write func(context.Context, *Writer)) {
	r, w := humago.Unwrap(hctx)
	ctx, op, out := hctx.Context(), hctx.Operation(), Open(w, o.WriteTimeout)
	if r.Method == http.MethodHead { // no body is expected
		return
	}
	w.(Deferrer).Defer(func() {
		ctx, end := context.WithCancel(ctx)
		defer end()
		defer Recheck(o.Recheck, func() bool { return o.Authorized(r, op) }, end)()
		write(ctx, out)
	})
}
