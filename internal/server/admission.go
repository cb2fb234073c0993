package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"net"
	"net/http"

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
