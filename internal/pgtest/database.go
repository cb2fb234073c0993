package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Database returns the connection string of an empty database on this server; see [New].
//
// Creating a database takes ten times as long as emptying one, so databases of earlier tests are
// reused. Their users are not, so connections of an earlier test have no privileges.
func (c *Cluster) Database(t testing.TB) string {
	t.Helper()
	// also called from a Cleanup, after the context of the test has ended
	database, connString, err := c.newDatabase(context.Background())
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.used = append(c.used, database)
	})
	return connString
}

// newDatabase creates or empties a database for a new user.
func (c *Cluster) newDatabase(ctx context.Context) (database, connString string, err error) {
	user, password := fmt.Sprintf("%suser%d", c.prefix, c.users.Add(1)), rand.Text()
	database, err = c.reusedDatabase(ctx)
	if err == nil && database == "" {
		database = fmt.Sprintf("%stest%d", c.prefix, c.databases.Add(1))
		err = c.exec(ctx, "postgres", `CREATE DATABASE `+database)
	}
	if err == nil {
		err = c.exec(ctx, "postgres", fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'`, user, password),
			fmt.Sprintf(`ALTER DATABASE %s OWNER TO %s`, database, user))
	}
	return database, c.url(user, password, database), err
}

// Superuser returns the connection string of the superuser for a database on this server.
func (c *Cluster) Superuser(t testing.TB, connString string) string {
	t.Helper()
	config, err := pgx.ParseConfig(connString)
	if err != nil {
		t.Fatal(err)
	}
	return c.url("postgres", c.password, config.Database)
}

// reusedDatabase returns an emptied database of an earlier test, or "" if there is none.
func (c *Cluster) reusedDatabase(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.used) == 0 {
		return "", nil
	}
	database := c.used[len(c.used)-1]
	c.used = c.used[:len(c.used)-1]
	return database, c.exec(ctx, database, terminateOthersSQL,
		`DO $$
		DECLARE name text;
		BEGIN
			FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' LOOP
				EXECUTE format('DROP SCHEMA %I CASCADE', name);
			END LOOP;
		END $$`,
		`CREATE SCHEMA public AUTHORIZATION pg_database_owner`,
		`GRANT USAGE ON SCHEMA public TO PUBLIC`,
		`ALTER DATABASE `+database+` RESET ALL`)
}

const terminateOthersSQL = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`

// exec runs statements as the superuser.
func (c *Cluster) exec(ctx context.Context, database string, statements ...string) error {
	// A test may have set its database to read-only.
	conn, err := pgx.Connect(ctx, c.url("postgres", c.password, database)+"&default_transaction_read_only=off")
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("%w in %s", err, statement)
		}
	}
	return nil
}

func (c *Cluster) url(user, password, database string) string {
	return (&url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(user, password),
		Host:     fmt.Sprintf("127.0.0.1:%d", c.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}).String()
}

// Restore copies a schema to a database of this server with a dump, like restoring a backup.
func (c *Cluster) Restore(t testing.TB, schema, from, to string) {
	t.Helper()
	dump, err := c.command("pg_dump", "--no-owner", "--schema="+schema, "--format=custom", from).Output()
	if err == nil {
		restore := c.command("pg_restore", "--no-owner", "--exit-on-error", "--dbname="+to)
		restore.Stdin = bytes.NewReader(dump)
		_, err = restore.Output()
	}
	if err != nil {
		text := ""
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			text = string(failed.Stderr)
		}
		t.Fatalf("pgtest: %v: %s", err, text)
	}
}
