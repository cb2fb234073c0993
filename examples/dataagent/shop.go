package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/fermata-go/fermata/tool"
)

// Shop is the database. It is safe for concurrent use.
type Shop struct {
	reader, writer *sql.DB
}

// keysTable stores the idempotency keys.
const keysTable = "applied_keys"

// schema creates a new shop. calls counts the calls with a key: it shows repeated calls that
// changed nothing.
const schema = `
CREATE TABLE IF NOT EXISTS ` + keysTable + ` (key TEXT PRIMARY KEY, result TEXT NOT NULL, calls INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price INTEGER NOT NULL, discontinued BOOLEAN NOT NULL DEFAULT FALSE);
CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, product INTEGER NOT NULL REFERENCES products, amount INTEGER NOT NULL);
INSERT OR IGNORE INTO products VALUES (1, 'desk lamp', 3000, FALSE), (2, 'floor lamp', 9000, FALSE), (3, 'oil lamp', 2500, TRUE);
INSERT OR IGNORE INTO orders VALUES (1, 1, 2), (2, 2, 1);`

func openShop(path string) (*Shop, error) {
	s := new(Shop)
	var err error
	if s.writer, err = connect(path, "_txlock=immediate"); err != nil {
		return nil, err
	}
	if err := s.seed(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	// A statement that the policy allows as a read must not write, even if the policy is wrong.
	if s.reader, err = connect(path, "_pragma=query_only(1)"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func connect(path, options string) (*sql.DB, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// a Windows drive: file:///C:/…
	slashed := "/" + strings.TrimPrefix(filepath.ToSlash(full), "/")
	name := url.URL{Scheme: "file", Path: slashed, RawQuery: "_pragma=busy_timeout(5000)&" + options}
	return sql.Open("sqlite", name.String())
}

// seed fills a new database. It does not change one that has tables: some may have been dropped
// with approval.
func (s *Shop) seed() error {
	var tables int
	if err := s.writer.QueryRow("SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables > 0 {
		return err
	}
	tx, err := s.writer.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit
	if _, err := tx.Exec(schema); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the database.
func (s *Shop) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.reader, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// maxRows limits the size of results in the conversation.
const maxRows = 50

// Read returns the rows of a query, one per line. SQLite errors are reported to the model.
func (s *Shop) Read(ctx context.Context, query string) (string, error) {
	rows, err := s.reader.QueryContext(ctx, query)
	if err != nil {
		return "", modelError(ctx, err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return "", err
	}
	lines := []string{strings.Join(names, " | ")}
	for rows.Next() {
		if len(lines) > maxRows {
			lines = append(lines, "…")
			break
		}
		values, targets := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return "", err
		}
		texts := make([]string, len(values))
		for i, v := range values {
			texts[i] = fmt.Sprint(v)
		}
		lines = append(lines, strings.Join(texts, " | "))
	}
	if err := rows.Err(); err != nil {
		return "", modelError(ctx, err)
	}
	return strings.Join(lines, "\n"), nil
}

// Change runs a statement once per key. The key is stored in the same transaction.
func (s *Shop) Change(ctx context.Context, text, key string) (result string, err error) {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // does nothing after the commit
	const known = "UPDATE " + keysTable + " SET calls = calls + 1 WHERE key = ? RETURNING result"
	err = tx.QueryRowContext(ctx, known, key).Scan(&result)
	if err == nil {
		return result, tx.Commit()
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return "", err
	}
	done, err := tx.ExecContext(ctx, text)
	if err != nil {
		return "", modelError(ctx, err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return "", err
	}
	result = fmt.Sprintf("Done. Rows changed: %d.", n)
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+keysTable+" (key, result) VALUES (?, ?)", key, result); err != nil {
		return "", err
	}
	return result, tx.Commit()
}

// modelError converts an SQLite error to one that is reported to the model.
func modelError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return tool.Errorf("%v. Nothing was changed.", err)
}
