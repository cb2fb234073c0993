package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// LimitIdleConns returns a listener that bounds idle connections. Anonymous connections are limited
// to [Limits.IdleConns], and to a quarter of the process's file limit; known clients have twice as
// many. Without it, clients that connect and stay silent can exhaust memory and file descriptors.
// Use it with a listener of plain connections that h serves with Serve or ServeTLS and with s as
// its handler. Set ConnContext and ConnState of h before the call, not after.
func (s *Server) LimitIdleConns(h *http.Server, l net.Listener) net.Listener {
	return s.idleConns.Listener(h, l)
}

// connEvicted counts and logs an eviction.
func (s *Server) connEvicted(known bool) {
	client := "anonymous"
	if known {
		client = "known"
	}
	s.metrics.CountEviction(client)
	if left, ok := s.evictionLog.Allow(); ok {
		s.config.Log.Warn("idle connection evicted", "client", client, "suppressed", left)
	}
}

// credentialOf returns the credential of a request: its token or, without one, its session.
func (s *Server) credentialOf(r *http.Request) admission.CredentialHash {
	if token := cmp.Or(authn.BearerToken(r), r.Header.Get("Authorization")); token != "" {
		return sha256.Sum256([]byte(token))
	}
	if s.sessions != nil {
		if sealed := s.sessions.Credential(r); sealed != "" {
			return sha256.Sum256([]byte(sealed))
		}
	}
	return admission.CredentialHash{}
}

// heavyRead acquires a heavy-read permit for the caller.
func (s *Server) heavyRead(ctx context.Context) (done func(), err error) {
	done, delay := s.heavyReads.Acquire(ctx, endpoint.Principal(ctx).Account)
	if done == nil {
		p := problems.Overloaded("too many history reads are running for this account or for others; retry after the Retry-After delay")
		p.RetryAfter, p.Limit = delay, "heavy_reads"
		return nil, p
	}
	return done, nil
}

// Admit applies the limits of the server to a handler in front of it, such as the pages: the number
// of requests in flight and at work, and the time to send a body and to read a response. Calls of
// the API in process with the context of the request use its permits. rejected answers a request
// that gets none.
func (s *Server) Admit(next http.Handler, rejected func(http.ResponseWriter, *http.Request, *api.Problem)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !admission.TrackedConnFrom(r.Context()).Alive() {
			return
		}
		seen := newStatusWriter(w, s.config.Limits.WriteTimeout)
		at, p := s.acquire(r, s.limits.Credentials.Account(s.credentialOf(r)))
		if p != nil {
			s.metrics.CountRejected(p.Code)
			s.metrics.CountLimited(p.Limit)
			maps.Copy(seen.Header(), p.GetHeaders())
			rejected(seen, r, &p.Problem)
			return
		}
		defer at.release()
		r = r.WithContext(context.WithValue(r.Context(), admittedKey{}, at))
		r.Body = s.timeBody(seen, r.Body)
		next.ServeHTTP(seen, r)
	})
}

// admittedKey is the context key of the permits of a request that [Server.Admit] has admitted.
type admittedKey struct{}

// How many bytes of the bodies of requests to channels are read at the same time: in total, and of
// one source. Most of them are verified only after they were read.
const (
	maxUnverified       = 4 << 20
	maxSourceUnverified = maxUnverified / 4
)

// unverifiedBytes counts the bytes that are being read, by source.
type unverifiedBytes struct {
	mu      sync.Mutex
	total   int64
	sources map[string]int64
}

// add counts bytes of a source; a negative number takes them back. It reports whether the limits
// are kept.
func (u *unverifiedBytes) add(source string, n int64) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.sources == nil {
		u.sources = make(map[string]int64)
	}
	u.total += n
	if u.sources[source] += n; u.sources[source] == 0 {
		delete(u.sources, source)
	}
	return u.total <= maxUnverified && u.sources[source] <= maxSourceUnverified
}

// limitUnverified limits the bodies of a channel's requests.
func (s *Server) limitUnverified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := &unverifiedBody{
			ReadCloser: http.MaxBytesReader(w, r.Body, s.config.Limits.Body), counter: &s.unverified, source: s.config.TrustedProxies.Source(r),
		}
		defer body.release()
		r.Body = body
		next.ServeHTTP(w, r)
	})
}

// unverifiedBody counts what is read of a body until its request ends.
type unverifiedBody struct {
	io.ReadCloser
	counter *unverifiedBytes
	source  string
	read    int64
}

func (b *unverifiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if !b.counter.add(b.source, int64(n)) {
		return 0, problems.Overloaded("too many requests to channels are being read; nothing was done")
	}
	return n, err
}

func (b *unverifiedBody) release() { b.counter.add(b.source, -b.read) }
