package requests

import "time"

// RequestTimeout is how long a question may be open: as long as it says itself, but no longer than Config.RequestTimeout.
func (s *Service) RequestTimeout(own time.Duration) time.Duration {
	limit := s.config.RequestTimeout
	switch {
	case limit < 0:
		return max(own, 0)
	case own <= 0:
		return limit
	}
	return min(own, limit) //mutate:shorter-deadline-wins
}
