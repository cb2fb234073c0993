package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/store"
)

var _ store.Store = (*Store)(nil)

// Store stores runs, events and checkpoints in a PostgreSQL database. Use Open to create one. All
// methods are safe for concurrent use.
type Store struct {
	name        string // database and schema, for errors
	pool        *pgxpool.Pool
	callTimeout time.Duration // for a whole call
	watch       *watchers
	closed      atomic.Bool
}

// Open connects to a database and migrates Fermata's schema.
//
// The connection string is a URL, postgres://user:password@host:port/database?sslmode=verify-full,
// or keyword=value pairs. Missing values are taken from the environment (PGHOST, PGPASSWORD, …) and
// ~/.pgpass, like in PostgreSQL's own programs.
//
// Open waits as long as ctx allows for another replica that is migrating the schema. The Store does
// not depend on ctx.
func Open(ctx context.Context, connString string, config Config) (*Store, error) {
	steps, err := migrations()
	if err != nil {
		return nil, wrap("open", "database", err)
	}
	s, err := open(ctx, connString, config, steps)
	if err != nil {
		return nil, err
	}
	if err := s.advanceFeedIfRestored(ctx, config.withDefaults().Schema); err != nil {
		return nil, errors.Join(wrap("open", s.name, withContext(ctx, err)), s.Close())
	}
	return s, nil
}

func open(ctx context.Context, connString string, config Config, steps []migration.Step) (*Store, error) {
	config = config.withDefaults()
	if err := config.check(); err != nil {
		return nil, wrap("open", "database", err)
	}
	poolConfig, err := poolConfig(connString, config)
	if err != nil {
		return nil, wrap("open", "database", err)
	}
	pool, err := pgxpool.NewWithConfig(ctx, poolConfig)
	if err != nil {
		return nil, wrap("open", "database", err)
	}
	s := &Store{
		// Like in PostgreSQL, the default database has the name of the user.
		name:        cmp.Or(poolConfig.ConnConfig.Database, poolConfig.ConnConfig.User) + "." + config.Schema,
		pool:        pool,
		callTimeout: 2 * config.Timeout,
		watch:       newWatchers(config.Schema, rand.Text()),
	}
	if err := migrate(ctx, pool, config, steps); err != nil {
		pool.Close()
		return nil, wrap("open", s.name, withContext(ctx, err))
	}
	return s, nil
}

// Close waits for running calls and closes the connections. If the server does not respond, this
// may take 15 seconds. Later calls return [ErrClosed]; a second Close does nothing.
func (s *Store) Close() error {
	s.closed.Store(true)
	s.watch.close()
	s.pool.Close()
	return nil
}

// call runs one call of the port. statement_timeout limits the work of the server, but only the
// client can limit the wait for a lost response.
func (s *Store) call(ctx context.Context, op string, work func(context.Context) error) error {
	bounded, cancel := context.WithTimeoutCause(ctx, s.callTimeout, ErrTimeout)
	defer cancel()
	if err := work(bounded); err != nil {
		return s.fail(bounded, op, err)
	}
	return nil
}

// notReplicatedWarning marks a connection whose last commit did not wait for the standby.
const notReplicatedWarning = "fermata: unreplicated"

// write runs a statement that changes something. With a synchronous standby a commit waits for it.
// If that wait is cancelled, the server reports success with a notice, but a failover would lose
// the change.
func (s *Store) write(ctx context.Context, work func(*pgxpool.Conn) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	marks := conn.Conn().PgConn().CustomData()
	delete(marks, notReplicatedWarning)
	if err := work(conn); err != nil {
		return err
	}
	if marks[notReplicatedWarning] != nil {
		return fmt.Errorf("%w: applied, but the wait for the standby was cancelled", ErrUnavailable)
	}
	return nil
}

// portErrors are the errors of the port, which are returned unchanged.
var portErrors = []error{
	store.ErrNotFound, store.ErrStale, store.ErrInvalid, store.ErrExists, store.ErrFenced, store.ErrResumeIDReused, store.ErrNotApproved, store.ErrRunActive,
}

// fail converts an error to the error of the port or of this package.
func (s *Store) fail(ctx context.Context, op string, err error) error {
	for _, known := range portErrors {
		if errors.Is(err, known) {
			return known
		}
	}
	if sqlState(err) == staleState {
		return store.ErrStale
	}
	if s.closed.Load() {
		return wrap(op, s.name, fmt.Errorf("%w: %v", ErrClosed, err))
	}
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); !connecting && ctx.Err() == nil && classify(err) == ErrUnavailable {
		// The other connections have most likely lost the same server. A caller that retries should
		// not have to find that out one connection at a time.
		s.pool.Reset()
	}
	return wrap(op, s.name, withContext(ctx, err))
}
