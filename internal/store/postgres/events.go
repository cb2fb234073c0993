package postgres

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	eventsSQL = `
SELECT ` + eventColumns + ` FROM events AS e
WHERE e.run_key = ` + keyOfArgs + ` AND e.account = $1 AND e.number > $3 ORDER BY e.number LIMIT $4`

	// feedSQL returns no event while a transaction is open that may write one with a lower number,
	// which later readers would miss.
	feedSQL = `
SELECT e.xid, e.id, ` + eventColumns + ` FROM events AS e
WHERE sha256(e.account) = sha256($1) AND e.account = $1
  AND (e.xid, e.id) > ($2, $3) AND e.xid < feed_number(pg_snapshot_xmin(pg_current_snapshot()))
ORDER BY e.xid, e.id LIMIT $4`

	// horizonSQL returns a number that no transaction has had yet, and whether there are events
	// that feedSQL does not return yet.
	horizonSQL = `
SELECT feed_number(pg_snapshot_xmax(pg_current_snapshot())), EXISTS (
    SELECT FROM events WHERE sha256(account) = sha256($1) AND account = $1 AND xid >= feed_number(pg_snapshot_xmin(pg_current_snapshot())))`
)

// feedWait is how long Feed waits for transactions that hold back events. Ours last for
// milliseconds.
const feedWait = time.Second

// Events returns the events of a run; see [store.Events].
func (s *Store) Events(ctx context.Context, account, run string, after int64, limit int) (events []store.Event, err error) {
	var t txn
	queryAll(&t, &events, scanEvent, eventsSQL, account, run, after, pageSize(limit, 1000))
	return events, s.view(ctx, "read events of", &t)
}

// Feed returns the events of all runs of an account; see [store.Events]. Every open transaction of
// the database server that has written something holds back later events. If there is nothing else
// to return, Feed waits a moment for them.
func (s *Store) Feed(ctx context.Context, account, after string, limit int) (events []store.Event, next string, err error) {
	from, err := parseFeedPosition(after)
	if err != nil {
		return nil, "", err
	}
	giveUp := time.Now().Add(feedWait)
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		found, keptBack, err := s.feed(ctx, account, from, pageSize(limit, 1000))
		if err != nil {
			return nil, "", err
		}
		if len(found) == 0 && keptBack && time.Now().Before(giveUp) && sleep(ctx, wait) {
			continue
		}
		for _, e := range found {
			events, after = append(events, e.Event), e.place.String()
		}
		return events, after, nil
	}
}

// feed also reports whether there were events that it holds back.
func (s *Store) feed(ctx context.Context, account string, from feedPosition, limit int) (found []feedEvent, keptBack bool, err error) {
	var t txn
	var unused uint64
	known := false
	t.queryRow(&known, []any{&unused, &keptBack}, horizonSQL, account)
	queryAll(&t, &found, scanFeedEvent, feedSQL, account, from.xid, from.id, limit)
	if err := s.view(ctx, "follow", &t); err != nil {
		return nil, false, err
	}
	if from.xid >= unused {
		return nil, false, store.ErrInvalid // a cursor of another server
	}
	return found, keptBack, nil
}

// feedPosition is the position of an event among those of all runs.
type feedPosition struct {
	xid uint64 // of the transaction
	id  int64
}

// String returns the cursor after the event.
func (p feedPosition) String() string {
	return strconv.FormatUint(p.xid, 10) + ":" + strconv.FormatInt(p.id, 10)
}

// parseFeedPosition accepts only what String returns; "" is the beginning.
func parseFeedPosition(cursor string) (p feedPosition, err error) {
	if cursor == "" {
		return feedPosition{}, nil
	}
	xid, id, _ := strings.Cut(cursor, ":")
	if p.xid, err = strconv.ParseUint(xid, 10, 64); err == nil {
		p.id, err = strconv.ParseInt(id, 10, 64)
	}
	if err != nil || p.String() != cursor || p.id < 1 {
		return feedPosition{}, store.ErrInvalid
	}
	return p, nil
}

type feedEvent struct {
	store.Event
	place feedPosition
}

func scanFeedEvent(rows pgx.CollectableRow) (e feedEvent, err error) {
	err = rows.Scan(append([]any{&e.place.xid, &e.place.id}, eventDest(&e.Event)...)...)
	return e, err
}
