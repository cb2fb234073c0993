package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// prepared is a database with tables and the statements that reset it.
type prepared struct {
	database, user string
	empty          []string
}

// Prepared returns the connection string of a database with the tables and rows that prepare
// creates. It belongs to this test until the test ends. Creating the tables of a store takes ten
// times as long as emptying them, so databases of earlier tests are reused. Tests must not change
// the tables themselves; all tests of a package must use the same prepare.
func Prepared(t testing.TB, prepare func(connString string) error) string {
	t.Helper()
	c, ctx := sharedCluster(t), context.Background()
	p, connString, err := c.reusedPrepared(ctx)
	if err == nil && p == nil {
		p, connString, err = c.prepare(ctx, prepare)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.prepared = append(c.prepared, p)
	})
	return connString
}

// reusedPrepared returns the database of an earlier test after resetting it; nil if there is none.
// Connections of the earlier test are closed and do not know the new password.
func (c *Cluster) reusedPrepared(ctx context.Context) (p *prepared, connString string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.prepared) == 0 {
		return nil, "", nil
	}
	p = c.prepared[len(c.prepared)-1]
	c.prepared = c.prepared[:len(c.prepared)-1]
	password := rand.Text()
	statements := append([]string{fmt.Sprintf(`ALTER ROLE %s PASSWORD '%s'`, p.user, password), terminateOthersSQL}, p.empty...)
	return p, c.url(p.user, password, p.database), c.exec(ctx, p.database, statements...)
}

// prepare creates a database and determines how to reset it: every table that is empty now, without
// its triggers, and every sequence.
func (c *Cluster) prepare(ctx context.Context, prepare func(connString string) error) (*prepared, string, error) {
	database, connString, err := c.newDatabase(ctx)
	if err == nil {
		err = prepare(connString)
	}
	if err != nil {
		return nil, "", err
	}
	config, err := pgx.ParseConfig(connString)
	if err != nil {
		return nil, "", err
	}
	conn, err := pgx.Connect(ctx, c.url("postgres", c.password, database))
	if err != nil {
		return nil, "", err
	}
	defer conn.Close(ctx)
	p := &prepared{database: database, user: config.User, empty: []string{`SET session_replication_role = replica`}}
	for _, table := range list(ctx, conn, &err, `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`) {
		if len(list(ctx, conn, &err, `SELECT '' FROM `+table+` LIMIT 1`)) == 0 {
			p.empty = append(p.empty, `DELETE FROM `+table)
		}
	}
	for _, sequence := range list(ctx, conn, &err, `SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences`) {
		p.empty = append(p.empty, `ALTER SEQUENCE `+sequence+` RESTART`)
	}
	return p, connString, err
}

// list returns the rows of a query. It sets err, and does nothing if err is set already.
func list(ctx context.Context, conn *pgx.Conn, err *error, query string) (found []string) {
	if *err != nil {
		return nil
	}
	rows, failed := conn.Query(ctx, query)
	if failed == nil {
		found, failed = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	*err = failed
	return found
}
