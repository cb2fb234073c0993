package server

// CountedQuota returns how many callers wait for a running quota count of an account.
func (s *Server) CountedQuota(account string) int {
	s.quotas.mu.Lock()
	defer s.quotas.mu.Unlock()
	if l := s.quotas.counts[account]; l != nil {
		return l.waiting
	}
	return 0
}

// Working returns how many requests have a permit, and how many wait for one.
func (s *Server) Working() (working, waiting int) { return s.limits.scheduler.load() }

// InFlight returns how many requests and streams have a slot.
func (s *Server) InFlight() (requests, streams int) {
	count := func(h *slotLimiter) int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.inUse
	}
	return count(s.limits.requests), count(s.limits.streams)
}

// InFlightOf returns how many requests of a known account have a slot.
func (s *Server) InFlightOf(account string) int {
	h := s.limits.requests
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.perAccount[account]
}

// MaxHeavyReads returns how many accounts may do heavy reads at a time.
func MaxHeavyReads() int { return maxHeavyReads() }
