package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/store"
)

// In addition to the cost of waiting runs: the cost of listing them, and the expiry of many at
// once.

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

// expiringKey is the account of one of them.
func expiringKey(n int) string { return fmt.Sprintf("%s%d", tenantPrefix, n) }

const tenantPrefix = "tenant-"

// accountSQL returns the account of copy n in SQL; own is that of the original.
func accountSQL(runs int, own string) string {
	return fmt.Sprintf(`CASE WHEN n <= %d THEN '%s' || (n %% %d) ELSE %s END`, expiringRuns(runs), tenantPrefix, tenantCount(runs), own)
}

// inboxResult has the duration of an inbox page over HTTP, in nanoseconds: the first one, and one
// from the middle of a long list.
type inboxResult struct {
	Pages    int     `json:"pages"`
	FirstP50 float64 `json:"firstP50Ns"`
	FirstP99 float64 `json:"firstP99Ns"`
	DeepP50  float64 `json:"deepP50Ns"`
	DeepP99  float64 `json:"deepP99Ns"`
}

// sweepResult is the result of many requests that expire at once.
type sweepResult struct {
	Requests int `json:"questions"`
	// Swept is the time until all of them had expired, Resumed until their runs had resumed.
	Swept   time.Duration `json:"sweptNs"`
	Resumed time.Duration `json:"goneOnNs"`
	// Decisions is how many others were decided during that, with these latencies in nanoseconds.
	Decisions int     `json:"decisions"`
	P50       float64 `json:"p50Ns"`
	P99       float64 `json:"p99Ns"`
}

// inboxPage is the page size.
const inboxPage = 50

// inbox reads inbox pages over HTTP, one after the other.
func (l *parkedDatabase) inbox(ctx context.Context, pages int) (r inboxResult, err error) {
	reply, err := l.child.ask(childOrder{Serve: 1})
	if err != nil {
		return r, err
	}
	middle, err := l.middleCursor(ctx, reply)
	if err != nil {
		return r, err
	}
	var found [2][]time.Duration
	for page := range 2 * (pages + 1) {
		which, started := page%2, time.Now()
		got, err := inboxPageAfter(ctx, reply, []string{"", middle}[which], inboxPage)
		took := time.Since(started)
		if err == nil && len(got.Items) != inboxPage {
			err = fmt.Errorf("a page of the inbox has %d requests", len(got.Items))
		}
		if err != nil {
			return r, err
		}
		if page >= 2 { // the first of each warms up
			found[which] = append(found[which], took)
		}
	}
	for i := range found {
		slices.Sort(found[i])
	}
	return inboxResult{
		Pages: pages, FirstP50: float64(percentile(found[0], 50)), FirstP99: float64(percentile(found[0], 99)),
		DeepP50: float64(percentile(found[1], 50)), DeepP99: float64(percentile(found[1], 99)),
	}, nil
}

// middleCursor returns the cursor of the middle of the inbox.
func (l *parkedDatabase) middleCursor(ctx context.Context, at childReply) (cursor string, err error) {
	const most = 1000
	for read := 0; read < l.runs/2; read += most {
		page, err := inboxPageAfter(ctx, at, cursor, min(most, l.runs/2-read))
		if err != nil {
			return "", err
		}
		cursor = page.Next
	}
	return cursor, nil
}

// inboxPageAfter gets a page of the inbox.
func inboxPageAfter(ctx context.Context, at childReply, cursor string, limit int) (page api.Page[json.RawMessage], err error) {
	where := fmt.Sprintf("%s%s/requests?limit=%d&cursor=%s", at.URL, api.Prefix, limit, url.QueryEscape(cursor))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return page, err
	}
	request.Header.Set("Authorization", "Bearer "+at.Key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return page, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &statusError{response.StatusCode, string(body)}
	}
	if err != nil {
		return page, err
	}
	return page, json.Unmarshal(body, &page)
}

// sweep expires some of the runs, and decides others during that.
func (l *parkedDatabase) sweep(ctx context.Context, pause time.Duration) (r sweepResult, err error) {
	last := expiringRuns(l.runs)
	order := childOrder{Pause: pause, Tenants: tenantCount(l.runs)}
	for n := last + 1; n <= l.runs && len(order.Decide) < maxDuringSweep; n++ {
		if !l.decided[n] {
			l.decided[n] = true
			order.Decide = append(order.Decide, parkedKey(n))
		}
	}
	if order.Expire, err = l.database.expire(ctx, l.place, interruptCopy(last)); err != nil {
		return r, err
	}
	reply, err := l.child.ask(order)
	if err != nil {
		return r, err
	}
	slices.Sort(reply.Latencies)
	return sweepResult{
		Requests: order.Expire, Swept: reply.Swept, Resumed: reply.Resumed, Decisions: len(reply.Latencies),
		P50: float64(percentile(reply.Latencies, 50)), P99: float64(percentile(reply.Latencies, 99)),
	}, nil
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
		running, err := e.store.List(ctx, expiringKey(n), store.RunFilter{Status: []store.Status{store.StatusReady, store.StatusRunning}, Limit: 1})
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

// expire sets the deadline of copies to the past, up to one of them, and returns their number.
func (g *sqliteDatabase) expire(ctx context.Context, place, last string) (count int, err error) {
	db, err := openSQLite(place)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	changed, err := db.ExecContext(ctx, `
UPDATE interrupts SET deadline = CAST(strftime('%s', 'now') AS INTEGER) * 1000000
WHERE state = 'pending' AND id BETWEEN ?1 AND ?2`, []byte(interruptCopy(0)), []byte(last))
	if err != nil {
		return 0, err
	}
	rows, err := changed.RowsAffected()
	return int(rows), err
}

// expire sets the deadline of copies to the past, up to one of them, and returns their number.
func (g postgresDatabase) expire(ctx context.Context, place, last string) (count int, err error) {
	conn, err := g.superuser(ctx, place)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	changed, err := conn.Exec(ctx, `UPDATE fermata.interrupts SET deadline = now() WHERE state = 'pending' AND id BETWEEN $1 AND $2`, []byte(interruptCopy(0)), []byte(last))
	return int(changed.RowsAffected()), err
}
