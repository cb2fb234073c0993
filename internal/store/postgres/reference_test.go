package postgres

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// Statements name the clock functions without a schema, so another schema can replace those of
// pg_catalog.
const fakeClocks = `
CREATE SCHEMA fake;
CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$SELECT current_setting('fake.now')::timestamptz$$;
CREATE FUNCTION fake.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS $$SELECT current_setting('fake.now')::timestamptz$$`

// withClock makes a Store use the clock of the test.
func withClock(t *testing.T, s *Store, clock func() time.Time) {
	t.Helper()
	if _, err := s.pool.Exec(t.Context(), fakeClocks, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	config := s.pool.Config()
	config.ConnConfig.ValidateConnect = nil // these settings differ from those of a Store
	config.ConnConfig.RuntimeParams["search_path"] = "fake, fermata, pg_catalog"
	// This test does not need durability, and syncing takes most of the time.
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

// It has its own server, because other tests leave transactions open that delay the feed. It is not
// parallel, because the number of checks is a flag that the others read.
func TestStore_MatchesReference(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	before := checks.Value.String()
	if err := checks.Value.Set("15"); err != nil { // each check runs a few thousand statements
		t.Fatal(err)
	}
	defer checks.Value.Set(before)
	connString := pgtest.Start(t).Database(t)
	storetest.Reference(t, func(t *testing.T, clock func() time.Time) store.Store {
		s := mustOpen(t, connString, Config{MaxConns: 2})
		s.watch.close() // it uses the same connections, and the clock is read by one goroutine only
		withClock(t, s, clock)
		return s
	})
}
