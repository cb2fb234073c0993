// Package postgres opens a store in PostgreSQL. Several replicas may share the database.
// Acknowledged data survives a crash of the process, of the machine and of the server.
//
//	st, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
//	if err != nil {
//		return err
//	}
//	defer st.Close()
//
// Fermata's tables are in their own schema. Open creates and migrates it under a lock, so replicas
// may start concurrently. The user needs the privilege to create a schema in the database, or must
// own an existing one. If nothing has to be migrated, privileges on the tables are sufficient.
//
// A pooler between Fermata and PostgreSQL must give each client its own connection (session mode)
// and forward startup parameters. The connection string controls encryption: between machines use
// sslmode=verify-full. The package requires PostgreSQL 13 or newer. A standby that takes over
// without losing acknowledged data must be synchronous (synchronous_standby_names).
package postgres

import (
	"context"
	"time"

	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/store"
)

// Config configures a store. The zero value is suitable for most uses. It contains no secret.
type Config struct {
	// Schema is the name of the schema for Fermata's tables, which must hold nothing else. Defaults
	// to fermata.
	Schema string
	// MaxConns limits the connections of this store. Defaults to pool_max_conns of the connection
	// string, or else 10. Watching for changes uses one more, and a vacuum one more while it runs.
	MaxConns int
	// Timeout is how long the server may work on one call. A call ends soon after twice that time
	// at the latest. Defaults to 30 seconds.
	Timeout time.Duration
	// LockTimeout is how long a call waits for the lock of another transaction. Defaults to 10
	// seconds.
	LockTimeout time.Duration
}

// Errors of a store. They are wrapped with the operation; test for them with errors.Is.
var (
	// ErrConfig is returned by Open for an invalid connection string or configuration. It does not
	// contain the connection string.
	ErrConfig = postgres.ErrConfig

	// ErrUnavailable is returned if the server cannot be reached. A retry is safe.
	ErrUnavailable = postgres.ErrUnavailable

	// ErrDenied is returned if the server rejects the user, or the user lacks a privilege.
	ErrDenied = postgres.ErrDenied

	// ErrForeign is returned for a schema with tables of another program. It was not changed.
	ErrForeign = postgres.ErrForeign

	// ErrNewer is returned if a newer build of Fermata has changed the schema. Use that build, or
	// restore a backup from before the upgrade.
	ErrNewer = postgres.ErrNewer
)

// Open connects to a database and migrates Fermata's schema.
//
// The connection string is a URL, postgres://user:password@host:port/database?sslmode=verify-full,
// or keyword=value pairs. Missing values are taken from the environment (PGHOST, PGPASSWORD, …) and
// ~/.pgpass, like in PostgreSQL's own programs.
//
// Open waits as long as ctx allows for another replica that is migrating the schema. The store does
// not depend on ctx.
func Open(ctx context.Context, connString string, config Config) (*store.Store, error) {
	s, err := postgres.Open(ctx, connString, postgres.Config(config))
	if err != nil {
		return nil, err
	}
	return store.New(s, s.Close), nil
}
