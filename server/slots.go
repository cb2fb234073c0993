package server

import (
	"sync"
	"time"
)

// slotLimiter limits how many requests are served, or event streams open, at the same time. There is no queue: a caller that is refused at once can go elsewhere.
// Accounts share it much as they share a [fairScheduler]: an account that is alone may take all places, one beside others leaves a part of them free, and one without
// any place gets one even if all are taken.
type slotLimiter struct {
	capacity int

	mu         sync.Mutex
	inUse      int
	perAccount map[string]int
	recent     recentAccounts
}

// slotShare limits an account beside others to this many times the places that are free.
const slotShare = 4

// slot is a place in a hall.
type slot struct {
	limiter *slotLimiter
	account string
}

func newSlotLimiter(places int) *slotLimiter {
	return &slotLimiter{capacity: places, perAccount: make(map[string]int)}
}

// enter takes a place for an account, or says that there is none.
func (h *slotLimiter) acquire(account string) (*slot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.recent.note(account, now)
	if !h.mayAdmit(account, now) {
		return nil, false
	}
	h.adjust(account, 1)
	return &slot{limiter: h, account: account}, true
}

// admits reports whether an account may take a place now.
func (h *slotLimiter) mayAdmit(account string, now time.Time) bool {
	free, own := h.capacity-h.inUse, h.perAccount[account]
	if own == 0 {
		return free > -max(1, h.capacity/reserveShare)
	}
	return free > 0 && (!h.recent.othersActive(account, now) || own < slotShare*free)
}

func (h *slotLimiter) adjust(account string, places int) {
	h.inUse += places
	h.perAccount[account] += places
	if h.perAccount[account] == 0 {
		delete(h.perAccount, account)
	}
}

// belongs moves a place to the account that the request is really from, as [permit.reassign] does.
func (s *slot) reassign(account string) bool {
	h := s.limiter
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.recent.note(account, now)
	if account == s.account {
		return true
	}
	h.adjust(s.account, -1)
	ok := h.mayAdmit(account, now)
	if ok {
		s.account = account
	}
	h.adjust(s.account, 1)
	return ok
}

// leave gives the place back.
func (s *slot) release() {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.limiter.adjust(s.account, -1)
}
