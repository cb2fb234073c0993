// Package requests has the operations on requests: lists, searches and counts, one request,
// actions, decisions, the stream of changes, and saved searches.
package requests

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/presence"
	"github.com/fermata-go/fermata/internal/server/stream"
	"github.com/fermata-go/fermata/internal/server/visibility"
)

// Handlers has the operations.
type Handlers struct {
	Executor   *executor.Executor
	Visibility visibility.Checker
	Streams    *stream.Opener

	presence presence.Tracker
	counts   requestCounts
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerRequests(to)
	h.registerRequestActions(to)
	h.registerReveal(to)
	h.registerQueueEvents(to)
	h.registerSavedViews(to)
}

// Requests and answers may be large. A page with much data ends before the requested size, and the
// next page continues there. Otherwise a few readers could use all of the server's memory, and
// clients could not read a page to its end.
const (
	maxPageBytes = 2 << 20
	// How many requests, and how many answers, are read from the store before their size is
	// checked.
	requestBatch, answerBatch = 32, 8
)

// MaxScanned is how many requests are read for one page. A page may end there without an item, and
// the next one continues. Tests reduce it.
var MaxScanned = 1000
