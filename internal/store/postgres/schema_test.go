package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

func mustMigrations(t *testing.T) []migration.Step {
	t.Helper()
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

// catalog lists the content of the schema: tables with their options, columns, constraints,
// indexes, sequences, domains, triggers and functions.
func catalog(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
SELECT format('table %s %s', c.relname, c.reloptions) FROM pg_class AS c
WHERE c.relnamespace = 'fermata'::regnamespace AND c.relkind = 'r'
UNION ALL
SELECT format('column %s.%s %s %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
    a.attstorage, pg_get_expr(d.adbin, d.adrelid))
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'fermata'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT format('constraint %s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE connamespace = 'fermata'::regnamespace
UNION ALL
SELECT indexdef FROM pg_indexes WHERE schemaname = 'fermata'
UNION ALL
SELECT format('sequence %s %s', relname, relpersistence) FROM pg_class WHERE relnamespace = 'fermata'::regnamespace AND relkind = 'S'
UNION ALL
SELECT format('domain %s %s', typname, typbasetype::regtype) FROM pg_type WHERE typnamespace = 'fermata'::regnamespace AND typtype = 'd'
UNION ALL
SELECT pg_get_triggerdef(t.oid) FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = 'fermata'::regnamespace AND NOT t.tgisinternal
UNION ALL
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'fermata'::regnamespace
ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(lines) == 0 {
		t.Fatalf("no schema: %v", err)
	}
	return lines
}

// Migrating from every released version gives the same schema and keeps the data.
func TestMigrate_FromEachVersion(t *testing.T) {
	steps := mustMigrations(t)
	fresh := pgtest.New(t)
	mustOpen(t, fresh, Config{})
	want := catalog(t, raw(t, fresh))
	for version := range len(steps) + 1 {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			connString := pgtest.New(t)
			if version > 0 {
				then, err := open(t.Context(), connString, Config{}, steps[:version])
				if err != nil {
					t.Fatal(err)
				}
				rows, err := os.ReadFile(filepath.Join("testdata", fmt.Sprintf("at_%04d.sql", version)))
				if err != nil {
					t.Fatalf("each version needs a file with its possible data: %v", err)
				}
				if _, err := then.pool.Exec(t.Context(), string(rows), pgx.QueryExecModeSimpleProtocol); err != nil {
					t.Fatal(err)
				}
				then.Close()
			}
			s := mustOpen(t, connString, Config{})
			if diff := cmp.Diff(want, catalog(t, raw(t, connString))); diff != "" {
				t.Errorf("the schema differs from a new one (-new +migrated):\n%s", diff)
			}
			wantOldRows(t, s, version)
			if _, err := s.Save(t.Context(), store.Key{Run: "new"}, 0, putRun("x")); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantOldRows checks the data from testdata of this version.
func wantOldRows(t *testing.T, s *Store, version int) {
	t.Helper()
	if version >= 1 {
		wantOldCheckpoints(t, s)
	}
	if version >= 2 {
		wantOldRuns(t, s, version)
	}
	want := "anew"
	if version >= 4 {
		want = "value"
	}
	if version >= 6 {
		wantOldDocuments(t, s)
	}
	if version >= 8 {
		wantOldOutcomes(t, s, map[string]string{"first": "the first outcome", "last": "sealed outcome"})
	}
	if kept, err := s.PutIfAbsent(t.Context(), "name", []byte("anew")); err != nil || string(kept) != want {
		t.Errorf("kept is %q, %v; want %q", kept, err, want)
	}
}

func wantOldOutcomes(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	for id, outcome := range want {
		if receipt, err := s.Receipt(t.Context(), "\x00\xff", "ann", id); err != nil || string(receipt.Outcome) != outcome {
			t.Errorf("resume %s came to %q, %v; want %q", id, receipt.Outcome, err, outcome)
		}
	}
}

// Receipts that stored their outcomes before they were deduplicated keep them.
func TestMigrate_OldReceiptsKeepTheirOutcomes(t *testing.T) {
	connString := pgtest.New(t)
	then, err := open(t.Context(), connString, Config{}, mustMigrations(t)[:7])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := then.pool.Exec(t.Context(), `
INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, created_at, updated_at, outcome)
VALUES ('\x00ff', 'r', 'k', 1, '', '', '', 'completed', 1, now(), now(), 'the last outcome');
INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at, outcome) VALUES
    ('\x00ff', 'ann', 'first', '', 'r', 'accepted', '', now(), 'the first outcome'), ('\x00ff', 'ann', 'last', '', 'r', 'accepted', '', now(), 'the last outcome'),
    ('\x00ff', 'ann', 'none', '', 'r', 'accepted', '', now(), NULL)`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	then.Close()
	wantOldOutcomes(t, mustOpen(t, connString, Config{}), map[string]string{"first": "the first outcome", "last": "the last outcome", "none": ""})
}

func wantOldDocuments(t *testing.T, s *Store) {
	t.Helper()
	p, err := s.Document(t.Context(), "acme", store.RequestDocument, "open")
	if err != nil || p.Revision != 2 || p.Run != "demo-1" || string(p.Body) != "sealed anew" || string(p.Index) != `{"rule": "r"}` || p.DueAt.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = s.Document(t.Context(), "acme", "grant", "\x00\xff"); err != nil || p.Body != nil || p.Index != nil || !p.DueAt.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	wantAudit(t, s, "acme", "asked")
}

func wantOldCheckpoints(t *testing.T, s *Store) {
	t.Helper()
	kept := map[string][]byte{"run": []byte("kept"), "\x00\xfe": {}, "node/é": []byte("{\x00\xff}")}
	for key, want := range map[store.Key]store.Checkpoint{
		demo:                                   {Version: 3, Parts: kept},
		{Account: "\x00\xff", Run: "\xc3\x28"}: {Version: 1, Parts: map[string][]byte{}},
	} {
		got, err := s.Load(t.Context(), key)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("Load(%q): %v, (-want +got):\n%s", key, err, diff)
		}
	}
	mustSave(t, s, 3, "goes on")
}

// wantOldRuns continues a run that was parked.
func wantOldRuns(t *testing.T, s *Store, version int) {
	t.Helper()
	history, err := s.History(t.Context(), "acme", "demo-1")
	if err != nil || history.Run.Status != store.StatusParked || string(history.Run.ProviderRef) != "sealed ref" || len(history.Interrupts) != 3 ||
		history.Interrupts[0].DecidedBy != "ann" || len(history.Resumes) != 2 || len(history.Effects) != 1 || version > 2 && len(history.Events) != 6 {
		t.Errorf("history %+v, %v", history, err)
	}
	if run, err := s.Retry(t.Context(), "acme", "demo-1", store.Writes{}); err != nil || run.ID != "demo-1" {
		t.Errorf("Retry: %+v, %v", run, err)
	}
	lease := fixture.MustClaim(t, s, "demo-1")
	line, begun, err := s.BeginEffect(t.Context(), lease, store.NewEffect{Interrupt: "yes", Attempt: 1, ActionDigest: "action"})
	if err != nil || begun || line.State != store.EffectStarted {
		t.Errorf("BeginEffect: %+v, %t, %v", line, begun, err)
	}
	fixture.EndExecution(t, s, lease, []string{"yes"}, "open", "new")
	if events, err := s.Events(t.Context(), "acme", "demo-1", 6, 0); err != nil || len(events) != 2 || events[0].Interrupt != "new" {
		t.Errorf("events %+v, %v", events, err)
	}
	if over, err := s.Get(t.Context(), "\x00\xff", "\x00"); err != nil || over.Status != store.StatusCompleted || string(over.Outcome) != "sealed outcome" {
		t.Errorf("run %+v, %v", over, err)
	}
}

func TestMigrate_ConcurrentReplicasMigrateOnce(t *testing.T) {
	const replicas = 8
	t.Run("in one process", func(t *testing.T) {
		for range 3 {
			connString := pgtest.New(t)
			var starting sync.WaitGroup
			for i := range replicas {
				starting.Go(func() {
					if err := runChild(connString, fmt.Sprint(i)); err != nil {
						t.Error(err)
					}
				})
			}
			starting.Wait()
			wantOneHistory(t, connString, replicas)
		}
	})
	t.Run("in separate processes", func(t *testing.T) {
		connString := pgtest.New(t)
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		var starting sync.WaitGroup
		for i := range replicas {
			starting.Go(func() {
				cmd := exec.Command(exe)
				cmd.Env = append(os.Environ(), childDatabase+"="+connString, childRun+"="+fmt.Sprint(i))
				if output, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("replica %d: %v\n%s", i, err, output)
				}
			})
		}
		starting.Wait()
		wantOneHistory(t, connString, replicas)
	})
}

func wantOneHistory(t *testing.T, connString string, replicas int) {
	t.Helper()
	var steps, runs int
	err := raw(t, connString).QueryRow(t.Context(),
		`SELECT (SELECT count(*) FROM fermata.fermata_migrations), (SELECT count(*) FROM fermata.checkpoints)`).Scan(&steps, &runs)
	if err != nil || steps != len(mustMigrations(t)) || runs != replicas {
		t.Errorf("%d migrations, %d runs, %v; want %d, %d", steps, runs, err, len(mustMigrations(t)), replicas)
	}
}

// A migration may take longer than any call, and a replica that starts in between waits for it.
func TestMigrate_WaitsLongerThanTheTimeouts(t *testing.T) {
	t.Parallel() // it only waits
	connString := pgtest.New(t)
	migrating := raw(t, connString)
	mustExec(t, migrating, `BEGIN`)
	if _, err := migrating.Exec(t.Context(), lockSQL, defaultSchema); err != nil {
		t.Fatal(err)
	}
	const timeout = time.Second
	opened := make(chan error)
	go func() {
		s, err := Open(t.Context(), connString, Config{Timeout: timeout, LockTimeout: timeout})
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	waitFor(t, raw(t, connString), `
SELECT EXISTS (SELECT FROM pg_stat_activity
WHERE wait_event_type = 'Lock' AND datname = current_database() AND clock_timestamp() - query_start > interval '1500 ms')`)
	mustExec(t, migrating, `ROLLBACK`)
	if err := <-opened; err != nil {
		t.Errorf("Open: %v", err)
	}
}

// The wait for another replica ends with the context.
func TestMigrate_WaitEndsWithTheContext(t *testing.T) {
	connString := pgtest.New(t)
	migrating := raw(t, connString)
	mustExec(t, migrating, `BEGIN`)
	if _, err := migrating.Exec(t.Context(), lockSQL, defaultSchema); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() {
		_, err := Open(ctx, connString, Config{})
		opened <- err
	}()
	waitFor(t, raw(t, connString), waitingQuery)
	cancel()
	if err := <-opened; !errors.Is(err, context.Canceled) {
		t.Errorf("Open: %v; want context.Canceled", err)
	}
}

// migratedDatabase returns a database with our schema and a run.
func migratedDatabase(t *testing.T) (connString string, conn *pgx.Conn) {
	t.Helper()
	connString = pgtest.New(t)
	s := mustOpen(t, connString, Config{})
	mustSave(t, s, 0, "kept")
	return connString, raw(t, connString)
}

func wantRefused(t *testing.T, connString string, want error) {
	t.Helper()
	s, err := Open(t.Context(), connString, Config{})
	if !errors.Is(err, want) || !strings.Contains(err.Error(), ".fermata: ") {
		t.Errorf("Open = %v, %v; want %v", s, err, want)
	}
}

func TestOpen_ForeignSchemaIsRefusedAndNotChanged(t *testing.T) {
	for name, statement := range map[string]string{
		"a table":             `CREATE TABLE fermata.notes (note text)`,
		"a table of our name": `CREATE TABLE fermata.checkpoints (id text)`, // LangGraph has one
		"a view":              `CREATE VIEW fermata.one AS SELECT 1`,
	} {
		t.Run(name, func(t *testing.T) {
			connString := pgtest.New(t)
			conn := raw(t, connString)
			mustExec(t, conn, `CREATE SCHEMA fermata`, statement)
			wantRefused(t, connString, ErrForeign)
			var relations int
			err := conn.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_class WHERE relnamespace = 'fermata'::regnamespace AND relkind IN ('r', 'v')`).Scan(&relations)
			if err != nil || relations != 1 {
				t.Errorf("%d tables and views, %v; want the one that was there", relations, err)
			}
		})
	}
}

func TestOpen_NewerSchemaIsRefused(t *testing.T) {
	connString, conn := migratedDatabase(t)
	mustExec(t, conn, `INSERT INTO fermata.fermata_migrations VALUES (9999, '9999_future.sql', 'x', now())`)
	wantRefused(t, connString, ErrNewer)
}

func TestOpen_ChecksumDriftIsRefused(t *testing.T) {
	connString, conn := migratedDatabase(t)
	mustExec(t, conn, `UPDATE fermata.fermata_migrations SET checksum = 'other' WHERE version = 1`)
	wantRefused(t, connString, ErrDrift)
}

func TestOpen_GapInHistoryIsRefused(t *testing.T) {
	connString, conn := migratedDatabase(t)
	mustExec(t, conn, `UPDATE fermata.fermata_migrations SET version = version + 1 WHERE version = `+fmt.Sprint(len(mustMigrations(t))))
	steps := append(mustMigrations(t), migration.New("next.sql", "SELECT 1"))
	if _, err := open(t.Context(), connString, Config{}, steps); !errors.Is(err, ErrDrift) {
		t.Errorf("open: %v; want ErrDrift", err)
	}
}

func TestMigrate_AppliesNewStepsAndKeepsData(t *testing.T) {
	connString, conn := migratedDatabase(t)
	steps := mustMigrations(t)
	more := append(slices.Clone(steps), migration.New("next.sql", "CREATE TABLE extra (x integer);\nSELECT 1/0;"))
	if _, err := open(t.Context(), connString, Config{}, more); err == nil || !strings.Contains(err.Error(), "migration next.sql") {
		t.Fatalf("a migration with an error was applied: %v", err)
	}
	more[len(steps)] = migration.New("next.sql", "CREATE TABLE extra (x integer);\nINSERT INTO extra VALUES (1);")
	for range 2 {
		s, err := open(t.Context(), connString, Config{}, more)
		if err != nil {
			t.Fatal(err)
		}
		wantRun(t, s, 1, "kept")
		s.Close()
	}
	var rows int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM fermata.extra`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows in the new table, %v; want 1: the migration runs once, and as a whole", rows, err)
	}
	wantRefused(t, connString, ErrNewer) // by a build that has one step less
}

// While a migration waits for a table, all other statements queue behind it. It gives up soon, and
// the next start tries again.
func TestMigrate_GivesUpOnALockedTable(t *testing.T) {
	connString, conn := migratedDatabase(t)
	mustExec(t, conn, `BEGIN`, `SELECT 1 FROM fermata.checkpoints`)
	steps := append(mustMigrations(t), migration.New("next.sql", "ALTER TABLE checkpoints ADD extra integer"))
	if _, err := open(t.Context(), connString, Config{LockTimeout: 10 * time.Millisecond}, steps); !errors.Is(err, ErrLocked) {
		t.Errorf("open: %v; want ErrLocked", err)
	}
	mustExec(t, conn, `ROLLBACK`)
	s, err := open(t.Context(), connString, Config{}, steps)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantRun(t, s, 1, "kept")
}

// A replica that is killed during a migration leaves nothing, and the next one does the work.
func TestMigrate_KilledReplicaLeavesNothing(t *testing.T) {
	connString, conn := migratedDatabase(t)
	steps := mustMigrations(t)
	more := append(slices.Clone(steps),
		migration.New("next.sql", "CREATE TABLE extra (x integer)"), migration.New("after.sql", "SELECT pg_advisory_xact_lock(77);\nCREATE TABLE more (x integer)"))
	mustExec(t, conn, `SELECT pg_advisory_lock(77)`)
	opened := make(chan error)
	go func() {
		_, err := open(t.Context(), connString, longTimeouts, more)
		opened <- err
	}()
	waitFor(t, conn, waitingQuery)
	mustExec(t, conn, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
	if err := <-opened; !errors.Is(err, ErrUnavailable) {
		t.Fatalf("open: %v; want ErrUnavailable", err)
	}
	mustOpen(t, connString, Config{}) // by a build without these steps: nothing of them exists
	mustExec(t, conn, `SELECT pg_advisory_unlock(77)`)
	s, err := open(t.Context(), connString, Config{}, more)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	wantRun(t, s, 1, "kept")
	mustExec(t, conn, `SELECT FROM fermata.extra, fermata.more`)
}

// Released migrations must not change, because existing databases have their checksums. A change is
// a new file.
func TestMigrations_ReleasedStepsAreUnchanged(t *testing.T) {
	released := []string{
		"37ad19cd14c7f42cf33976c9555e6c1c17676eed53039c6d4d9440327d732303",
		"fa77b0888f75590b8f9aa339fdf6849e014e4cfe955a2d18a507afdd02195ce5",
		"46fde05821e538f3075e284b4d1e56a6db3d3e7d06aef5caafcb9940d7f95356",
		"315668b60cc46f2c2c327e4bf19b91fc54ef45c1d1ec43d021da662dbc9ac411",
		"88e7a790020ed4e7c02d5d2ca5356611bd048c66a33b3895c38dd210e702db75",
		"1df64cc7c7e2f5afbba16f9f7fc05104aca910ed6efc2baadf13c3a1b0b3ded2",
		"122c8cef7b14e33be313d0e086e5c752d1e97e5408c3702a16ea577e9391dc55",
		"88a2ccedb69b4a4ea1b7be1ff8238f6b6205ddb2a67cbbecae5fc87b9c3207ae",
		"0dee669bc987d52515a609981801ac5a43c7f36c63d912d3c18d59aa9bbd067c",
		"95bfcbbb80b7076cd497328eec9dfd877b9b5a907942b564733bf2a02b529885",
		"90b8b62a320321dc57395f29178a0905aed827e78a7a2086b187ca1401ecb417",
	}
	steps := mustMigrations(t)
	for i, want := range released {
		if steps[i].Checksum != want {
			t.Errorf("%s has checksum %s; want %s", steps[i].Name, steps[i].Checksum, want)
		}
	}
	if len(steps) != len(released) {
		t.Errorf("%d migrations, %d checksums: add the new one here", len(steps), len(released))
	}
}
