package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/admission"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/server/internal/visibility"
	"github.com/fermata-go/fermata/store"
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
	s.metrics.evictions.WithLabelValues(client).Inc()
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

// admitStart rejects a start with invalid input, or if the account has too many runs or requests.
func (s *Server) admitStart(ctx context.Context, request executor.RunRequest) error {
	if err := s.config.Executor.CheckInput(ctx, request); err != nil {
		return startProblem(request, err)
	}
	if err := s.checkStartQuota(ctx, request); err != nil {
		return err
	}
	return s.takeAgentRequest(ctx, request)
}

// takeAgentRequest rejects a request of an agent that has created too many. A repetition does not
// count.
func (s *Server) takeAgentRequest(ctx context.Context, request executor.RunRequest) error {
	limit := s.config.Limits.RequestsPerAgent
	if limit <= 0 || request.Graph != visibility.ExternalGraph {
		return nil
	}
	if view, err := s.config.Executor.GetRun(ctx, request.Account, request.StateKey); err == nil && executor.IsRepeat(request, view.Run) {
		return nil
	}
	wait, err := s.config.Executor.TakeAgentRequest(ctx, request.Account, request.Actor, limit)
	if err != nil {
		return problems.Of(err)
	}
	if wait > 0 {
		p := quotaExceeded("agent_limit", "requests_per_agent", "%d requests in one hour are allowed", limit)
		p.RetryAfter = wait
		return p
	}
	return nil
}

// checkStartQuota rejects a start if the account has too many open requests or active runs.
func (s *Server) checkStartQuota(ctx context.Context, request executor.RunRequest) error {
	problem := s.takeStart(ctx, request.Account)
	if problem == nil {
		return nil
	}
	if view, err := s.config.Executor.GetRun(ctx, request.Account, request.StateKey); err == nil && (view.Status.Active() || executor.IsRepeat(request, view.Run)) {
		return nil // already started: this is a repeated request
	}
	return problem
}

// takeStart uses one start of the quota of an account, and counts it if necessary.
func (s *Server) takeStart(ctx context.Context, account string) error {
	for !s.quotas.Take(account, time.Now()) {
		l, owner := s.quotas.Join(account)
		if owner {
			return s.countQuota(ctx, account, l)
		}
		select {
		case <-l.Done:
		case <-ctx.Done():
			return problems.Of(ctx.Err())
		}
		if p, ok := errors.AsType[*problems.Problem](l.Err); ok && p.Limit != "" {
			return p // otherwise the count failed for its caller, who may have disconnected
		}
	}
	return nil
}

// countQuota counts for all waiting callers. If it panics, they count for themselves.
func (s *Server) countQuota(ctx context.Context, account string, l *admission.QuotaCount) (err error) {
	more, err := 0, errQuotaUnknown
	defer func() { s.quotas.Finish(account, l, more, err, time.Now()) }()
	more, err = s.remainingStarts(ctx, account)
	return err
}

var errQuotaUnknown = errors.New("server: quota count failed")

// remainingStarts returns how many more runs an account may start, or why it may not start any.
func (s *Server) remainingStarts(ctx context.Context, account string) (more int, err error) {
	open, err := s.config.Executor.CountOpenRequests(ctx, account, s.config.Limits.OpenRequests)
	if err != nil {
		return 0, problems.Of(err)
	}
	if open >= s.config.Limits.OpenRequests {
		return 0, quotaExceeded("too_many_open", "open_requests", "%d requests are open; the limit is %d", open, s.config.Limits.OpenRequests)
	}
	runs, err := s.countActive(ctx, account)
	if err != nil {
		return 0, problems.Of(err)
	}
	if runs >= s.config.Limits.ActiveRuns {
		return 0, quotaExceeded("too_many_runs", "active_runs", "%d runs are active; the limit is %d", runs, s.config.Limits.ActiveRuns)
	}
	return min(s.config.Limits.OpenRequests-open, s.config.Limits.ActiveRuns-runs), nil
}

// countActive counts the ready and running runs of an account up to the limit, page by page.
func (s *Server) countActive(ctx context.Context, account string) (count int, err error) {
	filter := store.RunFilter{Status: []store.Status{store.StatusReady, store.StatusRunning}}
	for count < s.config.Limits.ActiveRuns {
		filter.Limit = min(s.config.Limits.ActiveRuns-count, endpoint.MaxPage)
		runs, err := s.config.Executor.ListRuns(ctx, account, filter)
		if err != nil {
			return 0, err
		}
		count += len(runs)
		if len(runs) < filter.Limit {
			break
		}
		last := runs[len(runs)-1]
		filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
	}
	return count, nil
}

// quotaExceeded is the problem of an exhausted quota.
func quotaExceeded(code, limit, detail string, args ...any) *problems.Problem {
	p := problems.New(code, detail, args...)
	p.RetryAfter, p.Limit = quotaRetryAfter, limit
	return p
}

// quotaRetryAfter is the suggested retry delay: people do not decide faster.
const quotaRetryAfter = 30 * time.Second
