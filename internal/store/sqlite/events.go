package sqlite

import (
	"context"
	"strconv"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	addEventSQL = `
INSERT INTO events (account, run, number, kind, interrupt, at)
VALUES (?1, ?2, 1 + coalesce((SELECT max(number) FROM events WHERE account = ?1 AND run = ?2), 0), ?3, ?4, ?5)`

	// eventColumns are the columns for scanEvent.
	eventColumns = `account, run, number, kind, interrupt, at`

	eventsSQL = `
SELECT ` + eventColumns + ` FROM events WHERE account = ?1 AND run = ?2 AND number > ?3 ORDER BY number LIMIT ?4`

	feedSQL = `
SELECT ` + eventColumns + `, id FROM events INDEXED BY events_feed WHERE account = ?1 AND id > ?2 ORDER BY id LIMIT ?3`

	// lastEventSQL returns the highest event id that ever existed, even if the event was deleted.
	lastEventSQL = `SELECT seq FROM sqlite_sequence WHERE name = 'events'`
)

// maxEvents is the maximum number of results.
const maxEvents = 1000

// addEvent adds an event of a run in the same transaction.
func (t txn) addEvent(ctx context.Context, account, run string, kind store.EventKind, interrupt string) error {
	_, err := t.exec(ctx, addEventSQL, account, run, kind, interrupt, t.now)
	t.markChanged(account, run)
	return err
}

// markChanged marks a run for the watchers, who are notified after the commit.
func (t txn) markChanged(account, run string) {
	*t.changed = append(*t.changed, store.Key{Account: account, Run: run})
}

// pageSize returns the number of results within bounds.
func pageSize(limit, otherwise int) int {
	if limit <= 0 {
		return otherwise
	}
	return min(limit, 1000)
}

// Events returns the events of a run; see [store.Events].
func (s *Store) Events(ctx context.Context, account, run string, after int64, limit int) ([]store.Event, error) {
	events, err := queryAll(ctx, s.view(), scanEvent, eventsSQL, account, run, after, pageSize(limit, maxEvents))
	if err != nil {
		return nil, s.fail(ctx, "list events of", err)
	}
	return events, nil
}

func scanEvent(row rowScanner) (e store.Event, err error) {
	err = row.Scan(eventDest(&e)...)
	return e, err
}

func eventDest(e *store.Event) []any {
	return []any{&e.Account, &e.Run, &e.Seq, &e.Kind, &e.Interrupt, timeScanner{&e.At}}
}

// Feed returns the events of all runs of an account; see [store.Events]. The cursor is the id of an
// event. Ids are in commit order, because there is one writer at a time.
func (s *Store) Feed(ctx context.Context, account, after string, limit int) (events []store.Event, next string, err error) {
	const op = "read the feed of"
	id, err := feedCursor(after)
	if err != nil {
		return nil, "", err
	}
	last := id
	events, err = queryAll(ctx, s.view(), func(row rowScanner) (e store.Event, err error) {
		err = row.Scan(append(eventDest(&e), &last)...)
		return e, err
	}, feedSQL, account, id, pageSize(limit, maxEvents))
	if err == nil && len(events) == 0 {
		err = s.checkCursor(ctx, id)
	}
	if err != nil {
		return nil, "", s.fail(ctx, op, err)
	}
	if last == 0 {
		return nil, "", nil
	}
	return events, strconv.FormatInt(last, 10), nil
}

func feedCursor(after string) (int64, error) {
	if after == "" {
		return 0, nil
	}
	id, err := strconv.ParseInt(after, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != after {
		return 0, store.ErrInvalid
	}
	return id, nil
}

// checkCursor returns ErrInvalid if there was never an event with this id. A reader behind such a
// cursor would miss events.
func (s *Store) checkCursor(ctx context.Context, id int64) error {
	var newest int64 // 0 if there was never an event
	if _, err := s.view().queryRow(ctx, []any{&newest}, lastEventSQL); err != nil {
		return err
	}
	if id > newest {
		return store.ErrInvalid
	}
	return nil
}
