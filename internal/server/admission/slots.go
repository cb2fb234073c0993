package admission

import (
	"sync"
	"time"
)

// slotLimiter limits how many requests are in flight, or how many event streams are open. It has no
// queue: a client that is rejected at once can try another replica. Accounts share the slots as in
// a [FairScheduler]: an account that is alone may take all slots, an account among others leaves
// some free, and an account without any slot gets one even if all are in use.
type slotLimiter struct {
	capacity int

	mu         sync.Mutex
	inUse      int
	perAccount map[string]int
	recent     recentAccounts
}

// slotShare limits an account among others to this multiple of the free slots.
const slotShare = 4

// Slot is one unit of a slotLimiter.
type Slot struct {
	limiter *slotLimiter
	account string
}

func newSlotLimiter(delta int) *slotLimiter {
	return &slotLimiter{capacity: delta, perAccount: make(map[string]int)}
}

// Acquire returns a slot for an account, or false if there is none.
func (h *slotLimiter) Acquire(account string) (*Slot, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.recent.note(account, now)
	if !h.mayAdmit(account, now) {
		return nil, false
	}
	h.adjust(account, 1)
	return &Slot{limiter: h, account: account}, true
}

// mayAdmit reports whether an account may take a slot now.
func (h *slotLimiter) mayAdmit(account string, now time.Time) bool {
	free, own := h.capacity-h.inUse, h.perAccount[account]
	if own == 0 {
		return free > -max(1, h.capacity/reserveShare)
	}
	return free > 0 && (!h.recent.othersActive(account, now) || own < slotShare*free)
}

func (h *slotLimiter) adjust(account string, delta int) {
	h.inUse += delta
	h.perAccount[account] += delta
	if h.perAccount[account] == 0 {
		delete(h.perAccount, account)
	}
}

// Reassign moves a slot to the authenticated account of the request, as [permit.reassign] does.
func (s *Slot) Reassign(account string) bool {
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

// Release frees the slot.
func (s *Slot) Release() {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	s.limiter.adjust(s.account, -1)
}

// Total returns how many slots are in use.
func (h *slotLimiter) Total() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.inUse
}

// Held returns how many slots an account uses.
func (h *slotLimiter) Held(account string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.perAccount[account]
}
