package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
)

// quotaCache caches how many runs each account may still start. Finding that out counts open questions and lists runs under way, which is most expensive when
// there are many. So a result is used for a second, and for a part of the starts that it leaves room for; near the limit every start counts anew. One count
// per account is under way at a time, and serves all who come meanwhile.
type quotaCache struct {
	mu       sync.Mutex
	accounts map[string]quota
	counts   map[string]*quotaCount // by account
}

// quota is how many starts an account has left before the next count, and until when.
type quota struct {
	remaining int
	expires   time.Time
}

// quotaCount is a count under way.
type quotaCount struct {
	done    chan struct{}
	waiting int
	err     error // why there is no room, or why the count failed; set when it is done
}

const (
	// quotaTTL is how long a look holds.
	quotaTTL = time.Second
	// quotaShare is the part of the room that one look gives away: other replicas give theirs, and a run may ask more than one question.
	quotaShare = 8
	// quotaCacheSize is how many accounts may be remembered before those are forgotten whose look is too old.
	quotaCacheSize = 1000
)

// take takes one start of what the last look has left, and reports whether there was one.
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

// join returns the look at an account that is under way, or begins one.
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

// saw ends a look. There is room for so many more: for whoever looked, for those who waited for that, and a part of the rest for those who come.
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

// roomFor refuses a start if the account has too much open, or under way.
func (s *Server) checkStartQuota(ctx context.Context, request executor.RunRequest) error {
	problem := s.takeStart(ctx, request.Account)
	if problem == nil {
		return nil
	}
	if view, err := s.config.Executor.GetRun(ctx, request.Account, request.StateKey); err == nil && (view.Status.Active() || executor.IsRepeat(request, view.Run)) {
		return nil // it was started before, and is to be repeated
	}
	return problem
}

// quotaCount takes a start of the room of an account, and looks for room if nobody has.
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
			return p // else it could not be found out for whoever looked, who may have gone away
		}
	}
	return nil
}

// lookFor finds out how much room an account has, for all who wait for that. They look for themselves if it panics.
func (s *Server) countQuota(ctx context.Context, account string, l *quotaCount) (err error) {
	more, err := 0, errQuotaUnknown
	defer func() { s.quotas.finish(account, l, more, err, time.Now()) }()
	more, err = s.remainingStarts(ctx, account)
	return err
}

var errQuotaUnknown = errors.New("server: the room of an account was not found out")

// quota is how many more runs an account could start, or why it cannot start any.
func (s *Server) remainingStarts(ctx context.Context, account string) (more int, err error) {
	open, err := s.config.Executor.CountOpenRequests(ctx, account, s.config.Limits.OpenRequests)
	if err != nil {
		return 0, problemOf(err)
	}
	if open >= s.config.Limits.OpenRequests {
		return 0, quotaExceeded("too_many_open", "open", "%d questions are open; %d are allowed", open, s.config.Limits.OpenRequests)
	}
	runs, err := s.countActive(ctx, account)
	if err != nil {
		return 0, problemOf(err)
	}
	if runs >= s.config.Limits.ActiveRuns {
		return 0, quotaExceeded("too_many_runs", "runs", "%d runs are under way; %d are allowed", runs, s.config.Limits.ActiveRuns)
	}
	return min(s.config.Limits.OpenRequests-open, s.config.Limits.ActiveRuns-runs), nil
}

// statusPending counts the runs of an account that are ready or running, but no further than to the limit: page by page, because a store lists no more at
// once.
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

// quotaExceeded is the refusal of what there is no room for now.
func quotaExceeded(code, limit, detail string, args ...any) *Problem {
	p := problem(code, detail, args...)
	p.retryAfter, p.limit = quotaRetryAfter, limit
	return p
}

// quotaRetryAfter is how long to wait for room: people decide no faster.
const quotaRetryAfter = 30 * time.Second

// maxPage is how many items of a list a store returns at once.
const maxPage = 1000
