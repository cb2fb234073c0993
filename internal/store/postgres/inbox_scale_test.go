package postgres

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/testtier"
)

// inboxRows creates runs with one request each: a tenth is decided, one in ten thousand is rare.
const inboxRows = `
INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, created_at, updated_at)
SELECT 'acme', convert_to('run ' || n, 'UTF8'), convert_to('key ' || n, 'UTF8'), 1, 'inproc', 'g', '', 'running', 1, '', now() + interval '1 year', now() - interval '1 day' + n * interval '1 ms', now()
FROM generate_series(1, %[1]d) AS n;
INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at)
SELECT 'acme', convert_to('int ' || n, 'UTF8'), convert_to('run ' || n, 'UTF8'), n, '', CASE WHEN n %% 10000 = 7 THEN 'rare'::bytea ELSE 'common' END, '', '', 0,
    now() - interval '1 day' + n * interval '1 ms'
FROM generate_series(1, %[1]d) AS n;
INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at)
SELECT account, 'ann', id, '', run, 'accepted', '', now() FROM interrupts WHERE place %% 10 = 0;
UPDATE interrupts SET state = 'decided', verdict = 'answer', final = '', decided_by = 'ann', via = '', source = 'person',
    decided_at = now() - interval '1 hour' + place * interval '1 ms', resume = id
WHERE place %% 10 = 0;
INSERT INTO papers (account, kind, id, run, revision, body, facts, created_at, updated_at)
SELECT account, 'request', id, run, 1, decode(repeat('00', 500), 'hex'), '{}', created_at, created_at FROM interrupts;
ANALYZE runs, interrupts, papers`

// maxInboxRows is how many rows a statement may read for a page of fifty: each with its run and its
// request.
const maxInboxRows = 200

// The inbox of an account with many requests reads only the rows of its page.
func TestInbox_ManyRequestsReadOnePage(t *testing.T) {
	testtier.Needs(t, "PostgreSQL")
	size := testtier.Count(20_000, 100_000, 1_000_000)
	connString := pgtest.New(t)
	mustOpen(t, connString, Config{Schema: "inbox"})
	db := raw(t, connString)
	mustExec(t, db, `SET search_path = inbox`)
	if _, err := db.Exec(t.Context(), fmt.Sprintf(inboxRows, size), pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	var middle, later string
	if err := db.QueryRow(t.Context(), `SELECT quote_literal(created_at::text), quote_literal((created_at + interval '9 ms')::text) FROM interrupts WHERE place = $1`, size/2).Scan(&middle, &later); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, after, before, kind, index string }{
		"oldest":              {oldestItemsSQL, `'-infinity'`, `'infinity'`, "", "interrupts_asked"},
		"newest":              {newestItemsSQL, `'-infinity'`, `'infinity'`, "", "interrupts_asked"},
		"oldest open":         {oldestPendingItemsSQL, `'-infinity'`, `'infinity'`, "", "interrupts_pending"},
		"newest open":         {newestPendingItemsSQL, `'-infinity'`, `'infinity'`, "", "interrupts_pending"},
		"a page in between":   {oldestPendingItemsSQL, middle, `'infinity'`, "", "interrupts_pending"},
		"the page before":     {newestPendingItemsSQL, `'-infinity'`, middle, "", "interrupts_pending"},
		"a short period":      {oldestPendingItemsSQL, middle, later, "", "interrupts_pending"},
		"newest of a period":  {newestPendingItemsSQL, middle, later, "", "interrupts_pending"},
		"of a kind":           {oldestOfKindSQL, `'-infinity'`, `'infinity'`, "rare", "interrupts_of_kind"},
		"of a kind, newest":   {newestOfKindSQL, `'-infinity'`, middle, "rare", "interrupts_of_kind"},
		"of the usual kind":   {oldestOfKindSQL, middle, `'infinity'`, "common", ""},
		"decided":             {oldestDecidedSQL, `'-infinity'`, `'infinity'`, "", "interrupts_decided"},
		"decided, the newest": {newestDecidedSQL, `'-infinity'`, `'infinity'`, "", "interrupts_decided"},
	} {
		args := []string{`'acme'`, c.after, `''`, c.before, `''`, "50"}
		if strings.Contains(c.text, "$7") {
			args = append(args, `'`+c.kind+`'`)
		}
		rows, indexes := rowsRead(t, db, c.text, args)
		if rows > maxInboxRows || !strings.Contains(indexes, c.index) {
			t.Errorf("%s reads %d rows by %s", name, rows, indexes)
		}
	}
	if rows, _ := rowsRead(t, db, inboxItemSQL, []string{`'acme'`, `'int 77'`}); rows > 3 {
		t.Errorf("one request reads %d rows", rows)
	}
}

// rowsRead executes a statement with its generic plan and returns how many rows its scans read,
// and the indexes that they use.
func rowsRead(t *testing.T, db *pgx.Conn, text string, args []string) (rows int, indexes string) {
	t.Helper()
	mustExec(t, db, `DEALLOCATE ALL`, `SET plan_cache_mode = force_generic_plan`, `PREPARE statement AS `+text)
	var plan string
	query := `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE statement (` + strings.Join(args, ", ") + `)`
	if err := db.QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	type node struct {
		Type     string  `json:"Node Type"`
		Index    string  `json:"Index Name"`
		Rows     float64 `json:"Actual Rows"`
		Loops    float64 `json:"Actual Loops"`
		Filtered float64 `json:"Rows Removed by Filter"`
		Plans    []node
	}
	var roots []struct{ Plan node }
	if err := json.Unmarshal([]byte(plan), &roots); err != nil {
		t.Fatal(err)
	}
	var walk func(node)
	walk = func(n node) {
		if strings.HasSuffix(n.Type, "Scan") {
			rows += int((n.Rows + n.Filtered) * n.Loops)
			indexes += " " + n.Index
		}
		for _, child := range n.Plans {
			walk(child)
		}
	}
	walk(roots[0].Plan)
	return rows, indexes
}
