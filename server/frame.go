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
func (s *Server) frame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &seenWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: s.config.Limits.Patience}
		begin := time.Now()
		defer func() {
			if broken := recover(); broken != nil {
				if broken == http.ErrAbortHandler {
					panic(broken)
				}
				s.broken(seen, r)
			}
			s.metrics.served(r, seen.status, time.Since(begin))
		}()
		h := seen.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		_ = seen.control.SetWriteDeadline(time.Time{}) // the one of the request before on this connection
		leave, p := s.comeIn(&r)
		if p != nil {
			s.metrics.refused(p.Code)
			s.metrics.limited(p.limit)
			writeProblem(seen, p)
			return
		}
		defer leave()
		r.Body = s.body(seen, r)
		next.ServeHTTP(seen, r)
		if seen.rest != nil {
			seen.rest()
		}
	})
}

// broken answers for a handler that panicked. The value may hold what a run works on; the stack does not.
func (s *Server) broken(seen *seenWriter, r *http.Request) {
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
func (s *Server) comeIn(r **http.Request) (leave func(), p *Problem) {
	if p := s.admit(*r); p != nil {
		return nil, p
	}
	shown := s.shown(*r)
	at, p := s.place(*r, s.limits.hints.account(shown))
	if p != nil {
		return nil, p
	}
	in := false
	defer func() {
		if !in { // refused, or whoever was asked who it is has panicked
			at.leave()
		}
	}()
	principal, p := s.authenticate(*r)
	switch {
	case principal != nil:
		s.limits.hints.learn(shown, principal.Account)
		if full := at.belongs(principal.Account); full != nil {
			p = full
		}
	case p != nil && p.Status == http.StatusUnauthorized:
		s.limits.hints.forget(shown)
	}
	if p == nil && principal != nil {
		if delay := s.limits.wait(*principal); delay > 0 {
			p = problem("rate_limited", "%d requests at once, and %g a second", s.config.Limits.Burst, s.config.Limits.Rate)
			p.retryAfter, p.limit = delay, "rate"
		}
		guestIn((*r).Context()).meet()
		*r = (*r).WithContext(context.WithValue((*r).Context(), principalKey{}, *principal))
	}
	if p != nil {
		return nil, p
	}
	in = true
	return at.leave, nil
}

func busy(detail string) *Problem {
	p := problem("unavailable", "%s", detail)
	p.retryAfter = time.Second
	return p
}

// places is what a request holds until it is done: a seat in a hall, and a lease of the gate if it is work.
type places struct {
	seat  *seat // nil: it needs none
	limit string
	lease *lease // nil: it is no work
	after func()
}

// belongs moves the places to the account that the request is really from, or returns a problem if that may not have them.
func (p places) belongs(account string) *Problem {
	switch {
	case p.seat != nil && !p.seat.belongs(account):
		return crowded(p.limit, "the account has its share of the server; nothing was done")
	case p.lease != nil && !p.lease.belongs(account):
		return crowded("working", "the account has its share of the server; nothing was done")
	}
	return nil
}

// leave gives them back.
func (p places) leave() {
	if p.lease != nil {
		p.lease.leave()
	}
	if p.seat != nil {
		p.seat.leave()
		p.after()
	}
}

// place takes the places that a request needs, for the account that it seems to be from. This comes before authentication and routing, because refusing has
// to be cheap under overload.
func (s *Server) place(r *http.Request, account string) (at places, p *Problem) {
	at, p = s.serving(r, account)
	if p != nil || !isWork(r) {
		return at, p
	}
	var ok bool
	if at.lease, ok = s.limits.working.enter(r.Context(), account); !ok {
		at.leave()
		return at, crowded("working", "the server has more to do than it can; nothing was done")
	}
	return at, nil
}

// serving takes a place among those that are served at the same time, streams or others.
func (s *Server) serving(r *http.Request, account string) (at places, p *Problem) {
	var ok bool
	switch {
	case isProbe(r):
		return at, nil
	case isStream(r):
		if at.seat, ok = s.limits.streams.enter(account); !ok {
			return at, crowded("streams", "there are too many streams; nothing was done")
		}
		s.metrics.streams.Inc()
		at.limit, at.after = "streams", s.metrics.streams.Dec
		return at, nil
	}
	if at.seat, ok = s.limits.serving.enter(account); !ok {
		return at, crowded("in_flight", "the server is at its limit; nothing was done")
	}
	at.limit, at.after = "in_flight", func() {}
	return at, nil
}

func crowded(limit, detail string) *Problem {
	p := busy(detail)
	p.limit = limit
	return p
}

// isWork reports whether a request needs a place in the gate. One that follows a run mostly waits.
func isWork(r *http.Request) bool {
	return !isProbe(r) && (r.Method != http.MethodGet || !isStream(r))
}

// isProbe reports whether a request is a health check. These are never refused: an overloaded server is not dead.
func isProbe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/healthz" || r.URL.Path == "/readyz")
}

// admit refuses what no operation takes.
func (s *Server) admit(r *http.Request) *Problem {
	if p := r.URL.EscapedPath(); p != "/" && path.Clean(p) != strings.TrimSuffix(p, "/") {
		return problem("not_found", "there is nothing here; see /openapi.json") // nobody is sent elsewhere
	}
	if p := unclear(r); p != nil {
		return p
	}
	for _, name := range listed { // on several lines it is the same as on one, RFC 9110, 5.3; whoever reads it sees the first
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

// listed are headers that are lists, and single those of which there is one, or nobody knows which one is meant.
var (
	listed = []string{"Accept", "Prefer"}
	single = []string{"Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID"}
)

// unclear refuses a query that cannot be read, and what is said twice. What reads them leaves out what it does not understand and takes the first of two: whoever
// wants what was decided, or what comes behind a cursor, would get something else, and not notice.
func unclear(r *http.Request) *Problem {
	for _, name := range single {
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
	case errors.Is(err, errTooOften): // no line for each: anybody can write as many
		return nil, busy("who you are could not be found out")
	case err != nil && errors.Is(r.Context().Err(), context.Canceled): // they have hung up, and nothing is wrong here
		return nil, busy("who you are could not be found out")
	case err != nil:
		s.metrics.errors.WithLabelValues("authentication").Inc()
		if left, ok := s.unknown.Next(); ok {
			s.config.Log.Error("authentication failed", "err", err, "leftOut", left)
		}
		return nil, busy("who you are could not be found out")
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
func (s *Server) body(w *seenWriter, r *http.Request) io.ReadCloser {
	return &timedBody{ReadCloser: http.MaxBytesReader(w, r.Body, s.config.Limits.Body), control: w.control, limit: s.config.Limits.Sending}
}

// timedBody gives a client so much time for the whole of it, from the first look on.
type timedBody struct {
	io.ReadCloser
	control *http.ResponseController
	limit   time.Duration
	begun   bool
}

func (b *timedBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
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

// seenWriter remembers the status, and cuts off clients that do not read.
type seenWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
	status   int
	rest     func() // what of the answer comes when the operation is left; nil for most
}

func (w *seenWriter) WriteHeader(status int) {
	if w.status != 0 {
		return // the answer has begun; of who hangs up then the framework says 499, and net/http would complain
	}
	w.status = status
	_ = w.control.SetWriteDeadline(time.Now().Add(w.patience))
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController through.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
