package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// quotaCache caches how many runs each account may still start. Counting open requests and active
// runs is most expensive when there are many. So a count is used for a second, and for a share of
// the starts that it leaves; near the limit every start is counted. At most one count per account
// runs at a time and serves all concurrent callers.
type quotaCache struct {
	mu       sync.Mutex
	accounts map[string]quota
	counts   map[string]*quotaCount // by account
}

// quota is the number of starts an account has left before the next count, and its expiry.
type quota struct {
	remaining int
	expires   time.Time
}

// quotaCount is a running count.
type quotaCount struct {
	done    chan struct{}
	waiting int
	err     error // why no start is possible, or why the count failed; set when done
}

const (
	// quotaTTL is how long a count is used.
	quotaTTL = time.Second
	// quotaShare is the share of the remaining starts that one count gives out: other replicas give
	// out theirs, and a run may create more than one request.
	quotaShare = 8
	// quotaCacheSize is how many accounts are cached before expired entries are removed.
	quotaCacheSize = 1000
)

// take uses one of the remaining starts, and reports whether there was one.
func (r *quotaCache) take(account string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := r.accounts[account]
	if left.remaining <= 0 || !now.Before(left.expires) {
		return false
	}
	left.remaining--
	r.accounts[account] = left
	return true
}

// join returns the running count of an account, or begins one.
func (r *quotaCache) join(account string) (l *quotaCount, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.counts[account]; l != nil {
		l.waiting++
		return l, false
	}
	if r.counts == nil {
		r.counts = make(map[string]*quotaCount)
	}
	l = &quotaCount{done: make(chan struct{})}
	r.counts[account] = l
	return l, true
}

// finish ends a count that found space for more starts. It serves the caller, the waiting callers,
// and caches a share of the remaining starts.
func (r *quotaCache) finish(account string, l *quotaCount, more int, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(l.done)
	delete(r.counts, account)
	if l.err = err; err != nil {
		return
	}
	if r.accounts == nil || len(r.accounts) >= quotaCacheSize {
		kept := make(map[string]quota)
		for account, left := range r.accounts {
			if now.Before(left.expires) {
				kept[account] = left
			}
		}
		r.accounts = kept
	}
	r.accounts[account] = quota{remaining: max(more/quotaShare, min(more-1, l.waiting)), expires: now.Add(quotaTTL)}
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
	for !s.quotas.take(account, time.Now()) {
		l, mine := s.quotas.join(account)
		if mine {
			return s.countQuota(ctx, account, l)
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return problemOf(ctx.Err())
		}
		if p, ok := errors.AsType[*Problem](l.err); ok && p.limit != "" {
			return p // otherwise the count failed for its caller, who may have disconnected
		}
	}
	return nil
}

// countQuota counts for all waiting callers. If it panics, they count for themselves.
func (s *Server) countQuota(ctx context.Context, account string, l *quotaCount) (err error) {
	more, err := 0, errQuotaUnknown
	defer func() { s.quotas.finish(account, l, more, err, time.Now()) }()
	more, err = s.remainingStarts(ctx, account)
	return err
}

var errQuotaUnknown = errors.New("server: quota count failed")

// remainingStarts returns how many more runs an account may start, or why it may not start any.
func (s *Server) remainingStarts(ctx context.Context, account string) (more int, err error) {
	open, err := s.config.Executor.CountOpenRequests(ctx, account, s.config.Limits.OpenRequests)
	if err != nil {
		return 0, problemOf(err)
	}
	if open >= s.config.Limits.OpenRequests {
		return 0, quotaExceeded("too_many_open", "open_requests", "%d requests are open; the limit is %d", open, s.config.Limits.OpenRequests)
	}
	runs, err := s.countActive(ctx, account)
	if err != nil {
		return 0, problemOf(err)
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
		filter.Limit = min(s.config.Limits.ActiveRuns-count, maxPage)
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
func quotaExceeded(code, limit, detail string, args ...any) *Problem {
	p := problem(code, detail, args...)
	p.retryAfter, p.limit = quotaRetryAfter, limit
	return p
}

// quotaRetryAfter is the suggested retry delay: people do not decide faster.
const quotaRetryAfter = 30 * time.Second

// maxPage is the maximum page size of a store.
const maxPage = 1000
