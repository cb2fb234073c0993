package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/store"
)

// Raw SQL is a valid bound only if it leaves the same rows as our side: as many rows in each table,
// and in each column as many bytes, or the same text.
func TestRawSQL_LeavesTheSameRows(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		for _, name := range []string{workloadReview, workloadChain} {
			t.Run(name, func(t *testing.T) {
				f := newTestComparison(t, db, newWorkload(name))
				ours, rawSQL := rowsAfter(t, f, sideOurs), rowsAfter(t, f, sideRawSQL)
				for i, when := range []string{"while it waits", "after its end"} {
					if !slices.Equal(ours[i], rawSQL[i]) {
						t.Errorf("%s only ours has\n%s\nand only raw SQL has\n%s", when, linesOnlyIn(ours[i], rawSQL[i]), linesOnlyIn(rawSQL[i], ours[i]))
					}
				}
			})
		}
	})
}

// rowsAfter returns the rows of a side while a run waits, and after its end.
func rowsAfter(t *testing.T, f *comparison, side string) (shapes [2][]string) {
	t.Helper()
	h, place, err := f.make(t.Context(), side)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := h.close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := h.starts(t.Context(), 1, loadSpec{minRuns: 1}); err != nil {
		t.Fatal(err)
	}
	shapes[0] = shape(t, f.database, place)
	if _, err := h.decides(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	shapes[1] = shape(t, f.database, place)
	return shapes
}

// linesOnlyIn returns the lines of a that are not in b.
func linesOnlyIn(a, b []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(a), func(line string) bool { return slices.Contains(b, line) }), "\n")
}

// shape describes all rows of a database, sorted, without values that differ each time.
func shape(t *testing.T, db database, place string) []string {
	t.Helper()
	shapes := map[string]func(context.Context, *testing.T, string) []string{onSQLite: sqliteShape, onPostgres: postgresShape(db)}
	rows := shapes[db.name()](t.Context(), t, place)
	for i, row := range rows {
		rows[i] = volatile.ReplaceAllString(latencyField.ReplaceAllString(row, ""), "…")
	}
	rows = slices.DeleteFunc(rows, heartbeatRow.MatchString)
	slices.Sort(rows)
	return rows
}

// heartbeatRow is the heartbeat of the process, which belongs to no run.
var heartbeatRow = regexp.MustCompile(`^papers: .*facts=\{"at": ?"…"\}`)

// latencyField is the latency of a decision, which is recorded only if it is long enough.
var latencyField = regexp.MustCompile(`"latencyMs":\d+,`)

// volatile matches values that differ each time: times, salts, digests and nonces, ids and keys.
var volatile = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z|\b1\d{12}\b|"[A-Za-z0-9+/]{43}="|\b[0-9a-f]{64}\b|\b[0-9a-f]{32}\b|\b[a-z]+_[0-9a-z]{20,}|\bkey-\d\b`)

// ignoredKind is the kind of documents that belong to no run, created with the executor.
const ignoredKind = "once"

func sqliteShape(ctx context.Context, t *testing.T, place string) (rows []string) {
	db, err := openSQLite(place)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	list := func(text string) (lines []string) {
		found, err := db.QueryContext(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		for found.Next() {
			var line string
			if err := found.Scan(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if err := errors.Join(found.Err(), found.Close()); err != nil {
			t.Fatal(err)
		}
		return lines
	}
	for _, table := range list(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> '` + ignoredKind + `'`) {
		columns, err := (&sqliteDatabase{}).columns(ctx, db, table)
		if err != nil {
			t.Fatal(err)
		}
		parts := []string{`''`}
		for _, c := range columns {
			// JSON is compared as text. Times are large numbers, and all other numbers are small.
			parts = append(parts, fmt.Sprintf(`'%[1]s=' || CASE typeof(%[1]s)
				WHEN 'blob' THEN CASE WHEN substr(%[1]s, 1, 2) = x'7b22' AND length(%[1]s) <> 32 THEN CAST(%[1]s AS TEXT) ELSE length(%[1]s) || ' bytes' END
				WHEN 'integer' THEN CASE WHEN %[1]s > 1000000000 AND '%[1]s' <> 'timeout' THEN 'a time' ELSE %[1]s END ELSE coalesce(%[1]s, 'NULL') END`, c))
		}
		for _, row := range list(`SELECT ` + strings.Join(parts, ` || ' ' || `) + ` FROM ` + table) {
			rows = append(rows, table+": "+row)
		}
	}
	return rows
}

func postgresShape(db database) func(context.Context, *testing.T, string) []string {
	return func(ctx context.Context, t *testing.T, place string) (rows []string) {
		conn, err := db.(postgresDatabase).superuser(ctx, place)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		list := func(text string) []string {
			found, err := conn.Query(ctx, text)
			if err != nil {
				t.Fatal(err)
			}
			lines, err := pgx.CollectRows(found, pgx.RowTo[string])
			if err != nil {
				t.Fatal(err)
			}
			return lines
		}
		for _, table := range list(`SELECT tablename::text FROM pg_tables WHERE schemaname = 'fermata' AND tablename <> '` + ignoredKind + `'`) {
			// As JSON, bytes are text that begins with \x, and JSON in bytes with \x7b22; generated
			// columns, times and sequence numbers are ignored.
			for _, row := range list(fmt.Sprintf(`
SELECT (SELECT string_agg(key || '=' || CASE WHEN value LIKE '\\x7b22%%' AND length(value) <> 66 THEN convert_from(decode(substr(value, 3), 'hex'), 'UTF8')
                                             WHEN value LIKE '\\x%%' THEN length(value) || ' digits'
                                             WHEN value ~ '^\d{4}-\d\d-\d\dT' THEN 'a time' ELSE coalesce(value, 'NULL') END, ' ' ORDER BY key)
        FROM jsonb_each_text(to_jsonb(r)) WHERE key NOT IN ('id', 'xid', 'checkpoint', 'ready_no') OR value LIKE '\\x%%')
FROM fermata.%s AS r`, table)) {
				rows = append(rows, table+": "+row)
			}
		}
		return rows
	}
}

// Documents and audit records of raw SQL name their own run, not the recorded one, and its log is a
// valid chain.
func TestRawSQL_UsesItsOwnNames(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db database) {
		f := newTestComparison(t, db, reviewWorkload(randomText(kib)))
		h, place, err := f.make(t.Context(), sideRawSQL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.starts(t.Context(), 1, loadSpec{minRuns: 1}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.decides(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := h.close(); err != nil {
			t.Fatal(err)
		}
		st, err := db.open(t.Context(), place)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		run, err := st.Get(t.Context(), benchAccount, "key-1")
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []store.DocumentKind{"run", store.RequestDocument, "vote", "resume"} {
			if papers, err := st.Documents(t.Context(), benchAccount, kind, store.DocumentFilter{Run: run.ID}); err != nil || len(papers) != 1 {
				t.Errorf("%d documents of kind %s, %v; want one", len(papers), kind, err)
			}
		}
		lines, err := st.AuditLines(t.Context(), benchAccount, 0, 0)
		if err != nil || len(lines) != 4 {
			t.Fatalf("%d lines, %v; want 4", len(lines), err)
		}
		head := chain.Head{}
		for _, line := range lines {
			if text := string(line.Raw); !strings.Contains(text, fmt.Sprintf(`"prev":"%x"`, head.Hash)) || !strings.Contains(text, run.ID) || strings.Contains(text, f.script.run) {
				t.Errorf("line %d: %s", line.Seq, text)
			}
			head = chain.Head{Seq: line.Seq, Hash: chain.Hash(line.Raw)}
		}
		if end, err := st.AuditHead(t.Context(), benchAccount); err != nil || end != head {
			t.Errorf("the log ends with %v, %v; want %v", end, err, head)
		}
	})
}
