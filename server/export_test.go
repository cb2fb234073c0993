package server

// LookedFor is how many wait for somebody else to look how much room an account has.
func (s *Server) LookedFor(account string) int {
	s.rooms.mu.Lock()
	defer s.rooms.mu.Unlock()
	if l := s.rooms.looks[account]; l != nil {
		return l.waiting
	}
	return 0
}

// AtWork is how many requests are worked on, and how many wait for a place.
func (s *Server) AtWork() (working, waiting int) { return s.limits.working.load() }

// Inside is how many requests are served, and how many streams.
func (s *Server) Inside() (requests, streams int) {
	count := func(h *hall) int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.taken
	}
	return count(s.limits.serving), count(s.limits.streams)
}

// InsideOf is how many requests of an account are served, of those whose account is known already.
func (s *Server) InsideOf(account string) int {
	h := s.limits.serving
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[account]
}

// MostTurns is how many accounts have their past read at a time.
func MostTurns() int { return mostTurns() }
