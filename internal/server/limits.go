package server

import (
	"cmp"
	"net/http"
	"runtime"
	"time"

	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/runs"
)

// Limits bounds what callers may use. InFlight, Concurrency and Streams are shared between
// accounts, so that a busy account does not delay others; see docs/operations.md.
type Limits struct {
	// Body is the maximum size of a request body in bytes. Defaults to 2 MiB.
	Body int64
	// Rate and Burst limit the requests of one principal: requests per second in the long run, and
	// at once. Default to 50 and 100.
	Rate  float64
	Burst int
	// InFlight is how many requests are served at the same time, without event streams. Accounts
	// without any request in flight may use an eighth more. Defaults to 512.
	InFlight int
	// Concurrency is how many of them execute at the same time; the others wait briefly or are
	// rejected. A request that takes longer than a quarter of a second (a second under overload)
	// does not count while the store answers quickly, because it waits for the outcome of a run.
	// Defaults to 32 per core.
	Concurrency int
	// Streams is how many event streams are open at the same time. Defaults to 20000.
	Streams int
	// IdleConns is how many idle anonymous connections are kept, of those that
	// [Server.LimitIdleConns] sees; known clients have twice as many. Defaults to 5000.
	IdleConns int
	// OpenRequests is how many open requests an account may have before it cannot start more runs.
	// Defaults to 10000. Like ActiveRuns, it is not counted for each start: see docs/operations.md.
	OpenRequests int
	// ActiveRuns is how many runs of an account may be ready or running before it cannot start
	// more. Defaults to 1000.
	ActiveRuns int
	// RequestsPerAgent is how many requests one agent may create in an hour. All servers of a store
	// share the count. 0 means no limit.
	RequestsPerAgent int
	// MessageRate and MessageBurst limit the messages of one conversation: messages per second in
	// the long run, and at once. Default to 1 and 20. A user may send five times as many over all
	// conversations. Each replica counts for itself.
	MessageRate  float64
	MessageBurst int
	// BodyTimeout is how long a client may take to send a request body. Defaults to 15 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a client may take to read sent data before it is disconnected.
	// Defaults to 10 s.
	WriteTimeout time.Duration
	// Heartbeat is the interval of keep-alive comments in event streams. Defaults to 15 s.
	Heartbeat time.Duration
	// AuthRecheck is how often the server checks during an event stream that the client is still
	// authorized. Defaults to 1 min.
	AuthRecheck time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 2<<20)
	l.Rate, l.Burst = cmp.Or(l.Rate, 50), cmp.Or(l.Burst, 100)
	l.InFlight, l.Streams, l.OpenRequests = cmp.Or(l.InFlight, 512), cmp.Or(l.Streams, 20000), cmp.Or(l.OpenRequests, 10000)
	l.ActiveRuns, l.Concurrency = cmp.Or(l.ActiveRuns, 1000), cmp.Or(l.Concurrency, 32*runtime.GOMAXPROCS(0))
	l.BodyTimeout, l.WriteTimeout, l.Heartbeat = cmp.Or(l.BodyTimeout, 15*time.Second), cmp.Or(l.WriteTimeout, 10*time.Second), cmp.Or(l.Heartbeat, 15*time.Second)
	l.MessageRate, l.MessageBurst = cmp.Or(l.MessageRate, 1), cmp.Or(l.MessageBurst, 20)
	l.AuthRecheck, l.IdleConns = cmp.Or(l.AuthRecheck, time.Minute), cmp.Or(l.IdleConns, 5000)
	return l
}

// limiter returns the part that admission control applies.
func (l Limits) limiter() admission.LimiterConfig {
	return admission.LimiterConfig{InFlight: l.InFlight, Streams: l.Streams, Concurrency: l.Concurrency, Rate: l.Rate, Burst: l.Burst}
}

// starts returns the part that applies to starts of runs.
func (l Limits) starts() runs.Limits {
	return runs.Limits{Body: l.Body, OpenRequests: l.OpenRequests, ActiveRuns: l.ActiveRuns, RequestsPerAgent: l.RequestsPerAgent}
}

var _ http.Handler = (*Server)(nil)
