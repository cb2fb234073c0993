package server

import (
	"sync"
	"time"
)

// hall limits how many requests are served, or event streams open, at the same time. There is no queue: a caller that is refused at once can go elsewhere.
// Accounts share it much as they share a [gate]: an account that is alone may take all places, one beside others leaves a part of them free, and one without
// any place gets one even if all are taken.
type hall struct {
	places int

	mu    sync.Mutex
	taken int
	by    map[string]int
	seen  company
}

// hallShare limits an account beside others to this many times the places that are free.
const hallShare = 4

// seat is a place in a hall.
type seat struct {
	hall    *hall
	account string
}

func newHall(places int) *hall { return &hall{places: places, by: make(map[string]int)} }

// enter takes a place for an account, or says that there is none.
func (h *hall) enter(account string) (*seat, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.seen.see(account, now)
	if !h.admits(account, now) {
		return nil, false
	}
	h.count(account, 1)
	return &seat{hall: h, account: account}, true
}

// admits reports whether an account may take a place now.
func (h *hall) admits(account string, now time.Time) bool {
	free, own := h.places-h.taken, h.by[account]
	if own == 0 {
		return free > -max(1, h.places/spareShare)
	}
	return free > 0 && (!h.seen.beside(account, now) || own < hallShare*free)
}

func (h *hall) count(account string, places int) {
	h.taken += places
	h.by[account] += places
	if h.by[account] == 0 {
		delete(h.by, account)
	}
}

// belongs moves a place to the account that the request is really from, as [lease.belongs] does.
func (s *seat) belongs(account string) bool {
	h := s.hall
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.seen.see(account, now)
	if account == s.account {
		return true
	}
	h.count(s.account, -1)
	ok := h.admits(account, now)
	if ok {
		s.account = account
	}
	h.count(s.account, 1)
	return ok
}

// leave gives the place back.
func (s *seat) leave() {
	s.hall.mu.Lock()
	defer s.hall.mu.Unlock()
	s.hall.count(s.account, -1)
}
