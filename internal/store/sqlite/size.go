package sqlite

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	sizeSQL = `
SELECT page_count * page_size, freelist_count * page_size FROM pragma_page_count, pragma_page_size, pragma_freelist_count`

	// freePagesSQL returns the number of unused pages and whether incremental vacuum is possible.
	freePagesSQL = `SELECT freelist_count, auto_vacuum = 2 FROM pragma_freelist_count, pragma_auto_vacuum`
)

// tables lists the tables that grow.
var tables = []string{"runs", "interrupts", "resumes", "effects", "events", "checkpoints", "checkpoint_parts", "once", "credentials", "papers", "audit"}

// Size returns how much data is stored; see [store.Maintenance]. It reads an index of each table to
// count the rows, so it should not be called every minute. Pages in the WAL count as part of the
// file.
func (s *Store) Size(ctx context.Context) (store.Size, error) {
	return snapshot(ctx, s, "measure", func(t txn) (store.Size, error) {
		size := store.Size{Rows: make(map[string]int64)}
		if err := t.tx.QueryRowContext(ctx, sizeSQL).Scan(&size.Bytes, &size.Free); err != nil {
			return store.Size{}, err
		}
		for _, table := range tables {
			var rows int64
			if err := t.tx.QueryRowContext(ctx, `SELECT count(*) FROM `+table).Scan(&rows); err != nil {
				return store.Size{}, err
			}
			size.Rows[table] = rows
		}
		return size, nil
	})
}

// vacuumStep is the number of pages per step of Vacuum, about the size of a big save.
const vacuumStep = 500

// Vacuum returns the space of deleted data to the system; see [store.Maintenance]. It runs in small
// steps between which others can write. An old file without incremental vacuum is rewritten once,
// which blocks writers. While a reader uses an old snapshot, the file does not shrink; the next
// Vacuum does it.
func (s *Store) Vacuum(ctx context.Context) error {
	if err := s.vacuum(ctx); err != nil {
		return s.fail(ctx, "vacuum", err)
	}
	return nil
}

func (s *Store) vacuum(ctx context.Context) error {
	var unused int64
	var bitByBit bool
	if err := s.writer.QueryRowContext(ctx, freePagesSQL).Scan(&unused, &bitByBit); err != nil {
		return err
	}
	if !bitByBit {
		if err := s.rewrite(ctx); err != nil {
			return err
		}
		unused = 0
	}
	for unused > 0 {
		before := unused
		if err := drain(ctx, s.writer, fmt.Sprintf(`PRAGMA incremental_vacuum(%d)`, vacuumStep)); err != nil {
			return err
		}
		if err := s.writer.QueryRowContext(ctx, freePagesSQL).Scan(&unused, &bitByBit); err != nil {
			return err
		}
		if unused >= before { // others delete faster than this
			break
		}
	}
	return s.truncate(ctx)
}

// truncate shrinks the file as far as possible now. It does not wait for readers of an old
// snapshot, because writers would wait too.
func (s *Store) truncate(ctx context.Context) error {
	return s.checkpointWAL(ctx, "TRUNCATE", 0)
}

// rewrite rewrites the file without unused pages and with incremental vacuum.
func (s *Store) rewrite(ctx context.Context) error {
	conn, err := s.writer.Conn(ctx) // the pragma applies to a vacuum on the same connection
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, text := range []string{`PRAGMA auto_vacuum = incremental`, `VACUUM`} {
		if _, err := conn.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// drain reads all rows of a statement. Incremental vacuum frees one page per row.
func drain(ctx context.Context, db querier, text string) error {
	rows, err := db.QueryContext(ctx, text)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return rows.Err()
}
