package postgres

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/fixture"
)

// Rows that were deleted last are at the end of the files, whose space is returned to the system.
func TestVacuum_ShrinksTables(t *testing.T) {
	connString := prepared(t)
	s := mustOpen(t, connString, Config{})
	big := make([]byte, 4<<20)
	if _, err := rand.Read(big); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), demo, 0, store.Delta{Put: []store.Part{{Name: "big", Data: big}}}); err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		t.Helper()
		size, err := s.Size(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return size.Bytes
	}
	full := size()
	if err := s.Delete(t.Context(), demo); err != nil {
		t.Fatal(err)
	}
	if full < int64(len(big)) || size() < full {
		t.Fatalf("%d bytes, and %d without vacuum", full, size())
	}
	// Deleted rows may still be visible to a transaction of another test on the same server.
	deadline := time.Now().Add(time.Minute)
	for size() > full-int64(len(big)) && time.Now().Before(deadline) {
		if err := s.Vacuum(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if left := size(); left > full-int64(len(big)) {
		t.Errorf("%d bytes are left of %d", left, full)
	}
}

func TestSize_CountsOrEstimates(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	for n := range 7 {
		fixture.CreateRun(t, s, fmt.Sprint(n))
	}
	size, err := s.Size(t.Context())
	if err != nil || size.Rows["runs"] != 7 || size.Rows["events"] != 7 || size.Rows["interrupts"] != 0 || len(size.Rows) != len(tables) {
		t.Errorf("the size is %+v, %v", size, err)
	}
	// 20 000 rows of half a kilobyte are estimated.
	if _, err := s.pool.Exec(t.Context(), `
INSERT INTO once (name, value) SELECT convert_to('name ' || n, 'UTF8'), decode(repeat(md5(n::text), 16), 'hex') FROM generate_series(1, 40000) AS n`); err != nil {
		t.Fatal(err)
	}
	if err := s.Vacuum(t.Context()); err != nil {
		t.Fatal(err)
	}
	if size, err = s.Size(t.Context()); err != nil || size.Rows["once"] < 30_000 || size.Rows["once"] > 50_000 || size.Bytes < exactCountLimit {
		t.Errorf("the size is %+v, %v", size, err)
	}
}

// A call of Reencrypt reads a bounded number of bytes for any limit.
func TestReencrypt_ReadsABoundedNumberOfBytes(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	big := bytes.Repeat([]byte("x"), 1<<20)
	const parts = 3 * reencryptChunk / 2
	delta := store.Delta{}
	for n := range parts {
		delta.Put = append(delta.Put, store.Part{Name: fmt.Sprint(n), Data: big})
	}
	if _, err := s.Save(t.Context(), demo, 0, delta); err != nil {
		t.Fatal(err)
	}
	var calls []int
	for after := ""; ; {
		seen := 0
		next, err := s.Reencrypt(t.Context(), after, 1000, func(store.SealedValue) ([]byte, error) { seen++; return nil, nil })
		if err != nil {
			t.Fatal(err)
		}
		if calls = append(calls, seen); next == "" {
			break
		}
		after = next
	}
	// the last call finds no documents
	if len(calls) != 3 || calls[0] != reencryptChunk || calls[0]+calls[1] != parts {
		t.Errorf("calls have read %v of %d", calls, parts)
	}
}

func TestReencrypt_ForeignCursorReturnsErrInvalid(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	for _, cursor := range []string{"x", "AA", "!", "_wAAAAAAAAAA", reencryptCursor{column: len(sealedColumns)}.String()} {
		if _, err := s.Reencrypt(t.Context(), cursor, 1, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q: %v; want ErrKey", cursor, err)
		}
	}
}

// Reencrypt must cover every sealed column.
func TestReencrypt_CoversEverySealedColumn(t *testing.T) {
	s := mustOpen(t, prepared(t), Config{})
	rows, err := s.pool.Query(t.Context(), `
SELECT c.relname || '.' || a.attname FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND a.attstorage = 'e' OR c.relname = 'once' AND a.attname = 'value'`)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	var column string
	for rows.Next() {
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		found++
	}
	if rows.Err() != nil || found != len(sealedColumns) {
		t.Errorf("%d sealed columns, %v; Reencrypt covers %d", found, rows.Err(), len(sealedColumns))
	}
}
