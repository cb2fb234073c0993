package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const (
	// thisServerSQL returns an id that is unique to a server, except for copies of all of its
	// files.
	thisServerSQL = `SELECT system_identifier FROM pg_control_system()`

	// sameServerSQL reports whether the numbers of the feed were checked on this server. If the id
	// is not readable, it is false.
	sameServerSQL = `SELECT server IS NOT NULL AND server IS NOT DISTINCT FROM $1::bigint FROM feed_base`

	// advanceFeedSQL shifts the numbers of the feed if there are events with numbers that this
	// server has not reached. Readers may have cursors beyond the backup, so new events get much
	// higher numbers.
	//mutate:postgres-feed-base
	advanceFeedSQL = `
UPDATE feed_base SET server = $1::bigint, base = coalesce((
    SELECT newest.xid::text::bigint - here.next::text::bigint + (1::bigint << 40)
    FROM (SELECT xid FROM events ORDER BY xid DESC LIMIT 1) AS newest
    CROSS JOIN (SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next) AS here
    WHERE newest.xid >= feed_number(here.next)), base)`
)

// advanceFeedIfRestored lets the feed continue on a server where a backup was restored. Usually it
// only reads.
func (s *Store) advanceFeedIfRestored(ctx context.Context, schema string) error {
	var server *int64
	if err := s.pool.QueryRow(ctx, thisServerSQL).Scan(&server); err != nil && !errors.Is(classify(err), ErrDenied) {
		return err
	}
	same := false
	if err := s.pool.QueryRow(ctx, sameServerSQL, server).Scan(&same); err != nil || same {
		return err
	}
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, noTimeoutSQL); err != nil { // it reads all events
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, schema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, advanceFeedSQL, server)
		return err
	})
}
