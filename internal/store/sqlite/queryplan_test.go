package sqlite

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rowCounts makes an account so big that it must not be scanned. The file has no statistics, so
// SQLite plans as if it were small.
const rowCounts = `
WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, created_at, updated_at)
SELECT b'acme', CAST('run-' || i AS BLOB), CAST('key-' || i AS BLOB), 1, b'', b'', b'', 'running', 1, b'', 9e15, 0, 0 FROM n;

INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at, deadline)
SELECT account, CAST('asked-by-' || run AS BLOB), run, 1, b'', b'', b'', CAST('action' AS BLOB), 0, 0, 9e15 FROM runs;

INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
SELECT account, b'ann', run, b'', run, 'accepted', b'', 0 FROM runs;

UPDATE interrupts SET state = 'decided', verdict = 'approve', final = action, decided_by = b'ann', via = b'', source = 'person', decided_at = 1, resume = run
WHERE rowid %% 2;

INSERT INTO effects (account, interrupt, number, run, digest, target_key, fence, started_at)
SELECT account, id, 1, run, final, b'', 1, 0 FROM interrupts WHERE verdict = 'approve';

UPDATE runs SET status = 'ready', ready_no = rowid, owner = NULL, lease_until = NULL WHERE rowid %% 3 = 0;`

// With the account first in every key and no statistics, SQLite assumes ten rows per account. A
// statement that scans the account passes every test and overloads the server a year later.
func TestPlans_NoStatementScansAnAccount(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	rows := 2_000
	if raceDetector {
		rows = 200 // more would take minutes, and the planner does not count
	}
	if _, err := s.writer.ExecContext(t.Context(), inHex(fmt.Sprintf(rowCounts, rows))); err != nil {
		t.Fatal(err)
	}
	for _, text := range everySQL(t, s) {
		if allowedScans[text] != "" {
			continue
		}
		for _, line := range plan(t, s, text) {
			if !cheap(line) {
				t.Errorf("%q in the plan of\n%s", line, text)
			}
		}
	}
}

// An index that no plan uses slows down every write. A unique index is a constraint.
func TestPlans_EveryIndexIsUsed(t *testing.T) {
	s := mustOpen(t, filepath.Join(t.TempDir(), "fermata.db"))
	var indexes string
	err := s.writer.QueryRowContext(t.Context(), `
SELECT group_concat(i.name, ' ') FROM sqlite_schema AS t, pragma_index_list(t.name) AS i WHERE t.type = 'table' AND NOT i."unique"`).Scan(&indexes)
	if err != nil {
		t.Fatal(err)
	}
	var plans []string
	for _, text := range everySQL(t, s) {
		plans = append(plans, plan(t, s, text)...)
	}
	for _, index := range strings.Fields(indexes) {
		if !slices.ContainsFunc(plans, func(line string) bool { return slices.Contains(strings.Fields(line), index) }) {
			t.Errorf("%s is unused", index)
		}
	}
}

// everySQL returns every statement, and the queries of the triggers.
func everySQL(t *testing.T, s *Store) []string {
	texts := slices.Concat(readerSQL, writerSQL)
	for _, trigger := range triggers(t, s) {
		texts = append(texts, triggerSelects(trigger.text)...)
	}
	return texts
}

// allowedScans lists the statements that may scan the rows of an account, and why.
var allowedScans = map[string]string{
	auditHeadSQL:     "it reads the last line of a log",
	countPendingSQL:  "it stops at a limit",
	pendingByKindSQL: "it sorts what it counts, which stops at a limit",
	auditAccountsSQL: "it searches once for each account that it returns",
	credentialsOfSQL: "an account has only a few of them",
}

// accountAlone matches a search by the account only.
var accountAlone = regexp.MustCompile(`\(account=\?\)`)

func cheap(line string) bool {
	switch {
	case strings.HasPrefix(line, "SCAN CONSTANT ROW"), strings.HasPrefix(line, "LIST SUBQUERY"),
		// the nested search has its own line
		strings.HasPrefix(line, "SCALAR SUBQUERY"), strings.HasPrefix(line, "CORRELATED SCALAR SUBQUERY"):
		return true
	case line == "SCAN sqlite_sequence": // one row
		return true
	case strings.HasPrefix(line, "SEARCH"):
		return !accountAlone.MatchString(line)
	}
	return false // a scan, or a sort
}

func TestPlans_CheapClassifiesPlanLines(t *testing.T) {
	for line, want := range map[string]bool{
		"SEARCH runs USING INDEX sqlite_autoindex_runs_1 (account=? AND run=?)":   true,
		"SEARCH runs USING INDEX runs_leased (lease_until<?)":                     true,
		"SEARCH interrupts USING INDEX sqlite_autoindex_interrupts_1 (account=?)": false,
		"SEARCH i USING COVERING INDEX interrupts_unapplied (account=?)":          false,
		"SCAN runs": false,
		"SCAN runs USING INDEX sqlite_autoindex_runs": false,
		"USE TEMP B-TREE FOR ORDER BY":                false,
	} {
		if cheap(line) != want {
			t.Errorf("cheap(%q) is %t", line, !want)
		}
	}
}

// triggerSelects returns the selects in the condition of a trigger, which the plan of a statement
// does not show.
func triggerSelects(trigger string) (selects []string) {
	condition, _, _ := strings.Cut(trigger, "BEGIN SELECT RAISE")
	condition = regexp.MustCompile(`\b(NEW|OLD)\.\w+`).ReplaceAllString(condition, "?1")
	for _, rest := range strings.Split(condition, "EXISTS (")[1:] {
		depth, end := 1, 0
		for end = 0; depth > 0; end++ {
			switch rest[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		selects = append(selects, rest[:end-1])
	}
	return selects
}

func plan(t *testing.T, s *Store, text string) (lines []string) {
	t.Helper()
	args := make([]any, 20) // more than any statement has
	for i := range args {
		args[i] = 1
	}
	rows, err := s.writer.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	defer rows.Close()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}
