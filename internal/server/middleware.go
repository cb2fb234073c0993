package server

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/requests"
	"github.com/fermata-go/fermata/internal/server/stream"
)

// middleware wraps every request. It counts requests, recovers from panics, and applies limits and
// authentication.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := newStatusWriter(w, s.config.Limits.WriteTimeout)
		begin := time.Now()
		defer func() {
			if panicValue := recover(); panicValue != nil {
				if panicValue == http.ErrAbortHandler {
					panic(panicValue)
				}
				s.recoverPanic(seen, r)
			}
			s.metrics.Observe(r, seen.status, time.Since(begin))
		}()
		h := seen.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		leave, p := s.admit(&r)
		if p != nil {
			s.metrics.CountRejected(p.Code)
			s.metrics.CountLimited(p.Limit)
			problems.Write(seen, p)
			return
		}
		defer leave()
		r.Body = s.limitBody(seen, r)
		next.ServeHTTP(seen, r)
		if seen.stream != nil {
			seen.stream()
		}
	})
}

// recoverPanic answers for a handler that panicked. The panic value may contain run data, so only
// the stack is logged.
func (s *Server) recoverPanic(seen *statusWriter, r *http.Request) {
	if r.Context().Err() != nil { // the client has disconnected and a write failed
		return
	}
	s.metrics.CountError("panic")
	s.config.Log.Error("handler panicked", "path", r.Pattern, "stack", string(debug.Stack()))
	if seen.status == 0 {
		problems.Write(seen, problems.New("internal", "internal error"))
	}
}

// admit acquires the permits that a request needs and authenticates it; r becomes a request with
// the principal in its context. It returns a problem if the request is rejected; otherwise the
// caller must call leave when the request is done.
func (s *Server) admit(r **http.Request) (leave func(), p *problems.Problem) {
	if p := s.validateRequest(*r); p != nil {
		return nil, p
	}
	shown := s.credentialOf(*r)
	release := func() {} // a handler in front of the API has the permits
	at, admitted := (*r).Context().Value(admittedKey{}).(permits)
	if !admitted {
		if at, p = s.acquire(*r, s.limits.Credentials.Account(shown)); p != nil {
			return nil, p
		}
		release = at.release
	}
	in := false
	defer func() {
		if !in { // rejected, or the authenticator panicked
			release()
		}
	}()
	principal, p := s.authenticate(*r)
	switch {
	case principal != nil:
		s.limits.Credentials.Remember(shown, principal.Account)
		if full := at.reassign(principal.Account); full != nil {
			p = full
		}
	case p != nil && p.Status == http.StatusUnauthorized:
		s.limits.Credentials.Forget(shown)
	}
	if p == nil && principal != nil {
		if delay := s.limits.RetryAfter(principal.Account, principal.ID); delay > 0 {
			p = problems.New("rate_limited", "the limit is %d requests at once and %g per second", s.config.Limits.Burst, s.config.Limits.Rate)
			p.RetryAfter, p.Limit = delay, "rate"
		}
		admission.TrackedConnFrom((*r).Context()).MarkKnown()
		*r = (*r).WithContext(endpoint.WithPrincipal((*r).Context(), *principal))
	}
	if p != nil {
		return nil, p
	}
	in = true
	return release, nil
}

// permits holds what a request has acquired: a slot, and a scheduler permit if it does work.
type permits struct {
	slot   *admission.Slot // nil: not needed
	limit  string
	permit *admission.Permit // nil: not needed
	queued func()
}

// reassign moves the permits to the authenticated account. It returns a problem if that account has
// no share left.
func (p permits) reassign(account string) *problems.Problem {
	switch {
	case p.slot != nil && !p.slot.Reassign(account):
		return limitReached(p.limit, "the account has used its share of the server; nothing was done")
	case p.permit != nil && !p.permit.Reassign(account):
		return limitReached("concurrency", "the account has used its share of the server; nothing was done")
	}
	return nil
}

// release returns the permits.
func (p permits) release() {
	if p.permit != nil {
		p.permit.Release()
	}
	if p.slot != nil {
		p.slot.Release()
		p.queued()
	}
}

// acquire acquires the permits that a request needs, for the account that its credential was last
// seen with. It runs before authentication and routing, because rejecting must be cheap under
// overload.
func (s *Server) acquire(r *http.Request, account string) (at permits, p *problems.Problem) {
	at, p = s.acquireSlot(r, account)
	if p != nil || !needsPermit(r) {
		return at, p
	}
	var ok bool
	if at.permit, ok = s.limits.Scheduler.Acquire(r.Context(), account); !ok {
		at.release()
		return at, limitReached("concurrency", "the server is overloaded; nothing was done")
	}
	return at, nil
}

// acquireSlot acquires a slot for a request or a stream.
func (s *Server) acquireSlot(r *http.Request, account string) (at permits, p *problems.Problem) {
	var ok bool
	switch {
	case isHealthCheck(r):
		return at, nil
	case isStream(r):
		if at.slot, ok = s.limits.Streams.Acquire(account); !ok {
			return at, limitReached("streams", "too many streams are open; nothing was done")
		}
		at.limit, at.queued = "streams", s.metrics.StreamOpened()
		return at, nil
	}
	if at.slot, ok = s.limits.Requests.Acquire(account); !ok {
		return at, limitReached("in_flight", "too many requests are in flight; nothing was done")
	}
	at.limit, at.queued = "in_flight", func() {}
	return at, nil
}

func limitReached(limit, detail string) *problems.Problem {
	p := problems.Overloaded(detail)
	p.Limit = limit
	return p
}

// needsPermit reports whether a request needs a scheduler permit. A stream mostly waits and needs
// none.
func needsPermit(r *http.Request) bool {
	return !isHealthCheck(r) && (r.Method != http.MethodGet || !isStream(r))
}

// isHealthCheck reports whether a request is a health check. Health checks are never rejected: an
// overloaded server is not dead.
func isHealthCheck(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}

// validateRequest rejects requests that no operation accepts.
func (s *Server) validateRequest(r *http.Request) *problems.Problem {
	if p := r.URL.EscapedPath(); p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
		return problems.New("not_found", "no such path; see /openapi.json") // no redirects
	}
	if p := rejectAmbiguous(r); p != nil {
		return p
	}
	// several lines are equivalent to one, RFC 9110, 5.3, but the handlers read only the first
	for _, name := range listHeaders {
		if all := r.Header.Values(name); len(all) > 1 {
			r.Header.Set(name, strings.Join(all, ", "))
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return problems.New("unsupported_media_type", "compressed request bodies are not supported")
	}
	if r.ContentLength > s.config.Limits.Body {
		p := problems.New("too_large", "the request body is limited to %d bytes", s.config.Limits.Body)
		p.Limit = "body"
		return p
	}
	if r.ContentLength == 0 || r.Method == http.MethodGet {
		return nil
	}
	if strings.HasPrefix(r.URL.Path, "/signin/") { // the forms of the sign-in pages
		return nil
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return problems.New("unsupported_media_type", "the content type must be application/json")
	}
	r.Header.Set("Content-Type", "application/json") // the operations accept one spelling
	return nil
}

// listHeaders may have several values; singleHeaders may occur only once.
var (
	listHeaders   = []string{"Accept", "Prefer"}
	singleHeaders = []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"}
)

// rejectAmbiguous rejects malformed query strings and repeated parameters or headers. The decoder
// would skip what it cannot parse and use the first of two values, so a client would get a
// different result without noticing.
func rejectAmbiguous(r *http.Request) *problems.Problem {
	for _, name := range singleHeaders {
		if len(r.Header.Values(name)) > 1 {
			return problems.New("bad_request", "the header %s is repeated", name)
		}
	}
	if r.URL.RawQuery == "" || !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problems.New("bad_request", "malformed query string: reserved characters must be percent-encoded")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			p := problems.New("bad_request", "a query parameter is repeated")
			p.Fields = []api.Field{{Location: "query." + name, Message: "is repeated; separate list values with commas"}}
			return p
		}
	}
	return nil
}

// authenticate identifies the caller. Operations decide whether authentication is required, but a
// token that is sent must be valid.
func (s *Server) authenticate(r *http.Request) (*authn.Principal, *problems.Problem) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil, nil
	}
	if linked, ok := r.Context().Value(linkedKey{}).(authn.Principal); ok { // a call in process
		return &linked, nil
	}
	principal, err := s.identify(r)
	switch {
	case errors.Is(err, authn.ErrCrossOrigin):
		return nil, problems.New("forbidden", "the session is valid only for requests from pages of this server")
	case errors.Is(err, authn.ErrUnauthenticated):
		return nil, problems.New("unauthenticated", "send a valid token")
	// not logged: anonymous clients can cause it at will
	case errors.Is(err, authn.ErrProviderRateLimited):
		return nil, problems.Overloaded("authentication is temporarily unavailable")
	// the client disconnected; this is not an error
	case err != nil && errors.Is(r.Context().Err(), context.Canceled):
		return nil, problems.Overloaded("authentication is temporarily unavailable")
	case err != nil:
		s.metrics.CountError("authentication")
		if left, ok := s.authLog.Allow(); ok {
			s.config.Log.Error("authentication failed", "err", err, "suppressed", left)
		}
		return nil, problems.Overloaded("authentication is temporarily unavailable")
	}
	return &principal, nil
}

// isStream reports whether a request is answered with an event stream, which uses another kind of
// slot. The Accept header of other requests does not move them to that limit.
func isStream(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet:
		if r.URL.Path == requests.EventsPath {
			return true
		}
		return isPartOf(r, "/runs/", "/events") || isPartOf(r, "/conversations/", "/events")
	case http.MethodPost:
		return (r.URL.Path == api.Prefix+"/ai/chat" || isPartOf(r, "/conversations/", "/messages")) && stream.Accepted(r.Header.Get("Accept"))
	}
	return false
}

// isPartOf reports whether a request is for a part of an object: /runs/{stateKey}/events.
func isPartOf(r *http.Request, objects, part string) bool {
	// escaped, because a state key may contain a slash
	rest, of := strings.CutPrefix(r.URL.EscapedPath(), api.Prefix+objects)
	id, ok := strings.CutSuffix(rest, part)
	return of && ok && !strings.Contains(id, "/")
}

// limitBody limits the size of the request body and the time to read it.
func (s *Server) limitBody(w *statusWriter, r *http.Request) io.ReadCloser {
	return s.timeBody(w, http.MaxBytesReader(w, r.Body, s.config.Limits.Body))
}

// timeBody limits the time to read a body. When all of it is read, net/http lifts the deadline, so
// a client that waits for an outcome or follows a run may be silent.
func (s *Server) timeBody(w *statusWriter, body io.ReadCloser) io.ReadCloser {
	return &timedBody{ReadCloser: body, control: w.control, limit: s.config.Limits.BodyTimeout}
}

// timedBody limits the time to read the whole body, from the first read on.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
	started bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.started {
		b.started = true
		_ = b.control.SetReadDeadline(time.Now().Add(b.limit))
	}
	n, err := b.ReadCloser.Read(p)
	var slow net.Error
	var large *http.MaxBytesError
	switch {
	case err == nil, err == io.EOF, errors.As(err, &slow) && slow.Timeout(), errors.As(err, &large):
		return n, err
	}
	// or its chunked encoding is invalid
	return n, problems.New("bad_request", "the request body ends early")
}

// statusWriter records the status, and disconnects clients that do not read.
type statusWriter struct {
	http.ResponseWriter
	control      *http.ResponseController
	writeTimeout time.Duration
	status       int
	stream       func() // writes the stream after the operation has returned; nil for most requests
}

var _ stream.Deferrer = (*statusWriter)(nil)

// newStatusWriter begins a response. The deadline of the previous one on this connection ends.
func newStatusWriter(w http.ResponseWriter, writeTimeout time.Duration) *statusWriter {
	seen := &statusWriter{ResponseWriter: w, control: http.NewResponseController(w), writeTimeout: writeTimeout}
	_ = seen.control.SetWriteDeadline(time.Time{})
	return seen
}

// Defer calls write after the operation has returned.
func (w *statusWriter) Defer(write func()) { w.stream = write }

func (w *statusWriter) WriteHeader(status int) {
	if w.status != 0 {
		// the response has started; for a disconnected client the framework sets 499, which
		// net/http would log
		return
	}
	w.status = status
	_ = w.control.SetWriteDeadline(time.Now().Add(w.writeTimeout))
	w.ResponseWriter.WriteHeader(status)
}

// Write writes in pieces: a client that reads slowly, but reads, gets a large response.
func (w *statusWriter) Write(data []byte) (n int, err error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	for {
		_ = w.control.SetWriteDeadline(time.Now().Add(w.writeTimeout))
		written, err := w.ResponseWriter.Write(data[n:min(n+maxPiece, len(data))])
		if n += written; err != nil || n == len(data) {
			return n, err
		}
	}
}

// maxPiece is the size in bytes that a client has the write timeout to read.
const maxPiece = 256 << 10

// Unwrap supports http.ResponseController.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
