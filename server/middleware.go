package server

import (
	"context"
	"encoding/json"
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
)

// frame is around every request. It counts the request, recovers from panics, and applies limits and authentication.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &statusWriter{ResponseWriter: w, control: http.NewResponseController(w), writeTimeout: s.config.Limits.WriteTimeout}
		begin := time.Now()
		defer func() {
			if broken := recover(); broken != nil {
				if broken == http.ErrAbortHandler {
					panic(broken)
				}
				s.recoverPanic(seen, r)
			}
			s.metrics.observe(r, seen.status, time.Since(begin))
		}()
		h := seen.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_ = seen.control.SetWriteDeadline(time.Time{}) // the one of the request before on this connection
		leave, p := s.admit(&r)
		if p != nil {
			s.metrics.countRejected(p.Code)
			s.metrics.countLimited(p.limit)
			writeProblem(seen, p)
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

// broken answers for a handler that panicked. The value may hold what a run works on; the stack does not.
func (s *Server) recoverPanic(seen *statusWriter, r *http.Request) {
	if r.Context().Err() != nil { // the client is gone, and somebody could not write to it
		return
	}
	s.metrics.errors.WithLabelValues("panic").Inc()
	s.config.Log.Error("a handler panicked", "path", r.Pattern, "stack", string(debug.Stack()))
	if seen.status == 0 {
		writeProblem(seen, problem("internal", "this is a mistake of ours"))
	}
}

// comeIn takes the places that a request needs and authenticates it; r becomes a request with the principal in its context. It returns a problem if the
// request is refused; otherwise leave has to be called when it is done.
func (s *Server) admit(r **http.Request) (leave func(), p *Problem) {
	if p := s.validateRequest(*r); p != nil {
		return nil, p
	}
	shown := s.credentialOf(*r)
	at, p := s.acquire(*r, s.limits.credentials.account(shown))
	if p != nil {
		return nil, p
	}
	in := false
	defer func() {
		if !in { // refused, or whoever was asked who it is has panicked
			at.release()
		}
	}()
	principal, p := s.authenticate(*r)
	switch {
	case principal != nil:
		s.limits.credentials.remember(shown, principal.Account)
		if full := at.reassign(principal.Account); full != nil {
			p = full
		}
	case p != nil && p.Status == http.StatusUnauthorized:
		s.limits.credentials.forget(shown)
	}
	if p == nil && principal != nil {
		if delay := s.limits.retryAfter(*principal); delay > 0 {
			p = problem("rate_limited", "%d requests at once, and %g a second", s.config.Limits.Burst, s.config.Limits.Rate)
			p.retryAfter, p.limit = delay, "rate"
		}
		trackedConnFrom((*r).Context()).markKnown()
		*r = (*r).WithContext(context.WithValue((*r).Context(), principalKey{}, *principal))
	}
	if p != nil {
		return nil, p
	}
	in = true
	return at.release, nil
}

func overloaded(detail string) *Problem {
	p := problem("unavailable", "%s", detail)
	p.retryAfter = time.Second
	return p
}

// permits is what a request holds until it is done: a seat in a hall, and a lease of the gate if it is work.
type permits struct {
	slot   *slot // nil: it needs none
	limit  string
	permit *permit // nil: it is no work
	queued func()
}

// belongs moves the places to the account that the request is really from, or returns a problem if that may not have them.
func (p permits) reassign(account string) *Problem {
	switch {
	case p.slot != nil && !p.slot.reassign(account):
		return limitReached(p.limit, "the account has its share of the server; nothing was done")
	case p.permit != nil && !p.permit.reassign(account):
		return limitReached("working", "the account has its share of the server; nothing was done")
	}
	return nil
}

// leave gives them back.
func (p permits) release() {
	if p.permit != nil {
		p.permit.release()
	}
	if p.slot != nil {
		p.slot.release()
		p.queued()
	}
}

// place takes the places that a request needs, for the account that it seems to be from. This comes before authentication and routing, because refusing has
// to be cheap under overload.
func (s *Server) acquire(r *http.Request, account string) (at permits, p *Problem) {
	at, p = s.acquireSlot(r, account)
	if p != nil || !needsPermit(r) {
		return at, p
	}
	var ok bool
	if at.permit, ok = s.limits.scheduler.acquire(r.Context(), account); !ok {
		at.release()
		return at, limitReached("working", "the server has more to do than it can; nothing was done")
	}
	return at, nil
}

// serving takes a place among those that are served at the same time, streams or others.
func (s *Server) acquireSlot(r *http.Request, account string) (at permits, p *Problem) {
	var ok bool
	switch {
	case isHealthCheck(r):
		return at, nil
	case isStream(r):
		if at.slot, ok = s.limits.streams.acquire(account); !ok {
			return at, limitReached("streams", "there are too many streams; nothing was done")
		}
		s.metrics.streams.Inc()
		at.limit, at.queued = "streams", s.metrics.streams.Dec
		return at, nil
	}
	if at.slot, ok = s.limits.requests.acquire(account); !ok {
		return at, limitReached("in_flight", "the server is at its limit; nothing was done")
	}
	at.limit, at.queued = "in_flight", func() {}
	return at, nil
}

func limitReached(limit, detail string) *Problem {
	p := overloaded(detail)
	p.limit = limit
	return p
}

// needsPermit reports whether a request needs a place in the gate. One that follows a run mostly waits.
func needsPermit(r *http.Request) bool {
	return !isHealthCheck(r) && (r.Method != http.MethodGet || !isStream(r))
}

// isHealthCheck reports whether a request is a health check. These are never refused: an overloaded server is not dead.
func isHealthCheck(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}

// admit refuses what no operation takes.
func (s *Server) validateRequest(r *http.Request) *Problem {
	if p := r.URL.EscapedPath(); p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
		return problem("not_found", "there is nothing here; see /openapi.json") // nobody is sent elsewhere
	}
	if p := rejectAmbiguous(r); p != nil {
		return p
	}
	for _, name := range listHeaders { // on several lines it is the same as on one, RFC 9110, 5.3; whoever reads it sees the first
		if all := r.Header.Values(name); len(all) > 1 {
			r.Header.Set(name, strings.Join(all, ", "))
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		return problem("unsupported", "a request must not be compressed")
	}
	if r.ContentLength > s.config.Limits.Body {
		p := problem("too_large", "a request has at most %d bytes", s.config.Limits.Body)
		p.limit = "body"
		return p
	}
	if r.ContentLength == 0 || r.Method == http.MethodGet {
		return nil
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/json") {
		return problem("unsupported", "a request is application/json")
	}
	r.Header.Set("Content-Type", "application/json") // the operations know one spelling of it
	return nil
}

// listHeaders are headers that are lists, and single those of which there is one, or nobody knows which one is meant.
var (
	listHeaders   = []string{"Accept", "Prefer"}
	singleHeaders = []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"}
)

// rejectAmbiguous refuses a query that cannot be read, and what is said twice. What reads them leaves out what it does not understand and takes the first of two: whoever
// wants what was decided, or what comes behind a cursor, would get something else, and not notice.
func rejectAmbiguous(r *http.Request) *Problem {
	for _, name := range singleHeaders {
		if len(r.Header.Values(name)) > 1 {
			return problem("bad_request", "the header %s is said twice", name)
		}
	}
	if r.URL.RawQuery == "" || !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return problem("bad_request", "the query of the URL cannot be read: what stands for itself has to be escaped")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if len(query[name]) > 1 {
			p := problem("bad_request", "a parameter of the query is said twice")
			p.Fields = []api.Field{{Location: "query." + name, Message: "is said twice; several values of a list have commas"}}
			return p
		}
	}
	return nil
}

// authenticate finds out who calls. Whether somebody has to be known is the operation's affair; but a token that is sent must be good.
func (s *Server) authenticate(r *http.Request) (*Principal, *Problem) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil, nil
	}
	principal, err := s.identify(r)
	switch {
	case errors.Is(err, errCrossOrigin):
		return nil, problem("forbidden", "this came with a session, and not from a page of this server")
	case errors.Is(err, ErrUnauthenticated):
		return nil, problem("unauthenticated", "send a valid token")
	case errors.Is(err, errProviderRateLimited): // no line for each: anybody can write as many
		return nil, overloaded("who you are could not be found out")
	case err != nil && errors.Is(r.Context().Err(), context.Canceled): // they have hung up, and nothing is wrong here
		return nil, overloaded("who you are could not be found out")
	case err != nil:
		s.metrics.errors.WithLabelValues("authentication").Inc()
		if left, ok := s.authLog.Allow(); ok {
			s.config.Log.Error("authentication failed", "err", err, "leftOut", left)
		}
		return nil, overloaded("who you are could not be found out")
	}
	return &principal, nil
}

// isStream reports whether a request is answered with a stream, which takes a place of another kind. What a client says it accepts does not
// let it around the limit of anything else.
func isStream(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet:
		rest, of := strings.CutPrefix(r.URL.EscapedPath(), api.Prefix+"/runs/") // escaped: a state key may have a slash
		key, events := strings.CutSuffix(rest, "/events")
		return of && events && !strings.Contains(key, "/")
	case http.MethodPost:
		return r.URL.Path == api.Prefix+"/ai/chat" && wantsStream(r.Header.Get("Accept"))
	}
	return false
}

// body limits what is read, and how long that may take. Once everything is read, net/http lifts the deadline: who waits for an outcome, or follows
// a run, may be silent for as long as it likes.
func (s *Server) limitBody(w *statusWriter, r *http.Request) io.ReadCloser {
	return &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, s.config.Limits.Body), control: w.control, limit: s.config.Limits.BodyTimeout}
}

// timedBody gives a client so much time for the whole of it, from the first look on.
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
	return n, problem("bad_request", "the request ends before all of it is there") // or its chunks are none
}

// writeProblem answers outside of the operations.
func writeProblem(w http.ResponseWriter, p *Problem) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever is gone does not read it
}

// statusWriter remembers the status, and cuts off clients that do not read.
type statusWriter struct {
	http.ResponseWriter
	control      *http.ResponseController
	writeTimeout time.Duration
	status       int
	stream       func() // what of the answer comes when the operation is left; nil for most
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status != 0 {
		return // the answer has begun; of who hangs up then the framework says 499, and net/http would complain
	}
	w.status = status
	_ = w.control.SetWriteDeadline(time.Now().Add(w.writeTimeout))
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
