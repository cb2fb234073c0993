package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
)

// Nothing that a call does may take longer the more runs there are. The server chooses how it does it, by what it knows of
// the tables (nothing at first) and of the arguments (nothing once it has a plan for all of them), so it is asked in each situation.
func TestStatements_ReadNoWholeTable(t *testing.T) {
	connString := pgtest.New(t)
	mustOpen(t, connString, Config{})
	conn := raw(t, connString)
	mustExec(t, conn, `SET search_path = fermata`,
		`INSERT INTO checkpoints (account, run, version, updated_at)
		 SELECT 'acme', convert_to('run ' || n, 'UTF8'), 1, now() FROM generate_series(1, 10000) AS n`,
		`INSERT INTO checkpoint_parts (checkpoint, name, data)
		 SELECT c.id, convert_to('part ' || n, 'UTF8'), '{}' FROM checkpoints AS c, generate_series(1, 3) AS n`)
	for _, statistics := range []string{"without statistics", "with statistics"} {
		for _, mode := range []string{"force_generic_plan", "force_custom_plan"} {
			for _, names := range []int{0, 5, 1000} {
				t.Run(fmt.Sprintf("%s/%s/%d parts", statistics, mode, names), func(t *testing.T) {
					mustExec(t, conn, `SET plan_cache_mode = `+mode)
					array := `array_fill('x'::bytea, ARRAY[` + fmt.Sprint(names) + `])`
					key := `'acme', 'run 77'`
					wantIndexes(t, conn, loadSQL, key)
					wantIndexes(t, conn, removeSQL, key)
					wantIndexes(t, conn, createSQL, key+", "+array+", "+array)
					wantIndexes(t, conn, advanceSQL, key+", "+array+", "+array+", 1, "+array)
					wantIndexes(t, conn, `DELETE FROM checkpoint_parts WHERE checkpoint = $1`, `77`) // the cascade
				})
			}
		}
		mustExec(t, conn, `ANALYZE`)
	}
}

func wantIndexes(t *testing.T, conn *pgx.Conn, text, args string) {
	t.Helper()
	mustExec(t, conn, `DEALLOCATE ALL`, `PREPARE statement AS `+text)
	rows, err := conn.Query(t.Context(), `EXPLAIN (COSTS off) EXECUTE statement (`+args+`)`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(plan) == 0 {
		t.Fatalf("no plan: %v", err)
	}
	for _, line := range plan {
		if strings.Contains(line, "Seq Scan") {
			t.Errorf("plan of %s\n%s", text, strings.Join(plan, "\n"))
			return
		}
	}
	if !strings.Contains(text, "INSERT INTO checkpoints") && !strings.Contains(strings.Join(plan, "\n"), "Index") {
		t.Errorf("no index in the plan of %s\n%s", text, strings.Join(plan, "\n"))
	}
}
