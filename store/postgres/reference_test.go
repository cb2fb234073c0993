package postgres

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/storetest"
)

// Statements name the clocks of the server without a schema. Behind another schema, pg_catalog has no say in what they mean.
const fakeClocks = `
CREATE SCHEMA fake;
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$SELECT current_setting('fake.now')::timestamptz$$;
CREATE FUNCTION fake.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$SELECT current_setting('fake.now')::timestamptz$$`

// withClock lets a Store take its times from a clock of the test.
func withClock(t *testing.T, s *Store, clock func() time.Time) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), fakeClocks, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	config := s.pool.Config()
	config.ConnConfig.ValidateConnect = nil // what is set here is not what a Store asks for
	config.ConnConfig.RuntimeParams["search_path"] = "fake, fermata, pg_catalog"
	// What a crash would do is not asked, and waiting for the disk takes most of the time.
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off"
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		_, err := conn.Exec(ctx, `SELECT set_config('fake.now', $1, false)`, clock().Format(time.RFC3339Nano))
		return err == nil, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	s.pool.Close()
	s.pool = pool
}

// A server of its own, because other tests leave transactions open that hold up the feed.
// And not in parallel: how many checks there are is said by a flag, which the others read.
func TestStore_MatchesReference(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set("15"); err != nil { // each is a few thousand statements
		t.Fatal(err)
	}
	defer checks.Value.Set(before)
	connString := pgtest.Start(t).Database(t)
	storetest.Reference(t, func(t *testing.T, clock func() time.Time) store.Store {
		s := mustOpen(t, connString, Config{MaxConns: 2})
		s.watch.close() // they go by the same connections, and the clock is read by one goroutine only
		withClock(t, s, clock)
		return s
	})
}
