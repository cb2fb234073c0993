package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// readContinuously has overlapping readers at every moment. It returns a function that ends them.
func readContinuously(t *testing.T, s *Store) (end func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	comes := func() (leave func()) {
		tx, err := s.readers.BeginTx(t.Context(), nil)
		if err != nil {
			t.Error(err)
			return func() {}
		}
		var n int
		if err := tx.QueryRowContext(t.Context(), `SELECT count(*) FROM checkpoints`).Scan(&n); err != nil {
			t.Error(err)
		}
		return func() { tx.Rollback() }
	}
	leave := comes()
	var reading sync.WaitGroup
	reading.Go(func() {
		while := time.NewTicker(5 * time.Millisecond)
		defer while.Stop()
		for ctx.Err() == nil {
			<-while.C
			next := comes()
			leave()
			leave = next
		}
		leave()
	})
	return func() {
		stop()
		reading.Wait()
	}
}

// SQLite resets the WAL only without readers. On a busy server the WAL grew until the disk was
// full.
func TestWAL_StaysBoundedUnderContinuousReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fermata.db")
	s := mustOpen(t, path)
	end := readContinuously(t, s)
	defer end()
	key, version := store.Key{Account: "acme", Run: "r"}, int64(0)
	var err error
	for n := range 32 {
		if version, err = s.Save(t.Context(), key, version, putRun(strings.Repeat(string(rune('a'+n%2)), walLimit/8))); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > 3*walLimit {
		t.Errorf("the WAL has %d MB, %v", info.Size()>>20, err)
	}
}
