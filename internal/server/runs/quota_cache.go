package runs

import (
	"sync"
	"time"
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
	Done    chan struct{}
	waiting int
	Err     error // why no start is possible, or why the count failed; set when done
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

// Take uses one of the remaining starts, and reports whether there was one.
func (r *quotaCache) Take(account string, now time.Time) bool {
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

// Join returns the running count of an account, or begins one.
func (r *quotaCache) Join(account string) (l *quotaCount, owner bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.counts[account]; l != nil {
		l.waiting++
		return l, false
	}
	if r.counts == nil {
		r.counts = make(map[string]*quotaCount)
	}
	l = &quotaCount{Done: make(chan struct{})}
	r.counts[account] = l
	return l, true
}

// Finish ends a count that found space for more starts. It serves the caller, the waiting callers,
// and caches a share of the remaining starts.
func (r *quotaCache) Finish(account string, l *quotaCount, more int, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(l.Done)
	delete(r.counts, account)
	if l.Err = err; err != nil {
		return
	}
	if r.accounts == nil || len(r.accounts) >= quotaCacheSize {
		cached := make(map[string]quota)
		for account, left := range r.accounts {
			if now.Before(left.expires) {
				cached[account] = left
			}
		}
		r.accounts = cached
	}
	r.accounts[account] = quota{remaining: max(more/quotaShare, min(more-1, l.waiting)), expires: now.Add(quotaTTL)}
}

// WaitingFor returns how many callers wait for a running count of an account.
func (r *quotaCache) WaitingFor(account string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.counts[account]; l != nil {
		return l.waiting
	}
	return 0
}
