package main

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

// database is a kind of database: a disk for SQLite files, or a PostgreSQL server.
type database interface {
	name() string
	version(ctx context.Context) (string, error)
	// create returns the path or the connection string of a new, empty database.
	create() (place string, err error)
	// open opens our store there.
	open(ctx context.Context, place string) (closableStore, error)
	// rawBackend runs raw SQL there, on the tables of our store.
	rawBackend(ctx context.Context, place string, s *script) (rawBackend, error)
	// fill copies a waiting run until there are this many.
	fill(ctx context.Context, place string, t *rowTemplate, runs int) error
	// expire sets the deadline of the copies to the past, up to a given interrupt, and returns
	// their number.
	expire(ctx context.Context, place, last string) (int, error)
	// size returns the bytes of a database, after the space of deleted and rewritten data was
	// reclaimed.
	size(ctx context.Context, place string) (int64, error)
	// cpuTime returns the CPU time of the server so far; a file has none.
	cpuTime() (time.Duration, error)
	close() error
}

// closableStore is a store that can be closed.
type closableStore interface {
	store.Store
	Close() error
}

const (
	onSQLite   = "sqlite"
	onPostgres = "postgres"
)

// newDatabase finds a database by its name.
func newDatabase(ctx context.Context, name string) (database, error) {
	if name == onPostgres {
		s, err := startServer(ctx)
		if err != nil {
			return nil, err
		}
		return postgresDatabase{s}, nil
	}
	dir, err := os.MkdirTemp("", "fermata-bench-")
	if err != nil {
		return nil, err
	}
	return &sqliteDatabase{dir: dir}, nil
}

// openDatabase opens a new, empty database by its name. Its caller closes the store and then
// removes the database.
func openDatabase(ctx context.Context, name string) (st closableStore, version string, remove func() error, err error) {
	db, err := newDatabase(ctx, name)
	if err != nil {
		return nil, "", nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.close())
		}
	}()
	if version, err = db.version(ctx); err != nil {
		return nil, "", nil, err
	}
	place, err := db.create()
	if err != nil {
		return nil, "", nil, err
	}
	st, err = db.open(ctx, place)
	return st, version, db.close, err
}

// sqliteDatabase is a directory.
type sqliteDatabase struct {
	dir   string
	files int
}

func (g *sqliteDatabase) name() string                    { return onSQLite }
func (g *sqliteDatabase) cpuTime() (time.Duration, error) { return 0, nil }
func (g *sqliteDatabase) close() error                    { return os.RemoveAll(g.dir) }

func (g *sqliteDatabase) version(ctx context.Context) (text string, err error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, `SELECT 'SQLite ' || sqlite_version()`).Scan(&text)
	return text, err
}

func (g *sqliteDatabase) create() (string, error) {
	g.files++
	return filepath.Join(g.dir, "runs-"+strconv.Itoa(g.files)+".db"), nil
}

func (g *sqliteDatabase) open(_ context.Context, place string) (closableStore, error) {
	return sqlite.Open(place)
}

func (g *sqliteDatabase) rawBackend(ctx context.Context, place string, s *script) (rawBackend, error) {
	return newRawSQLite(ctx, place, s)
}

func (g *sqliteDatabase) size(ctx context.Context, place string) (int64, error) {
	db, err := openSQLite(place)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	var bytes int64
	err = db.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&bytes)
	return bytes, err
}

// postgresDatabase is a server.
type postgresDatabase struct{ *pgServer }

func (g postgresDatabase) name() string            { return onPostgres }
func (g postgresDatabase) create() (string, error) { return g.database() }

func (g postgresDatabase) version(ctx context.Context) (text string, err error) {
	place, err := g.create()
	if err != nil {
		return "", err
	}
	conn, err := pgx.Connect(ctx, place)
	if err != nil {
		return "", err
	}
	err = conn.QueryRow(ctx, `SELECT 'PostgreSQL ' || current_setting('server_version')`).Scan(&text)
	return text, errors.Join(err, conn.Close(ctx))
}

func (g postgresDatabase) open(ctx context.Context, place string) (closableStore, error) {
	return postgres.Open(ctx, place, postgres.Config{MaxConns: poolSize})
}

func (g postgresDatabase) rawBackend(ctx context.Context, place string, _ *script) (rawBackend, error) {
	return newRawPostgres(ctx, place)
}

func (g postgresDatabase) size(ctx context.Context, place string) (int64, error) {
	conn, err := g.superuser(ctx, place)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `VACUUM`); err != nil {
		return 0, err
	}
	var bytes int64
	err = conn.QueryRow(ctx, `
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`).Scan(&bytes)
	return bytes, err
}
