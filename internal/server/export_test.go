package server

import (
	"github.com/fermata-go/fermata/internal/server/admission"
	"github.com/fermata-go/fermata/internal/server/requests"
)

// CountedQuota returns how many callers wait for a running quota count of an account.
func (s *Server) CountedQuota(account string) int { return s.runs.WaitingForQuota(account) }

// Working returns how many requests have a permit, and how many wait for one.
func (s *Server) Working() (working, waiting int) { return s.limits.Scheduler.Load() }

// InFlight returns how many requests and streams have a slot.
func (s *Server) InFlight() (requests, streams int) {
	return s.limits.Requests.Total(), s.limits.Streams.Total()
}

// InFlightOf returns how many requests of a known account have a slot.
func (s *Server) InFlightOf(account string) int { return s.limits.Requests.Held(account) }

// SetMaxScanned sets how many requests are read for one page, until the function it returns is
// called.
func SetMaxScanned(n int) (reset func()) {
	before := requests.MaxScanned
	requests.MaxScanned = n
	return func() { requests.MaxScanned = before }
}

// MaxHeavyReads returns how many accounts may do heavy reads at a time.
func MaxHeavyReads() int { return admission.MaxHeavyReads() }
