package sqlite

import (
	"context"
	"fmt"

	"github.com/fermata-go/fermata/store"
)

const (
	sizeSQL = `
SELECT page_count * page_size, freelist_count * page_size FROM pragma_page_count, pragma_page_size, pragma_freelist_count`

	// freePagesSQL says how many pages are unused, and whether they can be given back bit by bit.
	freePagesSQL = `SELECT freelist_count, auto_vacuum = 2 FROM pragma_freelist_count, pragma_auto_vacuum`
)

// tables are those that grow.
var tables = []string{"runs", "interrupts", "resumes", "effects", "events", "checkpoints", "checkpoint_parts", "once", "credentials", "papers", "audit"}

// Size says how much there is; see [store.Maintenance]. To count the rows, it reads an index of each table: not for every minute. What
// waits in the write-ahead log to be moved into the file is counted as if it were there.
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

// vacuumStep is how many pages a step of Vacuum moves: about as much as a big save writes.
const vacuumStep = 500

// Vacuum gives the room of what was deleted back; see [store.Maintenance]. It goes in small steps, and between them others can write.
// A file that was made before it could do so is rewritten once as a whole, and nobody can write meanwhile. As long as somebody
// reads an old state of the file, the file itself stays as large as it is; the next Vacuum makes it smaller.
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

// truncate makes the file as small as it can be now. It does not wait for those who read an old state: whoever wants to write would wait with it.
func (s *Store) truncate(ctx context.Context) error {
	return s.checkpointWAL(ctx, "TRUNCATE", 0)
}

// rewrite makes the file anew, without what is unused and so that the next time goes bit by bit.
func (s *Store) rewrite(ctx context.Context) error {
	conn, err := s.writer.Conn(ctx) // the wish counts for a vacuum on the same connection
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

// drain runs a statement to its end. Incremental vacuum has a row for each page, and is only as far as its rows were read.
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
