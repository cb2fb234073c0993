package postgres

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// errorDetails returns everything in an error: the text, and the fields of every wrapped error.
func errorDetails(err error) string {
	text := fmt.Sprintf("%v\n%+v\n%#v\n", err, err, err)
	switch wrapper := err.(type) {
	case interface{ Unwrap() error }:
		if inner := wrapper.Unwrap(); inner != nil {
			text += errorDetails(inner)
		}
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			text += errorDetails(inner)
		}
	}
	return text
}

func wantSecret(t *testing.T, err error, password string) {
	t.Helper()
	if found := errorDetails(err); strings.Contains(found, password) {
		t.Errorf("the error contains the password:\n%s", found)
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		t.Errorf("the error contains the driver's configuration with the password: %v", err)
	}
}

// In a malformed connection string any piece may belong to the password, and the driver, the
// resolver and the server quote what they do not understand.
func TestI7_OpenErrorsDoNotContainThePassword(t *testing.T) {
	server := strings.Split(strings.Split(pgtest.New(t), "@")[1], "/")[0]
	for _, connString := range []string{
		"postgres://ann:hunter2@" + server + "/app?sslmode=disable", // wrong, for the server
		"user=ann password=hunter2 host=127.0.0.1 port=1 sslmode=disable",
		"user=ann password='hunter2' sslpassword=hunter2 host=127.0.0.1 port=1",
		"postgres://ann:hunter2@nowhere.invalid/app",
		"postgres://ann:hunter2@[::1/app",
		"postgres://ann:hunter2@127.0.0.1:port/app",
		"postgres://ann:hunter2@127.0.0.1/app?sslmode=sometimes",
		"postgres://ann:hunter2@127.0.0.1/app?sslmode=verify-full&sslrootcert=/nowhere/hunter2.pem",
		"postgres://ann:hunter2@127.0.0.1/app?pool_max_conns=hunter2",
		"postgres://ann:hunter2@127.0.0.1/app?synchronous_commit=off",
		"postgres://ann:hunter2@127.0.0.1:1/app?connect_timeout=hunter2",
		"postgres://ann:%zzhunter2@127.0.0.1/app",
		"postgres://ann:hunter2",
		"postgres://ann:1/hunter2@127.0.0.1/app", // host ann, port 1, database hunter2@…
		"postgres://ann:1/2?hunter2=3@127.0.0.1/app",
		"postgres://ann:p@hunter2@127.0.0.1/app", // host hunter2@…
		"postgres://ann@hunter2@127.0.0.1/app",
		"postgres://ann:hunter2/x@127.0.0.1:1/app",
		"postgres:/ann:hunter2@127.0.0.1/app",
		"ann:hunter2@127.0.0.1/app",
		"user=ann password=p hunter2 host=127.0.0.1",
		"user=ann password='hunter2 host=127.0.0.1",
		"host=postgres://ann:hunter2@127.0.0.1/app",
		"dbname=postgres://ann:hunter2@127.0.0.1/app host=" + strings.Replace(server, ":", " port=", 1),
		"host=127.0.0.1,ann:hunter2@127.0.0.1 port=1 sslmode=disable",
		"hunter2",
		"postgres://ann:hunter2\x00@127.0.0.1/app",
	} {
		s, err := Open(t.Context(), connString, Config{})
		if err == nil {
			s.Close()
			t.Errorf("%q was opened", connString)
			continue
		}
		wantSecret(t, err, "hunter2")
		if !strings.HasPrefix(err.Error(), "postgres: open ") {
			t.Errorf("the error of %q does not name the operation: %v", connString, err)
		}
	}
}

func TestI7_LostServerErrorsDoNotContainThePassword(t *testing.T) {
	network, connString := newProxy(t, pgtest.New(t))
	password, _, _ := strings.Cut(strings.Split(connString, ":")[2], "@")
	s := mustOpen(t, connString, Config{})
	network.Refuse()
	network.Reset()
	for range 3 { // the connection is lost, and no new one can be opened
		_, err := s.Load(t.Context(), demo)
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("Load: %v; want ErrUnavailable", err)
		}
		wantSecret(t, err, password)
	}
}

func TestOpen_BadConfig(t *testing.T) {
	const nowhere = "postgres://127.0.0.1:1/app"
	for name, test := range map[string]struct {
		connString string
		config     Config
		hint       string
	}{
		"long schema":        {nowhere, Config{Schema: strings.Repeat("x", 64)}, "63 bytes"},
		"zero byte":          {nowhere, Config{Schema: "a\x00b"}, "not valid text"},
		"no UTF-8":           {nowhere, Config{Schema: "\xff"}, "not valid text"},
		"PostgreSQL's own":   {nowhere, Config{Schema: "pg_catalog"}, "pg_catalog"},
		"a variable":         {nowhere, Config{Schema: "$user"}, "$user"},
		"connections":        {nowhere, Config{MaxConns: -1}, "-1 connections"},
		"timeout":            {nowhere, Config{Timeout: -time.Second}, "millisecond"},
		"no timeout at all":  {nowhere, Config{LockTimeout: 1000 * time.Hour}, "24h"},
		"too short":          {nowhere, Config{LockTimeout: time.Microsecond}, "millisecond"},
		"connection string":  {"nonsense", Config{}, "postgres://user@host:port/database"},
		"not durable":        {nowhere + "?synchronous_commit=local", Config{}, "acknowledged save"},
		"certificate's file": {nowhere + "?sslmode=verify-full&sslrootcert=" + filepath.Join(t.TempDir(), "no.pem"), Config{}, "no such file"},
	} {
		s, err := Open(t.Context(), test.connString, test.config)
		if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.hint) {
			t.Errorf("%s: Open = %v, %v; want ErrConfig with a hint at %q", name, s, err, test.hint)
		}
	}
}

// settings reads the settings of n connections of the pool.
func settings(t *testing.T, s *Store, n int) []map[string]string {
	t.Helper()
	var all []map[string]string
	for _, conn := range acquire(t, s, n) {
		defer conn.Release()
		rows, err := conn.Query(t.Context(), `SELECT name, setting FROM pg_settings`)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for rows.Next() {
			var name, setting string
			if err := rows.Scan(&name, &setting); err != nil {
				t.Fatal(err)
			}
			found[name] = setting
		}
		if rows.Err() != nil {
			t.Fatal(rows.Err())
		}
		all = append(all, found)
	}
	return all
}

// Settings of the database may make saves volatile, or fail with another error than ErrStale.
func TestOpen_SettingsApplyToEveryConnection(t *testing.T) {
	connString := pgtest.New(t)
	admin := raw(t, pgtest.Superuser(t, connString))
	for _, setting := range []string{
		"synchronous_commit = off", "default_transaction_isolation = serializable", "search_path = public",
		"statement_timeout = 0", "lock_timeout = 0", "idle_in_transaction_session_timeout = 0",
		// the migration would fail with "invalid byte sequence"
		"standard_conforming_strings = off",
	} {
		mustExec(t, admin, `ALTER DATABASE `+admin.Config().Database+` SET `+setting)
	}
	s := mustOpen(t, connString, Config{})
	for i, found := range settings(t, s, 3) {
		for name, want := range map[string]string{
			"synchronous_commit":                  "on",
			"default_transaction_isolation":       "read committed",
			"search_path":                         `"fermata"`,
			"statement_timeout":                   "30000",
			"lock_timeout":                        "10000",
			"idle_in_transaction_session_timeout": "10000",
			"application_name":                    "fermata",
			"standard_conforming_strings":         "on",
		} {
			if found[name] != want {
				t.Errorf("connection %d: %s is %q; want %q", i, name, found[name], want)
			}
		}
	}
	if limit := s.pool.Config().MaxConns; limit != defaultMaxConns {
		t.Errorf("the pool has %d connections; want %d", limit, defaultMaxConns)
	}
}

func TestOpen_UsesConnectionStringAndConfig(t *testing.T) {
	connString := pgtest.New(t)
	said := connString + "&application_name=mine&synchronous_commit=remote_apply&pool_max_conns=3&work_mem=1234kB"
	s := mustOpen(t, said, Config{Schema: "other", Timeout: time.Minute, LockTimeout: time.Second})
	found := settings(t, s, 1)[0]
	for name, want := range map[string]string{
		"application_name":   "mine",
		"synchronous_commit": "remote_apply",
		"work_mem":           "1234",
		"search_path":        `"other"`,
		"statement_timeout":  "60000",
		"lock_timeout":       "1000",
	} {
		if found[name] != want {
			t.Errorf("%s is %q; want %q", name, found[name], want)
		}
	}
	if limit := s.pool.Config().MaxConns; limit != 3 {
		t.Errorf("the pool has %d connections; want those of the connection string", limit)
	}
	if limit := mustOpen(t, said, Config{MaxConns: 2}).pool.Config().MaxConns; limit != 2 {
		t.Errorf("the pool has %d connections; want those of the configuration", limit)
	}
}

// A pooler that ignores startup parameters let the tables be created in the schema public, and
// decisions be acknowledged that were not on disk.
func TestOpen_PoolerIgnoringRequiredSettingsIsRejected(t *testing.T) {
	for _, name := range requiredSettings {
		t.Run(name, func(t *testing.T) {
			direct := pgtest.New(t)
			odd := map[string]string{
				"search_path": "public", "synchronous_commit": "off", "default_transaction_isolation": "serializable",
				"standard_conforming_strings": "off", "client_encoding": "LATIN1",
			}[name]
			if odd != "" {
				mustExec(t, raw(t, direct), fmt.Sprintf(`ALTER USER CURRENT_USER SET %s = '%s'`, name, odd))
			}
			_, pooled := newPooler(t, direct, ignoring(name))
			s, err := Open(t.Context(), pooled, Config{})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, ErrConfig) || errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), name) {
				t.Errorf("through a pooler that ignores %s: %v", name, err)
			}
			if s, err = Open(t.Context(), direct, Config{}); err != nil {
				t.Fatalf("without the pooler: %v", err)
			}
			s.Close()
		})
	}
}

func TestOpen_PoolerMayIgnoreSettingsTheUserHas(t *testing.T) {
	direct := pgtest.New(t)
	for _, setting := range []string{`search_path = fermata`, `lock_timeout = '10s'`, `idle_in_transaction_session_timeout = '10s'`} {
		mustExec(t, raw(t, direct), `ALTER USER CURRENT_USER SET `+setting)
	}
	_, pooled := newPooler(t, direct, ignoring(requiredSettings...))
	s, err := Open(t.Context(), pooled, Config{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
