package server

// LookedFor is how many wait for somebody else to look how much room an account has.
func (s *Server) CountedQuota(account string) int {
	s.quotas.mu.Lock()
	defer s.quotas.mu.Unlock()
	if l := s.quotas.counts[account]; l != nil {
		return l.waiting
	}
	return 0
}

// AtWork is how many requests are worked on, and how many wait for a place.
func (s *Server) Working() (working, waiting int) { return s.limits.scheduler.load() }

// Inside is how many requests are served, and how many streams.
func (s *Server) InFlight() (requests, streams int) {
	count := func(h *slotLimiter) int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.inUse
	}
	return count(s.limits.requests), count(s.limits.streams)
}

// InsideOf is how many requests of an account are served, of those whose account is known already.
func (s *Server) InFlightOf(account string) int {
	h := s.limits.requests
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.perAccount[account]
}

// MaxHeavyReads is how many accounts have their past read at a time.
func MaxHeavyReads() int { return maxHeavyReads() }
