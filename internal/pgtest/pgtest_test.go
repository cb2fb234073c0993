//go:build unix

package pgtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/testserver"
	"github.com/fermata-go/fermata/internal/testtier"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func connect(t *testing.T, connString string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), connString)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestNew_DatabasesAndOwnersAreSeparate(t *testing.T) {
	first, second := connect(t, New(t)), connect(t, New(t))
	if _, err := first.Exec(t.Context(), `CREATE SCHEMA mine; CREATE TABLE mine.notes (note text)`); err != nil {
		t.Fatal(err)
	}
	var tables int
	err := second.QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE tablename = 'notes'`).Scan(&tables)
	if err != nil || tables != 0 {
		t.Errorf("%d tables of another test, %v", tables, err)
	}
	if _, err := second.Exec(t.Context(), `CREATE ROLE mallory`); err == nil {
		t.Error("the owner of a test's database may create roles")
	}
}

// A reused database is like a new one, whatever the earlier test did.
func TestNew_ReusedDatabaseIsEmpty(t *testing.T) {
	c := Start(t)
	var before string
	t.Run("before", func(t *testing.T) {
		before = c.Database(t)
		admin, conn := connect(t, c.Superuser(t, before)), connect(t, before)
		for _, statement := range []string{
			`CREATE SCHEMA "mine ""too"`, `CREATE TABLE "mine ""too".notes (note text)`,
		} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		database := conn.Config().Database
		for _, statement := range []string{
			`CREATE TABLE public.notes (note text)`,
			`ALTER DATABASE ` + database + ` SET work_mem = '1234kB'`,
			`ALTER DATABASE ` + database + ` SET default_transaction_read_only = on`,
		} {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	})
	after := c.Database(t)
	conn := connect(t, after)
	var schemas, memory string
	var tables int
	err := conn.QueryRow(t.Context(), `
SELECT (SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'),
       (SELECT count(*) FROM pg_tables WHERE tablename = 'notes'), current_setting('work_mem')`).Scan(&schemas, &tables, &memory)
	if err != nil || schemas != "public" || tables != 0 || memory != "4MB" {
		t.Errorf("schemas %s, %d tables, work_mem %s, %v; want those of a new database", schemas, tables, memory, err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA mine`); err != nil {
		t.Errorf("the user does not own the database: %v", err)
	}
	if conn.Config().Database != connectConfig(t, before).Database {
		t.Error("the database was not reused")
	}
	if late, err := pgx.Connect(t.Context(), before); err == nil {
		defer late.Close(t.Context())
		if _, err := late.Exec(t.Context(), `CREATE SCHEMA late`); err == nil {
			t.Error("the user of the former test still has privileges")
		}
	}
}

// A prepared database is reset to its prepared state, and the former test has no access.
func TestPrepared_ReusedDatabaseIsReset(t *testing.T) {
	prepare := func(connString string) error {
		conn, err := pgx.Connect(t.Context(), connString)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), `
CREATE SCHEMA mine;
CREATE TABLE mine.settings (setting text); INSERT INTO mine.settings VALUES ('first');
CREATE TABLE mine.notes (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE mine.lines (note bigint NOT NULL REFERENCES mine.notes);
CREATE FUNCTION mine.never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''never''; END';
CREATE TRIGGER never BEFORE DELETE ON mine.notes FOR EACH ROW EXECUTE FUNCTION mine.never()`)
		return err
	}
	var before string
	var late *pgx.Conn
	t.Run("before", func(t *testing.T) {
		before = Prepared(t, prepare)
		var err error
		if late, err = pgx.Connect(t.Context(), before); err != nil {
			t.Fatal(err)
		}
		if _, err := late.Exec(t.Context(), `INSERT INTO mine.notes DEFAULT VALUES; INSERT INTO mine.lines SELECT id FROM mine.notes`); err != nil {
			t.Fatal(err)
		}
	})
	conn := connect(t, Prepared(t, prepare))
	var setting string
	var lines, next int
	err := conn.QueryRow(t.Context(), `SELECT setting, (SELECT count(*) FROM mine.lines) FROM mine.settings`).Scan(&setting, &lines)
	if err != nil || setting != "first" || lines != 0 {
		t.Errorf("setting %q, %d lines, %v; want it as it was prepared", setting, lines, err)
	}
	if err := conn.QueryRow(t.Context(), `INSERT INTO mine.notes DEFAULT VALUES RETURNING id`).Scan(&next); err != nil || next != 1 {
		t.Errorf("the first note has the number %d, %v", next, err)
	}
	if conn.Config().Database != connectConfig(t, before).Database {
		t.Error("the database was not reused")
	}
	if _, err := late.Exec(t.Context(), `SELECT`); err == nil {
		t.Error("a connection of the former test is still open")
	}
	if again, err := pgx.Connect(t.Context(), before); err == nil {
		again.Close(t.Context())
		t.Error("the former test can connect again")
	}
}

// Processes that share a server do not share databases or users, and none of them stops it.
func TestServe_ProcessesHaveTheirOwnDatabases(t *testing.T) {
	testtier.Needs(t, "PostgreSQL")
	ctx, stop := context.WithCancel(t.Context())
	address, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Serve(ctx, func(at string) error {
			address <- at
			return nil
		})
	}()
	var at string
	select {
	case at = <-address:
	case err := <-ended:
		t.Fatal(err)
	}
	t.Run("clients", func(t *testing.T) {
		for range 2 {
			c, err := attach(at)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := connect(t, c.Database(t)).Exec(t.Context(), `CREATE SCHEMA mine; CREATE TABLE mine.notes (note text)`); err != nil {
				t.Fatal(err)
			}
		}
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A killed server leaves a shared memory segment; the system has few of them.
func TestKill_LeavesNoSharedMemory(t *testing.T) {
	c, err := start(true, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Kill(t)
	segment := sharedMemory(t, c)
	if err := c.stop(); err != nil {
		t.Fatal(err)
	}
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	if err != nil {
		t.Skip("no list of the system's shared memory")
	}
	for line := range strings.Lines(string(segments)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == segment {
			t.Errorf("segment %s was not removed", segment)
		}
	}
}

// sharedMemory returns the id of the segment that the server recorded.
func sharedMemory(t *testing.T, c *Cluster) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(strings.Split(string(data), "\n")[6])
	if len(fields) != 2 {
		t.Fatalf("no shared memory in %q", data)
	}
	return fields[1]
}

func connectConfig(t *testing.T, connString string) *pgx.ConnConfig {
	t.Helper()
	config, err := pgx.ParseConfig(connString)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func TestStart_ServerIsAsDurableAsInProduction(t *testing.T) {
	c := Start(t)
	connString := c.Database(t)
	conn := connect(t, c.Superuser(t, connString))
	var fsync, commit, super string
	err := conn.QueryRow(t.Context(),
		`SELECT current_setting('fsync'), current_setting('synchronous_commit'), current_setting('is_superuser')`).
		Scan(&fsync, &commit, &super)
	if err != nil || fsync != "on" || commit != "on" || super != "on" {
		t.Errorf("fsync is %s, synchronous_commit %s, superuser %s, %v", fsync, commit, super, err)
	}
	wrong := strings.Replace(connString, "@127", "x@127", 1)
	if conn, err := pgx.Connect(t.Context(), wrong); err == nil {
		conn.Close(t.Context())
		t.Error("a wrong password was accepted")
	}
}

func TestFind_MissingServerNamesThePackage(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	defer func(before []string) { places = before }(places)
	places = []string{t.TempDir()}
	if dir, err := find(); !errors.Is(err, errMissing) || !strings.Contains(err.Error(), "`make test`") {
		t.Errorf("find = %q, %v; want an error that names make test", dir, err)
	}
}

func TestVersion_ComparesAsNumbers(t *testing.T) {
	if version("/usr/lib/postgresql/9.6/bin") >= version("/usr/lib/postgresql/15/bin") {
		t.Error("9.6 counts as newer than 15")
	}
}

// However the test process ends, neither a server nor a file remains.
func TestGuard_CleansUpAfterTheTestProcess(t *testing.T) {
	testserver.CheckCleanup(t, func() (int, string) {
		c, err := start(false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.server.Process.Pid, c.dir
	})
}
