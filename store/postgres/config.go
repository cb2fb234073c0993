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

// Config says how a Store uses its database. The zero value is good for most. It holds no secret.
type Config struct {
	// Schema is the name of the schema that holds Fermata's tables, and nothing else. Default: fermata.
	Schema string

	// MaxConns limits the connections of this Store. Default: pool_max_conns of the connection string, or else 10. Watch has one more, and
	// Vacuum one more while it works.
	MaxConns int

	// Timeout is how long the server may work on one call. A call ends soon after twice that time at the latest, the wait for a free
	// connection and for an answer that never comes included. Default: 30 seconds.
	Timeout time.Duration

	// LockTimeout is how long a call waits for the lock of another transaction. Default: 2 seconds.
	LockTimeout time.Duration
}

const (
	defaultSchema      = "fermata"
	defaultMaxConns    = 10
	defaultTimeout     = 30 * time.Second
	defaultLockTimeout = 2 * time.Second

	maxTimeout = 24 * time.Hour

	// connectTimeout is for a host that does not even refuse.
	connectTimeout = 5 * time.Second

	// idleTimeout is how long a transaction may hold its locks while its client, stopped or cut off, says nothing.
	idleTimeout = 10 * time.Second

	// cancelWait is how long a call whose context has ended waits for the server to say what became of it.
	cancelWait = 2 * time.Second
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
		return fmt.Errorf("%w: the schema's name is longer than 63 bytes, and PostgreSQL would cut it off", ErrConfig)
	case strings.ContainsRune(c.Schema, 0) || !utf8.ValidString(c.Schema):
		return fmt.Errorf("%w: the schema's name is no text that PostgreSQL takes", ErrConfig)
	case strings.HasPrefix(c.Schema, "pg_") || c.Schema == "$user":
		return fmt.Errorf("%w: the schema's name %s means something else to PostgreSQL", ErrConfig, c.Schema)
	case c.MaxConns < 0 || c.MaxConns > 1<<15:
		return fmt.Errorf("%w: %d connections", ErrConfig, c.MaxConns)
	case c.Timeout < time.Millisecond || c.LockTimeout < time.Millisecond || max(c.Timeout, c.LockTimeout) > maxTimeout:
		return fmt.Errorf("%w: timeouts are between a millisecond and %s", ErrConfig, maxTimeout)
	}
	return nil
}

// poolConfig joins the connection string and the configuration, which must be complete.
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
		// Of several hosts the one that takes writes; after a failover it may be another one.
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	// The driver would cut the connection, and nobody would know what became of the statement.
	conn.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelWait}
	}
	conn.OnNotice = func(c *pgconn.PgConn, notice *pgconn.Notice) {
		if notice.Routine == "SyncRepWaitForLSN" { // the text may be in any language
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

// requiredSettings are settings without which a store would not do what it says: it would write to other tables, lose what it has acknowledged, misjudge what it waited
// for, or wait for ever. Without the others it is slow.
var requiredSettings = []string{
	"search_path", "synchronous_commit", "default_transaction_isolation", "standard_conforming_strings", "client_encoding",
	"lock_timeout", "idle_in_transaction_session_timeout",
}

// plainValue is a name that means the same without quotes, as ALTER ROLE leaves it.
var plainValue = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)

// checkSettings refuses a connection on which not all that is vital is as it was asked for. A server heeds what it is sent; but a pooler may be told to ignore it.
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
			return fmt.Errorf("%w: what was to be set on the connection is not (%s); a pooler has to be in session mode and pass startup parameters on, "+
				"or else the user needs these settings, by ALTER ROLE", ErrConfig, strings.Join(ignored, ", "))
		}
		return nil
	}
}

// setRuntimeParams adds what the server has to set for each connection. What is sent at the start counts more than what an
// administrator has set for the user or the database, and a pooler that could mix connections up refuses it.
func setRuntimeParams(params map[string]string, config Config) error {
	if params["application_name"] == "" {
		params["application_name"] = "fermata"
	}
	// A change is on disk when it is acknowledged.
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
		// Who finds the version changed after a wait must see that, and not a serialization failure.
		"default_transaction_isolation": "read committed",
		// As the texts are that the driver sends.
		"client_encoding": "UTF8",
		// A backslash is one, as in the bytes that the schema's triggers know.
		"standard_conforming_strings": "on",
		// Every statement finds its rows by keys, and has one good plan for all arguments and all sizes of the tables. The
		// server, which may still take a table for empty when it makes the plan, need not think about it.
		"plan_cache_mode":  "force_generic_plan",
		"enable_seqscan":   "off",
		"enable_hashjoin":  "off",
		"enable_mergejoin": "off",
		"jit":              "off",
		// And reads no more than the first rows that are wanted, in the order of an index: not all of them, to sort them.
		"enable_sort":       "off",
		"enable_bitmapscan": "off",
		// To start a second process takes longer than to read a page.
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

// parse reads a connection string. Its errors tell nothing of what is in it: in a malformed one any piece may belong to the
// password.
func parse(connString string) (*pgxpool.Config, error) {
	const advice = "the connection string is not shown, since it may hold a password; want postgres://user@host:port/database " +
		"with special characters of the password percent-encoded, or keyword=value pairs"
	pool, err := pgxpool.ParseConfig(connString)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("%w: a file that the connection string names: %w (%s)", ErrConfig, pathErr.Err, advice)
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

// hasMisreadPassword says whether a piece of the password has become something that the server or the resolver would quote: a
// password with an @ or a / that is not encoded ends up in the name of the host or of the database.
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
