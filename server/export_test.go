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
