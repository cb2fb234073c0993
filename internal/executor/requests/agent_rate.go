package requests

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
)

// agentRate is how many requests an agent created, by minute: the Unix time divided by 60.
type agentRate struct {
	Minutes map[int64]int `json:"minutes"`
}

// rateMinutes is the time that the limit of an agent counts, in minutes.
const rateMinutes = 60

// TakeAgentRequest counts one request of an agent, unless it created limit requests in the last
// hour; then it returns how long it must wait. All processes share the count.
func (s *Service) TakeAgentRequest(ctx context.Context, account, agent string, limit int) (wait time.Duration, err error) {
	err = retry.WhileStale(ctx, func() error {
		now, err := s.store.Now(ctx)
		if err != nil {
			return err
		}
		var rate agentRate
		paper, err := s.docs.ReadIndex(ctx, account, docs.AgentRateKind, agent, &rate)
		if err != nil {
			return err
		}
		if wait = rate.take(now, limit); wait > 0 {
			return nil
		}
		return s.docs.UpdateIndex(ctx, &paper, rate, time.Time{})
	})
	return wait, err
}

// take adds a request at a time, or returns how long it takes until there is room for one.
func (r *agentRate) take(now time.Time, limit int) time.Duration {
	minute := now.Unix() / 60
	count := 0
	oldest := minute
	for m, n := range r.Minutes {
		if m <= minute-rateMinutes {
			delete(r.Minutes, m)
			continue
		}
		count += n
		oldest = min(oldest, m)
	}
	if count >= limit {
		return max(time.Unix((oldest+rateMinutes)*60, 0).Sub(now), time.Second)
	}
	if r.Minutes == nil {
		r.Minutes = make(map[int64]int)
	}
	r.Minutes[minute]++
	return 0
}
