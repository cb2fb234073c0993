package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// database is a kind of database: a disk for SQLite files, or a PostgreSQL server.
type database interface {
	name() string
	version(ctx context.Context) (string, error)
	// create returns the path or the connection string of a new, empty database.
	create() (place string, err error)
	// open opens our store there.
	open(ctx context.Context, place string) (closableStore, error)
	// expire sets the deadlines of the requests of the tenants in parked_sweep.go to now, and
	// returns their number.
	expire(ctx context.Context, place string) (int, error)
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

// newDatabase starts a database by its name, and notes its version.
func newDatabase(ctx context.Context, name string, r *recorder) (db database, err error) {
	if name == onPostgres {
		s, err := startServer(ctx)
		if err != nil {
			return nil, err
		}
		db = postgresDatabase{s}
	} else {
		dir, err := os.MkdirTemp("", "fermata-bench-")
		if err != nil {
			return nil, err
		}
		db = &sqliteDatabase{dir: dir}
	}
	version, err := db.version(ctx)
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	r.version(version)
	return db, nil
}

// openDatabase opens a new, empty database by its name. Its caller closes the store and then
// removes the database.
func openDatabase(ctx context.Context, name string, r *recorder) (st closableStore, remove func() error, err error) {
	db, err := newDatabase(ctx, name, r)
	if err != nil {
		return nil, nil, err
	}
	place, err := db.create()
	if err == nil {
		st, err = db.open(ctx, place)
	}
	if err != nil {
		return nil, nil, errors.Join(err, db.close())
	}
	return st, db.close, nil
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

// openSQLite opens a file with the driver of store/sqlite.
func openSQLite(path string) (*sql.DB, error) {
	return sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_busy_timeout=5000"}).String())
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

func (g *sqliteDatabase) expire(ctx context.Context, place string) (int, error) {
	db, err := openSQLite(place)
	if err != nil {
		return 0, err
	}
	defer db.Close()
	changed, err := db.ExecContext(ctx, `
UPDATE interrupts SET deadline = CAST(strftime('%s', 'now') AS INTEGER) * 1000000
WHERE state = 'pending' AND CAST(account AS TEXT) LIKE ?`, tenantPrefix+"%")
	if err != nil {
		return 0, err
	}
	rows, err := changed.RowsAffected()
	return int(rows), err
}

// poolSize is the number of connections of each side.
const poolSize = 10

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

func (g postgresDatabase) expire(ctx context.Context, place string) (int, error) {
	conn, err := g.superuser(ctx, place)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	changed, err := conn.Exec(ctx, `
UPDATE fermata.interrupts SET deadline = now() WHERE state = 'pending' AND convert_from(account, 'UTF8') LIKE $1`, tenantPrefix+"%")
	return int(changed.RowsAffected()), err
}
