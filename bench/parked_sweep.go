package main

import (
	"context"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/store"
)

// The share of runs that expires, and how many of those each tenant has: so they span many audit
// logs, and all others are in that of one account.
const (
	expiringShare = 10
	perTenant     = 10
)

// expiringRuns returns how many runs expire, the first ones, and tenantCount the number of their
// tenants.
func expiringRuns(runs int) int { return runs / expiringShare }
func tenantCount(runs int) int  { return max(1, expiringRuns(runs)/perTenant) }

// expiringAccount is the account of one of them.
func expiringAccount(n int) string { return fmt.Sprintf("%s%d", tenantPrefix, n) }

const tenantPrefix = "tenant-"

// inboxPage is the page size.
const inboxPage = 50

// inbox reads inbox pages over HTTP, one after the other: the first one, and one from the middle of
// a long list.
func (l *parkedDatabase) inbox(ctx context.Context, pages int, m *scenarioMetrics) error {
	reply, err := l.child.ask(childOrder{Serve: 1})
	if err != nil {
		return err
	}
	c, err := client.New(reply.URL, reply.Key)
	if err != nil {
		return err
	}
	middle, err := l.middleCursor(ctx, c)
	if err != nil {
		return err
	}
	for _, which := range []struct{ name, cursor string }{{"first page", ""}, {"page in the middle", middle}} {
		var found []time.Duration
		for page := range pages + 1 {
			took, err := timed(func() error {
				got, err := c.Requests(ctx, client.Query{Cursor: which.cursor, Limit: inboxPage})
				if err == nil && len(got.Items) != inboxPage {
					err = fmt.Errorf("a page of the inbox has %d requests", len(got.Items))
				}
				return err
			})
			if err != nil {
				return err
			}
			if page > 0 { // the first one warms up
				found = append(found, took)
			}
		}
		m.percentiles(which.name, found).AtMost = float64(maxPageTime.Milliseconds())
	}
	return nil
}

// middleCursor returns the cursor of the middle of the inbox.
func (l *parkedDatabase) middleCursor(ctx context.Context, c *client.Client) (cursor string, err error) {
	const most = 1000
	for read := 0; read < l.runs/2; read += most {
		page, err := c.Requests(ctx, client.Query{Cursor: cursor, Limit: min(most, l.runs/2-read)})
		if err != nil {
			return "", err
		}
		cursor = page.Next
	}
	return cursor, nil
}

// sweep expires some of the runs, and decides others during that. It returns the p99 of a decision
// in milliseconds.
func (l *parkedDatabase) sweep(ctx context.Context, pause time.Duration, m *scenarioMetrics) (p99 float64, err error) {
	order := childOrder{Pause: pause, Tenants: tenantCount(l.runs)}
	for n := expiringRuns(l.runs); n < l.runs && len(order.Decide) < maxDuringSweep; n++ {
		if !l.decided[n] {
			l.decided[n] = true
			order.Decide = append(order.Decide, parkedKey(n))
		}
	}
	if order.Expire, err = l.database.expire(ctx, l.place); err != nil {
		return 0, err
	}
	reply, err := l.child.ask(order)
	if err != nil {
		return 0, err
	}
	m.add("expired", float64(order.Expire), "")
	m.add("µs each", float64(reply.Swept.Microseconds())/float64(max(1, order.Expire)), "").AtMost = float64(maxExpiryTime.Microseconds())
	m.millis("all resumed after", reply.Resumed)
	return m.percentiles("decision during expiry", reply.Latencies).Value, nil
}

// maxDuringSweep bounds how many are decided while others expire.
const maxDuringSweep = 10_000

// decideWhileExpiring decides runs sequentially until a number of requests have expired, and waits
// for their runs to resume.
func decideWhileExpiring(ctx context.Context, e *executorSide, order childOrder, reply *childReply) error {
	started, decided := time.Now(), 0
	for e.expired() < int64(order.Expire) {
		if decided < len(order.Decide) {
			// under an unused name
			latency, err := decideOne(ctx, e, order.Decide[decided], maxParked+decided)
			if err != nil {
				return fmt.Errorf("%s: %w", order.Decide[decided], err)
			}
			reply.Latencies = append(reply.Latencies, latency)
			decided++
		}
		time.Sleep(order.Pause)
	}
	reply.Swept = time.Since(started)
	for n := 0; n < order.Tenants; {
		running, err := e.store.List(ctx, expiringAccount(n), store.RunFilter{Status: []store.Status{store.StatusReady, store.StatusRunning}, Limit: 1})
		if err != nil {
			return err
		}
		if len(running) == 0 {
			n++
			continue
		}
		time.Sleep(100 * time.Millisecond)
	}
	reply.Resumed = time.Since(started)
	return nil
}

// expired returns how many requests this executor has expired.
func (e *executorSide) expired() int64 {
	stats := e.executor.Stats()
	return stats.ExpiredUndecided + stats.ExpiredOtherwise
}
