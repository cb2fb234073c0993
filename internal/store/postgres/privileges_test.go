package postgres

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
)

var _ store.WriteChecker = (*Store)(nil)

// A server whose role lacked privileges on some tables reported that it was ready, but could not
// record decisions.
func TestCheckWritable_ReportsEveryMissingPrivilege(t *testing.T) {
	connString := pgtest.New(t)
	restricted := restrictedUser(t, connString)
	mustOpen(t, connString, Config{})
	owner, role := raw(t, connString), raw(t, restricted).Config().User
	mustExec(t, owner, `GRANT USAGE ON SCHEMA fermata TO `+role)
	for table, rights := range requiredPrivileges {
		mustExec(t, owner, `GRANT `+rights+` ON fermata.`+table+` TO `+role)
	}
	mustExec(t, owner, `GRANT UPDATE ON fermata.feed_base TO `+role, `GRANT USAGE ON ALL SEQUENCES IN SCHEMA fermata TO `+role)
	s := mustOpen(t, restricted, Config{})
	if err := s.CheckWritable(t.Context()); err != nil {
		t.Fatalf("with everything: %v", err)
	}
	missing := func(right, of string) {
		t.Helper()
		if err := s.CheckWritable(t.Context()); !errors.Is(err, ErrDenied) || !strings.Contains(err.Error(), right+" on "+of) {
			t.Errorf("without %s on %s: %v", right, of, err)
		}
	}
	for table, rights := range requiredPrivileges {
		for right := range strings.SplitSeq(rights, ", ") {
			mustExec(t, owner, `REVOKE `+right+` ON fermata.`+table+` FROM `+role)
			missing(right, table)
			mustExec(t, owner, `GRANT `+right+` ON fermata.`+table+` TO `+role)
		}
	}
	mustExec(t, owner, `REVOKE USAGE ON ALL SEQUENCES IN SCHEMA fermata FROM `+role)
	missing("USAGE", "ready_numbers")
}

// A new table in a migration must be added to requiredPrivileges.
func TestCheckWritable_CoversEveryTable(t *testing.T) {
	connString := pgtest.New(t)
	mustOpen(t, connString, Config{})
	rows, err := raw(t, connString).Query(t.Context(), `SELECT tablename::text FROM pg_tables WHERE schemaname = 'fermata'`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if requiredPrivileges[table] == "" {
			t.Errorf("%s is missing", table)
		}
	}
	for table := range requiredPrivileges {
		if !slices.Contains(tables, table) {
			t.Errorf("%s is not a table", table)
		}
	}
}

// After a failover the connections may lead to a read-only server.
func TestCheckWritable_ReadOnlyServerReturnsError(t *testing.T) {
	connString := pgtest.New(t)
	s := mustOpen(t, connString, Config{MaxConns: 1})
	mustExec(t, raw(t, pgtest.Superuser(t, connString)), `ALTER DATABASE `+raw(t, connString).Config().Database+` SET default_transaction_read_only = on`)
	s.pool.Reset()
	if err := s.CheckWritable(t.Context()); !errors.Is(err, ErrUnavailable) {
		t.Errorf("%v; want ErrUnavailable", err)
	}
}
