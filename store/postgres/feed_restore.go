package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
)

const (
	// thisServerSQL is a number that no other server has, but for copies of all of its files.
	thisServerSQL = `SELECT system_identifier FROM pg_control_system()`

	// sameServerSQL reports whether the numbers of the feed were looked at on this very server. Where nobody may know which it is, they never were.
	sameServerSQL = `SELECT server IS NOT NULL AND server IS NOT DISTINCT FROM $1::bigint FROM feed_base`

	// advanceFeedSQL moves the numbers of the feed if there are events that have not happened yet by the numbers of this server. Somebody may have read on
	// where they came from: so what happens next is far behind.
	//mutate:postgres-feed-base
	advanceFeedSQL = `
UPDATE feed_base SET server = $1::bigint, base = coalesce((
    SELECT newest.xid::text::bigint - here.next::text::bigint + (1::bigint << 40)
    FROM (SELECT xid FROM events ORDER BY xid DESC LIMIT 1) AS newest
    CROSS JOIN (SELECT pg_snapshot_xmax(pg_current_snapshot()) AS next) AS here
    WHERE newest.xid >= feed_number(here.next)), base)`
)

// settle sees to it that the feed goes on on a server on which a backup was restored. Most starts do no more than look.
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
		if _, err := tx.Exec(ctx, noTimeoutSQL); err != nil { // it looks at all events
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, schema); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, advanceFeedSQL, server)
		return err
	})
}
