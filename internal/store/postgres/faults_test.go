package postgres

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
)

// raw connects like another program.
func raw(t *testing.T, connString string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), connString)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// acquire takes n connections from the pool.
func acquire(t *testing.T, s *Store, n int) (conns []*pgxpool.Conn) {
	t.Helper()
	for range n {
		conn, err := s.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	return conns
}

func mustExec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

// shortTimeouts is long enough for a slow machine and short enough for a test.
const shortTimeouts = 300 * time.Millisecond

// lockRun lets another transaction hold the row of the demo run until the returned function is
// called.
func lockRun(t *testing.T, connString string) (release func()) {
	t.Helper()
	conn := raw(t, connString)
	mustExec(t, conn, `BEGIN`, `SELECT 1 FROM fermata.checkpoints FOR UPDATE`)
	return func() { mustExec(t, conn, `ROLLBACK`) }
}

func TestSave_HeldLockReturnsErrLocked(t *testing.T) {
	connString := pgtest.New(t)
	s, hurried := mustOpen(t, connString, Config{}), openHurried(t, connString, Config{LockTimeout: 10 * time.Millisecond})
	mustSave(t, s, 0, "kept")
	release := lockRun(t, connString)
	if _, err := hurried.Save(t.Context(), demo, 1, putRun("y")); !errors.Is(err, ErrLocked) {
		t.Errorf("Save: %v; want ErrLocked", err)
	}
	if err := hurried.Delete(t.Context(), demo); !errors.Is(err, ErrLocked) {
		t.Errorf("Delete: %v; want ErrLocked", err)
	}
	wantRun(t, s, 1, "kept") // readers do not wait
	release()
	mustSave(t, s, 1, "unlocked")
}

func TestSave_TimeoutReturnsErrTimeout(t *testing.T) {
	connString := pgtest.New(t)
	s, hurried := mustOpen(t, connString, Config{}), openHurried(t, connString, Config{Timeout: shortTimeouts})
	mustSave(t, s, 0, "kept")
	release := lockRun(t, connString)
	_, err := hurried.Save(t.Context(), demo, 1, putRun("y"))
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("Save: %v; want ErrTimeout, from the server", err)
	}
	release()
	wantRun(t, s, 1, "kept")
	mustSave(t, s, 1, "no longer locked")
}

// A save that waits for a lock ends with its context and has certainly changed nothing, because the
// server confirmed the cancellation.
func TestSave_CancelledDuringLockWaitChangesNothing(t *testing.T) {
	connString := pgtest.New(t)
	config := longTimeouts
	config.MaxConns = 1
	s := mustOpen(t, connString, config)
	mustSave(t, s, 0, "kept")
	release := lockRun(t, connString)
	ctx, cancel := context.WithCancel(t.Context())
	saved := make(chan error)
	go func() {
		_, err := s.Save(ctx, demo, 1, putRun("y"))
		saved <- err
	}()
	waitFor(t, raw(t, connString), waitingQuery)
	cancel()
	if err := <-saved; !errors.Is(err, context.Canceled) || errors.Is(err, ErrTimeout) {
		t.Errorf("Save: %v; want only context.Canceled", err)
	}
	connections := s.pool.Stat().NewConnsCount()
	release()
	mustSave(t, s, 1, "free again")
	if now := s.pool.Stat().NewConnsCount(); now != connections {
		t.Errorf("%d new connections after the cancel; want none, because the old one is still valid", now-connections)
	}
}

// waitingQuery reports whether a transaction of this database waits for another one.
const waitingQuery = `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database())`

// waitFor queries the server until the result is true.
func waitFor(t *testing.T, conn *pgx.Conn, question string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for yes := false; !yes; {
		if err := conn.QueryRow(ctx, question).Scan(&yes); err != nil {
			t.Fatal(err)
		}
	}
}

// The server's messages of a save are the row, the end of the statement, and ready for query: only
// then has it committed. A client that takes the end of the statement for success acknowledges an
// uncommitted save.
func TestSave_ConnectionLostBeforeCommitReplyReturnsError(t *testing.T) {
	direct := pgtest.New(t)
	for name, message := range map[string]byte{"before the row": 'D', "before the end of the statement": 'C', "before ready": 'Z'} {
		t.Run(name, func(t *testing.T) {
			network, connString := newProxy(t, direct)
			s := mustOpen(t, connString, Config{Schema: name, MaxConns: 1})
			mustSave(t, s, 0, "created")
			mustSave(t, s, 1, "kept") // the statement is prepared now and has one reply
			network.cut(message)
			version, err := s.Save(t.Context(), demo, 2, putRun("unknown"))
			if !errors.Is(err, ErrUnavailable) || version != 0 {
				t.Fatalf("Save = %d, %v; want ErrUnavailable", version, err)
			}
			// The server has all that it needs and commits, but this is certain only after it is
			// ready.
			for checkpoint := (store.Checkpoint{Version: 2}); checkpoint.Version == 2 && message != 'Z'; {
				if checkpoint, err = s.Load(t.Context(), demo); err != nil {
					t.Fatal(err)
				}
			}
			wantRun(t, s, 3, "unknown")
			if _, err := s.Save(t.Context(), demo, 2, putRun("twice")); !errors.Is(err, store.ErrStale) {
				t.Errorf("Save again: %v; want ErrStale", err)
			}
			mustSave(t, s, 3, "goes on")
		})
	}
}

// After a restart of the server or the network all connections are dead. The first call fails; the
// Load that follows must not fail on the next dead connection.
func TestLoad_RecoversAfterConnectionReset(t *testing.T) {
	network, connString := newProxy(t, pgtest.New(t))
	s := mustOpen(t, connString, Config{MaxConns: 4})
	mustSave(t, s, 0, "kept")
	for _, conn := range acquire(t, s, 4) {
		conn.Release()
	}
	network.Reset()
	if _, err := s.Save(t.Context(), demo, 1, putRun("lost")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("Save: %v; want ErrUnavailable", err)
	}
	wantRun(t, s, 1, "kept")
}

// A network that drops everything gives no error, and the server notices nothing.
func TestSave_SilentNetworkTimesOut(t *testing.T) {
	t.Parallel() // it only waits
	network, connString := newProxy(t, pgtest.New(t))
	s := openHurried(t, connString, Config{Timeout: shortTimeouts})
	network.Freeze()
	_, err := s.Save(t.Context(), demo, 0, putRun("lost"))
	if !errors.Is(err, ErrTimeout) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Save: %v; want ErrTimeout and no context error", err)
	}
	network.Unfreeze()
	// On a slow machine even a new connection may take longer than the timeout of this test.
	_, err = s.Load(t.Context(), demo)
	for errors.Is(err, ErrTimeout) {
		_, err = s.Load(t.Context(), demo)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the store does not recover: %v", err)
	}
}

func TestOpen_UnreachableServerReturnsErrUnavailable(t *testing.T) {
	_, err := Open(t.Context(), "postgres://user:secret@127.0.0.1:1/app?sslmode=disable", Config{})
	if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "open app.fermata") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("Open: %v; want ErrUnavailable with database, schema and address", err)
	}
}

func TestOpen_WrongCredentials(t *testing.T) {
	connString := pgtest.New(t)
	u, err := url.Parse(connString)
	if err != nil {
		t.Fatal(err)
	}
	for name, user := range map[string]*url.Userinfo{
		"password": url.UserPassword(u.User.Username(), "wrong"),
		"user":     url.UserPassword("mallory", "wrong"),
	} {
		u.User = user
		s, err := Open(t.Context(), u.String(), Config{})
		if !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), user.Username()) {
			t.Errorf("wrong %s: Open = %v, %v; want ErrDenied with the user's name", name, s, err)
		}
	}
}

func TestOpen_MissingDatabaseReturnsError(t *testing.T) {
	u, err := url.Parse(pgtest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/nowhere"
	if _, err := Open(t.Context(), u.String(), Config{}); err == nil || !strings.Contains(err.Error(), `database "nowhere" does not exist`) {
		t.Errorf("Open: %v", err)
	}
}

// restrictedUser adds a user without privileges to a database and returns its connection string.
func restrictedUser(t *testing.T, connString string) string {
	t.Helper()
	u, err := url.Parse(connString)
	if err != nil {
		t.Fatal(err)
	}
	name := "clerk_of_" + u.User.Username()
	mustExec(t, raw(t, pgtest.Superuser(t, connString)), `CREATE ROLE `+name+` LOGIN PASSWORD 'pen'`)
	u.User = url.UserPassword(name, "pen")
	return u.String()
}

func TestOpen_MissingPrivilegesReturnErrDenied(t *testing.T) {
	connString := pgtest.New(t)
	restricted := restrictedUser(t, connString)
	denied := func(when string) {
		t.Helper()
		if s, err := Open(t.Context(), restricted, Config{}); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: Open = %v, %v; want ErrDenied", when, s, err)
		}
	}
	denied("no schema and no privilege to create one")
	mustSave(t, mustOpen(t, connString, Config{}), 0, "kept")
	denied("schema of another user")
	owner, role := raw(t, connString), raw(t, restricted).Config().User
	mustExec(t, owner, `GRANT USAGE ON SCHEMA fermata TO `+role, `GRANT SELECT ON ALL TABLES IN SCHEMA fermata TO `+role)
	s := mustOpen(t, restricted, Config{})
	wantRun(t, s, 1, "kept")
	if _, err := s.Save(t.Context(), demo, 1, putRun("y")); !errors.Is(err, ErrDenied) {
		t.Errorf("Save with read privileges: %v; want ErrDenied", err)
	}
	mustExec(t, owner, `GRANT INSERT, UPDATE, DELETE ON fermata.checkpoints, fermata.checkpoint_parts TO `+role)
	mustSave(t, s, 1, "written") // writing rows needs no privilege to change tables
	if err := s.Delete(t.Context(), demo); err != nil {
		t.Error(err)
	}
}

// An administrator may create the schema for a user who must not create schemas.
func TestOpen_SchemaCreatedByAdministrator(t *testing.T) {
	connString := pgtest.New(t)
	restricted := restrictedUser(t, connString)
	mustExec(t, raw(t, pgtest.Superuser(t, connString)), `CREATE SCHEMA fermata AUTHORIZATION `+raw(t, restricted).Config().User)
	mustSave(t, mustOpen(t, restricted, Config{}), 0, "here")
}

func TestOpen_ReadOnlyServerIsRefused(t *testing.T) {
	connString := pgtest.New(t)
	mustOpen(t, connString, Config{})
	database := raw(t, connString).Config().Database
	mustExec(t, raw(t, pgtest.Superuser(t, connString)), `ALTER DATABASE `+database+` SET default_transaction_read_only = on`)
	if _, err := Open(t.Context(), connString, Config{}); !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "read only") {
		t.Errorf("Open: %v; want ErrUnavailable", err)
	}
}

func TestErrors_DoNotContainTheKey(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, Config{})
	mustExec(t, raw(t, connString), `ALTER TABLE fermata.checkpoint_parts ADD CHECK (octet_length(data) < 3)`)
	_, err := s.Save(t.Context(), store.Key{Account: "secret-account", Run: "secret-run"}, 0, putRun("secret-data"))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("Save: %v", err)
	}
}

func TestErrors_MapServerCodes(t *testing.T) {
	for state, want := range map[string]error{
		"28000": ErrDenied, "28P01": ErrDenied, "42501": ErrDenied,
		"55P03": ErrLocked,
		"40P01": ErrLocked,
		"57014": ErrTimeout,
		"53100": ErrFull,
		"58030": ErrDisk,
		"54000": ErrTooLarge,
		"08006": ErrUnavailable, "25006": ErrUnavailable, "25P03": ErrUnavailable, "53300": ErrUnavailable,
		"57P01": ErrUnavailable, "57P02": ErrUnavailable, "57P03": ErrUnavailable,
		"23505": nil, "40001": nil,
	} {
		reported := &pgconn.PgError{Severity: "ERROR", Code: state, Message: "what the server says"}
		if got := classify(fmt.Errorf("wrapped: %w", reported)); got != want {
			t.Errorf("%s is classified as %v; want %v", state, got, want)
		}
		err := wrap("save to", "app.fermata", reported)
		if !errors.Is(err, reported) || !strings.HasPrefix(err.Error(), "postgres: save to app.fermata: ") {
			t.Errorf("wrap: %v", err)
		}
	}
}
