package postgres

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// rowCounts creates data in which no statement may read everything of a table, an account or a run.
const rowCounts = `
INSERT INTO checkpoints (account, run, version, updated_at)
SELECT 'acme', convert_to('run ' || n, 'UTF8'), 1, now() FROM generate_series(1, 5000) AS n;
INSERT INTO checkpoint_parts (checkpoint, name, data)
SELECT c.id, convert_to('part ' || n, 'UTF8'), '{}' FROM checkpoints AS c, generate_series(1, 3) AS n;
INSERT INTO runs (account, run, state_key, generation, provider, graph, input_digest, status, fence, owner, lease_until, events, created_at, updated_at)
SELECT 'acme', convert_to('run ' || n, 'UTF8'), convert_to('key ' || n, 'UTF8'), 1, '', '', '', 'running', 1, '', now() + interval '1 year', 3, now() - n * interval '1 s', now()
FROM generate_series(1, 5000) AS n;
INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at, deadline)
SELECT account, run, run, 1, '', '', '', 'action', 0, now(), now() + interval '1 year' FROM runs;
INSERT INTO interrupts (account, id, run, place, address, kind, shown, action, timeout, created_at)
SELECT 'acme', convert_to('long ' || n, 'UTF8'), 'run 77', n + 1, '', '', '', 'action', 0, now() FROM generate_series(1, 5000) AS n;
INSERT INTO resumes (account, actor, id, body, run, result, interrupt, created_at) SELECT account, 'ann', id, '', run, 'accepted', '', now() FROM interrupts;
UPDATE interrupts SET state = 'decided', verdict = 'approve', final = action, decided_by = 'ann', via = '', source = 'person', decided_at = now(), resume = id
WHERE place <> 1 OR sha256(id) < '\x80';
UPDATE interrupts SET applied = true WHERE state = 'decided' AND sha256(id) < '\xf0';
INSERT INTO effects (account, interrupt, number, run, digest, target_key, fence, started_at) SELECT account, id, 1, run, final, '', 1, now() FROM interrupts WHERE verdict = 'approve';
UPDATE effects SET state = 'succeeded', ended_at = now() WHERE interrupt_key < '\xf0';
INSERT INTO events (account, run, number, kind, interrupt, at) SELECT account, run, n, 'asked', '', now() FROM runs, generate_series(1, 3) AS n;
UPDATE runs SET status = 'ready', ready_no = events, owner = NULL, lease_until = NULL WHERE key < '\x55';
UPDATE runs SET status = 'completed', owner = NULL, lease_until = NULL WHERE key > '\xaa';
INSERT INTO once (name, value) SELECT convert_to('name ' || n, 'UTF8'), '' FROM generate_series(1, 1000) AS n;
INSERT INTO papers (account, kind, id, run, revision, next_at, created_at, updated_at)
SELECT account, 'request', id, run, 1, now() + place * interval '1 s', now(), now() FROM interrupts;
INSERT INTO audit (account, seq, raw) SELECT convert_to('account ' || n, 'UTF8'), 1, chain_link(0, chain_hash(NULL)) FROM generate_series(1, 1000) AS n;
SELECT write_beside('acme', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', array_agg('{"a":1}'::bytea)) FROM generate_series(1, 1000)`

// byConstraints lists the queries of foreign keys, triggers and functions.
var byConstraints = map[string]string{
	"cascade of a checkpoint": `DELETE FROM checkpoint_parts WHERE checkpoint = $1`,
	"run without interrupts":  `SELECT FROM interrupts WHERE $1 = run_key FOR KEY SHARE`,
	"interrupt of a run":      `SELECT FROM runs WHERE key = $1 FOR KEY SHARE`,
	"resume without decision": `SELECT FROM interrupts WHERE $1 = resume_key FOR KEY SHARE`,
	"decision of a resume":    `SELECT FROM resumes WHERE key = $1 FOR KEY SHARE`,
	"outcome of a receipt":    `SELECT FROM resumes WHERE run_key = $1 AND rest = $2 AND outcome IS NULL`,
	"approve without effects": `SELECT FROM effects WHERE $1 = interrupt_key AND $2 = approval FOR KEY SHARE`,
	"effect of an approve":    `SELECT FROM interrupts WHERE key = $1 AND approval = $2 FOR KEY SHARE`,
	"newer run":               `SELECT FROM runs WHERE handle = $1 AND generation > $2`,
	"anything undone":         `SELECT FROM interrupts WHERE run_key = $1 AND NOT applied AND state = 'decided'`,
	"line before this one":    `SELECT raw FROM audit WHERE key = $1 AND seq = $2`,
	"end of a chain":          `SELECT seq, raw FROM audit WHERE key = sha256($1) ORDER BY seq DESC LIMIT 1`,
	"document that changes":   `UPDATE papers SET revision = revision + 1 WHERE key = sha256(sha256($1) || sha256($2) || sha256($3)) AND account = $1 AND revision = $4`,
	"deadline that moves": `UPDATE interrupts SET deadline = $3 WHERE key = sha256(sha256($1) || sha256($2)) AND account = $1
              AND state IS NOT DISTINCT FROM 'pending' AND deadline IS DISTINCT FROM $3`,
}

// orderedScans are scans without a condition: they take the first rows of an index that holds only
// candidates.
var orderedScans = map[string]string{"claimNextSQL": "runs_ready", "pendingByKindSQL": "interrupts_waiting"}

// narrowIndexes lists what a scan of an index must use: a run or an account alone may be big.
// wholeRunStatements are those that read everything of a run.
var (
	narrowIndexes = map[string][]string{
		"interrupts_of_run": {"run_key", "applied"}, "effects_of_run": {"run_key", "state"}, "runs_listed": {"created_at"}, "events_feed": {"xid"},
	}

	// boundedSorts lists the statements that sort their arguments, or what one run has of a kind.
	boundedSorts = []string{"decideSQL", "documentsOfRunByKindSQL"}

	wholeRunStatements = []string{"interruptsSQL", "effectsSQL", "deleteInterruptsSQL", "deleteEffectsSQL", "run without interrupts"}
)

// No call may take longer with more runs or with a longer run. The server chooses the plan by its
// statistics, which are empty at first, and a connection keeps the plan.
func TestPlans_NoStatementScansATableAccountOrRun(t *testing.T) {
	connString := pgtest.New(t)
	for schema, text := range map[string]string{"many": rowCounts, "few": strings.ReplaceAll(rowCounts, "5000", "100")} {
		s := mustOpen(t, connString, Config{Schema: schema})
		plans(t, s, schema+" rows to come")
		if _, err := s.pool.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		plans(t, s, schema+" rows without statistics")
		mustExec(t, raw(t, connString), `SET search_path = `+schema, `ANALYZE`)
		plans(t, s, schema+" rows with statistics")
	}
}

// plans checks the plans of all statements.
func plans(t *testing.T, s *Store, when string) {
	texts := statements(t)
	maps.Copy(texts, byConstraints)
	// on no table, on a single row, or on all of it
	for _, other := range []string{"countSQL", "sizeSQL", "notifySQL", "nowSQL", "thisServerSQL", "sameServerSQL", "advanceFeedSQL"} {
		delete(texts, other)
	}
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	// as with a million rows
	for _, eager := range []string{"parallel_setup_cost", "parallel_tuple_cost", "min_parallel_table_scan_size", "min_parallel_index_scan_size"} {
		if _, err := conn.Exec(t.Context(), `SET `+eager+` = 0`); err != nil {
			t.Fatal(err)
		}
	}
	t.Run(when, func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			for _, scan := range explain(t, conn, texts[name]) {
				if !scan.cheap(name) {
					t.Errorf("%s has %s in the plan of\n%s", name, scan, texts[name])
				}
			}
		}
	})
}

// scan is a node of a plan that reads a table.
type scan struct {
	Type      string `json:"Node Type"`
	Table     string `json:"Relation Name"`
	Index     string `json:"Index Name"`
	Condition string `json:"Index Cond"`
	Plans     []scan

	limited bool // it is below a limit, with no other limit in between
}

func (s scan) String() string {
	return strings.Join(strings.Fields(fmt.Sprint(s.Type, " ", s.Table, " ", s.Index, " ", s.Condition)), " ")
}

// cheap reports whether a node reads few rows, independent of the table size.
func (s scan) cheap(statement string) bool {
	switch {
	case strings.HasPrefix(s.Type, "Gather"): // it starts other processes
		return false
	case s.Type == "Sort" && s.limited: // it reads everything for a few rows
		return s.anyLimit() || slices.Contains(boundedSorts, statement)
	// its index is another node
	case !strings.HasSuffix(s.Type, "Scan") || s.Table == "" && s.Index == "" || s.Type == "Bitmap Heap Scan":
		return true
	case s.Index != "" && s.Index == orderedScans[statement]:
		return true
	case slices.ContainsFunc(narrowIndexes[s.Index], func(column string) bool { return !strings.Contains(s.Condition, column) }):
		return slices.Contains(wholeRunStatements, statement)
	}
	return s.Condition != ""
}

// anyLimit reports whether something below a node has a limit.
func (s scan) anyLimit() bool {
	return slices.ContainsFunc(s.Plans, func(child scan) bool { return child.Type == "Limit" || child.anyLimit() })
}

// explain returns all nodes of the generic plan.
func explain(t *testing.T, conn *pgxpool.Conn, text string) (scans []scan) {
	t.Helper()
	args := make([]string, parameters(text))
	for i := range args {
		args[i] = "NULL"
	}
	execute := `EXECUTE statement`
	if len(args) > 0 {
		execute += ` (` + strings.Join(args, ", ") + `)`
	}
	for _, command := range []string{`DEALLOCATE ALL`, `PREPARE statement AS ` + text} {
		if _, err := conn.Exec(t.Context(), command, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Errorf("%v in\n%s", err, command)
			return nil
		}
	}
	var plan string
	if err := conn.QueryRow(t.Context(), `EXPLAIN (FORMAT JSON) `+execute, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var roots []struct{ Plan scan }
	if err := json.Unmarshal([]byte(plan), &roots); err != nil || len(roots) != 1 {
		t.Fatalf("%v in\n%s", err, plan)
	}
	var walk func(scan)
	walk = func(node scan) {
		scans = append(scans, node)
		for _, child := range node.Plans {
			child.limited = node.limited || node.Type == "Limit"
			walk(child)
		}
	}
	walk(roots[0].Plan)
	return scans
}

// parameters returns the number of parameters of a statement.
func parameters(text string) (count int) {
	for _, found := range regexp.MustCompile(`\$(\d+)`).FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1])
		count = max(count, n)
	}
	return count
}
