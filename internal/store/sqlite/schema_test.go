package sqlite

import (
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/migration"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// raw opens a database file like another program.
func raw(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// alter runs statements on a file that no Store has open.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db := raw(t, path)
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// closedDatabase returns the path of a closed Fermata database.
func closedDatabase(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	mustSave(t, s, 0, "kept")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t *testing.T, path string) [sha256.Size]byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return sha256.Sum256(data)
}

// wantRefused checks that Open returns the error and does not write to the file.
func wantRefused(t *testing.T, path string, want error) {
	t.Helper()
	before := contents(t, path)
	s, err := Open(path)
	if err == nil {
		s.Close()
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), "open "+filepath.Base(path)) {
		t.Errorf("Open: %v; want %v", err, want)
	}
	if errors.Is(err, ErrCorrupt) {
		t.Errorf("Open: %v; the file is not damaged", err)
	}
	if contents(t, path) != before {
		t.Error("the refused file was written to")
	}
}

func TestOpen_ForeignFileIsRefusedAndNotWritten(t *testing.T) {
	for _, test := range []struct {
		name       string
		statements []string
	}{
		{"no application id", []string{`CREATE TABLE notes (text)`}},
		{"another application id", []string{`PRAGMA application_id = 42`, `CREATE TABLE notes (text)`}},
		{"another application id, no tables", []string{`PRAGMA application_id = 42`, `VACUUM`}},
		{"with a write-ahead log", []string{`PRAGMA journal_mode = WAL`, `CREATE TABLE notes (text)`}},
		{"with tables of our names", []string{
			`CREATE TABLE checkpoints (x)`, `CREATE TABLE schema_migrations (version, name, checksum)`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "notes.db")
			alter(t, path, test.statements...)
			wantRefused(t, path, ErrForeign)
		})
	}
	t.Run("not a database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "notes.txt")
		if err := os.WriteFile(path, []byte(strings.Repeat("Dear diary, ", 500)), 0o600); err != nil {
			t.Fatal(err)
		}
		wantRefused(t, path, ErrForeign)
	})
}

func TestOpen_EmptyFileIsInitialized(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mustSave(t, mustOpen(t, path), 0, "x")
}

func TestOpen_NewerSchemaIsRefused(t *testing.T) {
	path := closedDatabase(t)
	alter(t, path, `INSERT INTO schema_migrations VALUES (9999, '9999_future.sql', 'x', 0)`)
	wantRefused(t, path, ErrNewer)
}

func TestOpen_ChecksumDriftIsRefused(t *testing.T) {
	path := closedDatabase(t)
	alter(t, path, `UPDATE schema_migrations SET checksum = 'other' WHERE version = 1`)
	wantRefused(t, path, ErrDrift)
}

func TestOpen_GapInHistoryIsRefused(t *testing.T) {
	path := closedDatabase(t)
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	alter(t, path, `DELETE FROM schema_migrations WHERE version = 1`)
	if _, err := inspectSchema(t.Context(), raw(t, path), steps); !errors.Is(err, ErrDrift) {
		t.Errorf("inspect: %v; want ErrDrift", err)
	}
}

func TestMigrate_AppliesNewStepsAndKeepsData(t *testing.T) {
	path := closedDatabase(t)
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	more := append(slices.Clone(steps), migration.New("next.sql", `CREATE TABLE extra (x) STRICT, WITHOUT ROWID`))
	if err := migrate(t.Context(), s.writer, more); err == nil {
		t.Fatal("a migration with an error was applied")
	}
	more[len(steps)] = migration.New("next.sql", "CREATE TABLE extra (x INTEGER) STRICT;\nINSERT INTO extra VALUES (1);")
	for range 2 {
		if err := migrate(t.Context(), s.writer, more); err != nil {
			t.Fatal(err)
		}
	}
	var rows int
	if err := s.writer.QueryRowContext(t.Context(), `SELECT count(*) FROM extra`).Scan(&rows); err != nil || rows != 1 {
		t.Errorf("%d rows in the new table, %v; want 1: the migration runs once", rows, err)
	}
	wantRun(t, s, 1, "kept")
	s.Close()
	wantRefused(t, path, ErrNewer) // a build that has one step less
}

// testdata/version-1.db was created by a build that had only checkpoints.
func TestOpen_FileOfVersion1IsMigrated(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "version-1.db"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fermata.db")
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	for opened := range 2 { // it is migrated once
		s := mustOpen(t, path)
		wantRun(t, s, 2, "kept")
		odd, err := s.Load(t.Context(), store.Key{Account: "a\x00\xff", Run: "\x00"})
		if err != nil || odd.Version != 1 || string(odd.Parts["\xc3\x28"]) != "\x00\x01\x02" || odd.Parts["empty"] == nil {
			t.Errorf("%+v, %v", odd, err)
		}
		id := fmt.Sprint("run-", opened)
		fixture.EndExecution(t, s, fixture.CreateRun(t, s, id), nil, "i-"+id)
		fixture.MustAccept(t, s, fixture.Decision(id, id, store.VerdictApprove, "i-"+id))
		if _, err := s.Fenced(fixture.MustClaim(t, s, id)).Save(t.Context(), store.Key{Account: "acme", Run: id}, 0, putRun("x")); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Files of every version are migrated, and old interrupts are decided like new ones.
func TestOpen_FilesOfEachVersionAreMigrated(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for version := 2; version <= len(steps); version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "fermata.db")
			then := raw(t, path)
			then.SetMaxOpenConns(1)
			if err := migrate(t.Context(), then, steps[:version]); err != nil {
				t.Fatal(err)
			}
			if _, err := then.ExecContext(t.Context(), inHex(fmt.Sprintf(rowCounts, 5))); err != nil {
				t.Fatal(err)
			}
			if err := then.Close(); err != nil {
				t.Fatal(err)
			}
			s := mustOpen(t, path)
			extended := store.DocumentChange{Kind: store.RequestDocument, ID: "asked-by-run-4", Run: "run-4", InterruptDeadline: timeOf(8e15)}
			if err := s.CommitWrites(t.Context(), "acme", writesOf("extended", "run-4", extended)); err != nil {
				t.Fatal(err)
			}
			said := fixture.Decision("run-4", "new", store.VerdictReject, "asked-by-run-4")
			said.Answers[0].ShownDigest = ""
			extended.BaseRevision, extended.InterruptDeadline = 1, time.Time{}
			said.Writes = writesOf("decided", "run-4", extended)
			fixture.MustAccept(t, s, said)
			history, err := s.History(t.Context(), "acme", "run-4")
			if err != nil || len(history.Interrupts) != 1 || !history.Interrupts[0].Deadline.Equal(timeOf(8e15)) || len(history.Documents) != 1 {
				t.Errorf("%+v, %v", history, err)
			}
		})
	}
}

// Receipts that stored their outcomes before they were deduplicated keep them.
func TestOpen_OldReceiptsKeepTheirOutcomes(t *testing.T) {
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "fermata.db")
	then := raw(t, path)
	then.SetMaxOpenConns(1)
	if err := migrate(t.Context(), then, steps[:4]); err != nil {
		t.Fatal(err)
	}
	if _, err := then.ExecContext(t.Context(), inHex(run(`b'acme', b'r', b'key', 1`)+`;
INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at, outcome) VALUES
    (b'acme', b'ann', b'first', b'', b'r', 'accepted', b'', 0, b'the first outcome'), (b'acme', b'ann', b'last', b'', b'r', 'accepted', b'', 0, b'the last outcome'),
    (b'acme', b'ann', b'none', b'', b'r', 'accepted', b'', 0, NULL);
UPDATE runs SET outcome = b'the last outcome' WHERE run = b'r'`)); err != nil {
		t.Fatal(err)
	}
	if err := then.Close(); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, path)
	for id, want := range map[string]string{"first": "the first outcome", "last": "the last outcome", "none": ""} {
		if receipt, err := s.Receipt(t.Context(), "acme", "ann", id); err != nil || string(receipt.Outcome) != want {
			t.Errorf("resume %s came to %q, %v; want %q", id, receipt.Outcome, err, want)
		}
	}
}

// Released migrations must not change, because existing databases have their checksums. A change is
// a new file.
func TestMigrations_ReleasedStepsAreUnchanged(t *testing.T) {
	released := []string{
		"c72115da7979635534892a14f2de3dfab96b38109708a640be27a269366fcf92",
		"6e0399d1ae732a4b42cda5b05f2c42be2240e4402956d70c0c8c28ce316ca400",
		"4ef4d9b52747ce5015c6f5e1d1c6fe5e8337bb5767583243a8c7a7cc20ffe3bb",
		"72531ff7647237f90522de8e3dec5651ec4e9db87826c5c8f44e2e424b6a6e89",
		"e248fcc7e9c55129d738827ee8bc242004dedf2578baf8223941afe8de8f27b8",
		"76a5c36fbc14e5ee9348c2c5d9ed2d499474ed11a0fa3cb5da6d81ef396518b4",
		"ac4294b88b955c23ad6ec717694cc2844874c0a09ca075797665a1ce7f5ba946",
		"f56a7629eb70b3acb2a3d76a82e48ccb24a0681695b91895ad18a11915a9a1c3",
	}
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range released {
		if steps[i].Checksum != want {
			t.Errorf("%s has checksum %s; want %s", steps[i].Name, steps[i].Checksum, want)
		}
	}
	if len(steps) != len(released) {
		t.Errorf("%d migrations, %d checksums: add the new one here", len(steps), len(released))
	}
}
