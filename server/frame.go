package server

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// frame is around every request: it is counted, protected against itself, and nobody comes in unknown or too often.
func (s *Server) frame(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &seenWriter{ResponseWriter: w}
		begin := time.Now()
		defer func() {
			if broken := recover(); broken != nil {
				if broken == http.ErrAbortHandler {
					panic(broken)
				}
				// The value may hold what a run works on; the stack does not.
				s.config.Log.Error("a handler panicked", "path", r.Pattern, "stack", string(debug.Stack()))
				if seen.status == 0 {
					writeProblem(seen, problem("internal", "this is a mistake of ours"))
				}
			}
			s.metrics.served(r.Method, r.Pattern, seen.status, time.Since(begin))
		}()
		h := seen.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		if p := s.admit(r); p != nil {
			s.metrics.refused(p.Code)
			writeProblem(seen, p)
			return
		}
		if !isStream(r) {
			leave, ok := enter(s.limits.serving)
			if !ok {
				s.metrics.refused("unavailable")
				writeProblem(seen, busy("the server is at its limit"))
				return
			}
			defer leave()
		}
		principal, p := s.authenticate(r)
		if p != nil {
			s.metrics.refused(p.Code)
			writeProblem(seen, p)
			return
		}
		if principal != nil {
			if delay := s.limits.wait(*principal); delay > 0 {
				limited := problem("rate_limited", "%d requests at once, and %g a second", s.config.Limits.Burst, s.config.Limits.Rate)
				limited.retryAfter = delay
				s.metrics.refused(limited.Code)
				writeProblem(seen, limited)
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), principalKey{}, *principal))
		}
		r.Body = http.MaxBytesReader(seen, r.Body, s.config.Limits.Body)
		next.ServeHTTP(seen, r)
	})
}

func busy(detail string) *Problem {
	p := problem("unavailable", "%s", detail)
	p.retryAfter = time.Second
	return p
}

// admit refuses what no operation takes.
func (s *Server) admit(r *http.Request) *Problem {
	if r.Header.Get("Content-Encoding") != "" {
		return problem("unsupported", "a request must not be compressed")
	}
	if r.ContentLength > s.config.Limits.Body {
		return problem("too_large", "a request has at most %d bytes", s.config.Limits.Body)
	}
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); r.ContentLength != 0 && r.Method != http.MethodGet && strings.TrimSpace(kind) != "application/json" {
		return problem("unsupported", "a request is application/json")
	}
	return nil
}

// authenticate finds out who calls. Whether somebody has to be known is the operation's affair; but a token that is sent must be good.
func (s *Server) authenticate(r *http.Request) (*Principal, *Problem) {
	if !strings.HasPrefix(r.URL.Path, "/api/") {
		return nil, nil
	}
	principal, err := s.config.Auth.Authenticate(r)
	switch {
	case errors.Is(err, ErrUnauthenticated):
		return nil, problem("unauthenticated", "send a valid token")
	case err != nil:
		s.config.Log.Error("authentication failed", "err", err)
		return nil, busy("who you are could not be found out")
	}
	return &principal, nil
}

func isStream(r *http.Request) bool {
	return strings.Contains(r.Header.Get("Accept"), "text/event-stream")
}

// writeProblem answers outside of the operations.
func writeProblem(w http.ResponseWriter, p *Problem) {
	maps.Copy(w.Header(), p.GetHeaders())
	w.Header().Set("Content-Type", p.ContentType(""))
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // whoever is gone does not read it
}

// seenWriter remembers the status.
type seenWriter struct {
	http.ResponseWriter
	status int
}

func (w *seenWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *seenWriter) Write(data []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(data)
}

// Unwrap lets http.ResponseController through.
func (w *seenWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
