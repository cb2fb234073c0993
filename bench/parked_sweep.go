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
	"github.com/fermata-go/fermata/store"
)

// Beside what waiting runs cost while they wait: what it costs to look at them, and what happens when the time of many is over at once.

// The part of the runs that is not decided in time, and how many of those each tenant has who has any: so their logs are many, and all others are in that of
// one account.
const (
	expiringShare = 10
	perTenant     = 10
)

// expiringRuns is how many of so many runs are not decided in time, the first ones, and tenants whose they are.
func expiringRuns(runs int) int { return runs / expiringShare }
func tenantCount(runs int) int  { return max(1, expiringRuns(runs)/perTenant) }

// expiringKey is one of them.
func expiringKey(n int) string { return fmt.Sprintf("%s%d", tenantPrefix, n) }

const tenantPrefix = "tenant-"

// accountSQL is the account of copy n of so many runs, in SQL; own is the one of the original.
func accountSQL(runs int, own string) string {
	return fmt.Sprintf(`CASE WHEN n <= %d THEN '%s' || (n %% %d) ELSE %s END`, expiringRuns(runs), tenantPrefix, tenantCount(runs), own)
}

// inboxResult says how long a page of what people are asked takes over HTTP, in nanoseconds: the first one, and one from the middle of a long list.
type inboxResult struct {
	Pages    int     `json:"pages"`
	FirstP50 float64 `json:"firstP50Ns"`
	FirstP99 float64 `json:"firstP99Ns"`
	DeepP50  float64 `json:"deepP50Ns"`
	DeepP99  float64 `json:"deepP99Ns"`
}

// sweepResult is what came of many questions whose time was over at once.
type sweepResult struct {
	Requests int `json:"questions"`
	// Swept is the time until all of them had expired, GoneOn that until their runs had gone on.
	Swept   time.Duration `json:"sweptNs"`
	Resumed time.Duration `json:"goneOnNs"`
	// Decisions is how many others were decided meanwhile, with these latencies in nanoseconds.
	Decisions int     `json:"decisions"`
	P50       float64 `json:"p50Ns"`
	P99       float64 `json:"p99Ns"`
}

// inboxPage is how many requests are on a page.
const inboxPage = 50

// inbox looks at pages of an inbox over HTTP, one after the other.
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
		which, begun := page%2, time.Now()
		got, err := inboxPageAfter(ctx, reply, []string{"", middle}[which], inboxPage)
		took := time.Since(begun)
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

// middle is the cursor to the middle of the inbox, as somebody has it who has read so far.
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

// sweep lets the time of some of the runs be over, and decides others meanwhile.
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

// maxDuringSweep is how many are decided while others expire, at most.
const maxDuringSweep = 10_000

// decideWhileExpiring decides runs, one after the other, until so many questions have expired, and waits for their runs to go on.
func decideWhileExpiring(ctx context.Context, e *executorSide, order childOrder, reply *childReply) error {
	begun, decided := time.Now(), 0
	for e.expired() < int64(order.Expire) {
		if decided < len(order.Decide) {
			latency, err := decideOne(ctx, e, order.Decide[decided], maxParked+decided) // under a name that is free
			if err != nil {
				return fmt.Errorf("%s: %w", order.Decide[decided], err)
			}
			reply.Latencies = append(reply.Latencies, latency)
			decided++
		}
		time.Sleep(order.Pause)
	}
	reply.Swept = time.Since(begun)
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
	reply.Resumed = time.Since(begun)
	return nil
}

// expired is how many questions this executor let expire.
func (e *executorSide) expired() int64 {
	stats := e.executor.Stats()
	return stats.ExpiredUndecided + stats.ExpiredOtherwise
}

// expire lets the time of copies be over, up to one of them, and says how many there were.
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

// expire lets the time of copies be over, up to one of them, and says how many there were.
func (g postgresDatabase) expire(ctx context.Context, place, last string) (count int, err error) {
	conn, err := g.superuser(ctx, place)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	changed, err := conn.Exec(ctx, `UPDATE fermata.interrupts SET deadline = now() WHERE state = 'pending' AND id BETWEEN $1 AND $2`, []byte(interruptCopy(0)), []byte(last))
	return int(changed.RowsAffected()), err
}
