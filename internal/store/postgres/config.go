package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config configures a Store. The zero value is suitable for most uses. It contains no secret.
type Config struct {
	// Schema is the name of the schema for Fermata's tables, which must hold nothing else. Defaults
	// to fermata.
	Schema string

	// MaxConns limits the connections of this Store. Defaults to pool_max_conns of the connection
	// string, or else 10. Watch uses one more, and Vacuum one more while it runs.
	MaxConns int

	// Timeout is how long the server may work on one call. A call ends soon after twice that time
	// at the latest, including the wait for a free connection and for a lost reply. Defaults to 30
	// seconds.
	Timeout time.Duration

	// LockTimeout is how long a call waits for the lock of another transaction. Defaults to 10
	// seconds.
	LockTimeout time.Duration
}

const (
	defaultSchema      = "fermata"
	defaultMaxConns    = 10
	defaultTimeout     = 30 * time.Second
	defaultLockTimeout = 10 * time.Second

	maxTimeout = 24 * time.Hour

	// connectTimeout applies to a host that does not respond at all.
	connectTimeout = 5 * time.Second

	// idleTimeout is how long a transaction may hold its locks while its client is silent, stopped
	// or disconnected.
	idleTimeout = 10 * time.Second

	// cancelTimeout is how long a call whose context has ended waits for the result from the
	// server.
	cancelTimeout = 2 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = defaultSchema
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.LockTimeout == 0 {
		c.LockTimeout = defaultLockTimeout
	}
	return c
}

func (c Config) check() error {
	switch {
	case len(c.Schema) > 63:
		return fmt.Errorf("%w: schema name is longer than 63 bytes, which PostgreSQL would truncate", ErrConfig)
	case strings.ContainsRune(c.Schema, 0) || !utf8.ValidString(c.Schema):
		return fmt.Errorf("%w: schema name is not valid text for PostgreSQL", ErrConfig)
	case strings.HasPrefix(c.Schema, "pg_") || c.Schema == "$user":
		return fmt.Errorf("%w: schema name %s is reserved by PostgreSQL", ErrConfig, c.Schema)
	case c.MaxConns < 0 || c.MaxConns > 1<<15:
		return fmt.Errorf("%w: %d connections", ErrConfig, c.MaxConns)
	case c.Timeout < time.Millisecond || c.LockTimeout < time.Millisecond || max(c.Timeout, c.LockTimeout) > maxTimeout:
		return fmt.Errorf("%w: timeouts must be between one millisecond and %s", ErrConfig, maxTimeout)
	}
	return nil
}

// poolConfig combines the connection string and the configuration, which must be complete.
func poolConfig(connString string, config Config) (*pgxpool.Config, error) {
	pool, err := parse(connString)
	if err != nil {
		return nil, err
	}
	conn := pool.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	if conn.ValidateConnect == nil {
		// Of several hosts, the one that accepts writes is used; after a failover it may be another
		// one.
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// By default the driver would close the connection, and the outcome of the statement would be
	// unknown.
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelTimeout}
	}
	conn.OnNotice = func(c *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Routine == "SyncRepWaitForLSN" { // the message may be in any language
			c.CustomData()[notReplicatedWarning] = true
		}
	}
	if config.MaxConns > 0 {
		pool.MaxConns = int32(config.MaxConns)
	}
	if pool.MaxConnLifetimeJitter == 0 {
		pool.MaxConnLifetimeJitter = pool.MaxConnLifetime / 10
	}
	if pool.PingTimeout == 0 {
		pool.PingTimeout = connectTimeout
	}
	if err := setRuntimeParams(conn.RuntimeParams, config); err != nil {
		return nil, err
	}
	conn.ValidateConnect = checkSettings(conn.ValidateConnect, maps.Clone(conn.RuntimeParams))
	return pool, nil
}

// requiredSettings are settings without which the store would be incorrect: it would use other
// tables, lose acknowledged writes, read inconsistent data, or wait forever. Without the other
// settings it is only slow.
var requiredSettings = []string{
	"search_path", "synchronous_commit", "default_transaction_isolation", "standard_conforming_strings", "client_encoding",
	"lock_timeout", "idle_in_transaction_session_timeout",
}

// plainValue matches a name that needs no quotes, as ALTER ROLE stores it.
var plainValue = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// checkSettings rejects a connection without the required settings. A server applies what it is
// sent, but a pooler may be configured to ignore it.
func checkSettings(validate pgconn.ValidateConnectFunc, sent map[string]string) pgconn.ValidateConnectFunc {
	query := `SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN ('` + strings.Join(requiredSettings, "', '") + `')`
	return func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := validate(ctx, conn); err != nil {
			return err
		}
		found := conn.ExecParams(ctx, query, nil, nil, nil, nil).Read()
		if found.Err != nil {
			return found.Err
		}
		counts := make(map[string]string)
		for _, row := range found.Rows {
			counts[string(row[0])] = string(row[1])
		}
		var ignored []string
		for _, name := range requiredSettings {
			//mutate:postgres-pooler-checked
			if counts[name] != sent[name] && (!plainValue.MatchString(counts[name]) || pgx.Identifier{counts[name]}.Sanitize() != sent[name]) {
				ignored = append(ignored, name+" = "+sent[name])
			}
		}
		if len(ignored) > 0 {
			return fmt.Errorf("%w: required connection settings were not applied (%s); a pooler must use session mode and forward startup parameters, "+
				"or set them for the user with ALTER ROLE", ErrConfig, strings.Join(ignored, ", "))
		}
		return nil
	}
}

// setRuntimeParams adds the settings for each connection. Startup parameters override the settings
// of the user and the database, and poolers in transaction mode reject them.
func setRuntimeParams(params map[string]string, config Config) error {
	if params["application_name"] == "" {
		params["application_name"] = "fermata"
	}
	// An acknowledged change must be on disk.
	switch params["synchronous_commit"] {
	case "":
		params["synchronous_commit"] = "on" //mutate:postgres-synchronous-commit
	case "on", "remote_apply":
	default:
		return fmt.Errorf("%w: with this synchronous_commit an acknowledged save could be lost", ErrConfig)
	}
	for name, value := range map[string]string{
		// Statements name their tables without a schema.
		"search_path": pgx.Identifier{config.Schema}.Sanitize(),
		// A statement that finds a changed version after a wait must see it, not a serialization
		// failure.
		"default_transaction_isolation": "read committed",
		// The encoding that the driver sends.
		"client_encoding": "UTF8",
		// A backslash is literal, as in the triggers of the schema.
		"standard_conforming_strings": "on",
		// Every statement finds its rows by key, and has one good plan for all arguments and table
		// sizes. The server, whose statistics may still show an empty table, need not choose one.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"jit":              "off",
		// Statements read only the first rows in index order, and never sort all rows.
		"enable_sort":       "off",
		"enable_bitmapscan": "off",
		// Starting a parallel worker takes longer than reading a page.
		"max_parallel_workers_per_gather": "0",

		"statement_timeout":                   milliseconds(config.Timeout),
		"lock_timeout":                        milliseconds(config.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(idleTimeout),
	} {
		params[name] = value
	}
	return nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// parse parses a connection string. Its errors do not contain it: in a malformed one any piece may
// belong to the password.
func parse(connString string) (*pgxpool.Config, error) {
	const advice = "the connection string is not shown, because it may contain a password; expected postgres://user@host:port/database " +
		"with special characters of the password percent-encoded, or keyword=value pairs"
	pool, err := pgxpool.ParseConfig(connString)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%w: file named in the connection string: %w (%s)", ErrConfig, pathErr.Err, advice)
	}
	if err != nil || hasMisreadPassword(connString, pool) {
		return nil, fmt.Errorf("%w: %s", ErrConfig, advice) //mutate:postgres-dsn-hidden
	}
	plain, err := pgx.ParseConfig(connString)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrConfig, advice)
	}
	if _, said := plain.RuntimeParams["pool_max_conns"]; !said {
		pool.MaxConns = defaultMaxConns
	}
	return pool, nil
}

// hasMisreadPassword reports whether a piece of the password was parsed as the host or the
// database, which errors would quote. This happens if the password contains an unencoded @ or /.
func hasMisreadPassword(connString string, pool *pgxpool.Config) bool {
	if scheme, rest, ok := strings.Cut(connString, "://"); ok && (scheme == "postgres" || scheme == "postgresql") {
		if i := strings.IndexAny(rest, "@/"); i >= 0 && rest[i] == '@' {
			rest = rest[i+1:]
		}
		if strings.Contains(rest, "@") {
			return true
		}
	}
	conn := pool.ConnConfig
	return strings.Contains(conn.Database, "@") || strings.Contains(conn.Host, "@") ||
		slices.ContainsFunc(conn.Fallbacks, func(f *pgconn.FallbackConfig) bool { return strings.Contains(f.Host, "@") })
}
