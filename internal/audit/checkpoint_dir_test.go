package audit_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// growLog adds records to the log of an account in a store.
func growLog(t *testing.T, s store.Store, account string, n int) {
	t.Helper()
	for range n {
		line, err := audit.NewLine(account, alice, place, audit.RequestWithdrawn{})
		if err == nil {
			err = s.CommitWrites(t.Context(), account, store.Writes{Audit: [][]byte{line}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckpointDir_KeepsCheckpointsPerAccount(t *testing.T) {
	dir := t.TempDir()
	f, err := audit.CreateCheckpointDir(filepath.Join(dir, "kept"))
	if err != nil {
		t.Fatal(err)
	}
	accounts := []string{"acme", "", "..", "a/../../b", "Ü ber", strings.Repeat("x", 300), strings.Repeat("y", 300)}
	for n, account := range accounts {
		if last, err := f.Last(account); last != nil || err != nil {
			t.Errorf("%q: %q, %v", account, last, err)
		}
		for _, size := range []int64{int64(n) + 1, 9, 100} {
			if err := f.Add(account, audit.Checkpoint{Size: size, Note: []byte(account)}, "key-1"); err != nil {
				t.Fatal(err)
			}
		}
		// the first one stays
		if err := f.Add(account, audit.Checkpoint{Size: 100, Note: []byte("another")}, "key-2"); err != nil {
			t.Fatal(err)
		}
		last, err := f.Last(account)
		if err != nil || string(last) != account {
			t.Errorf("%q: %q, %v", account, last, err)
		}
		if keys, err := f.PublicKeys(account); err != nil || strings.Join(keys, " ") != "key-1 key-2" {
			t.Errorf("%q: %q, %v", account, keys, err)
		}
		if notes, err := f.Notes(account); err != nil || len(notes) < 2 {
			t.Errorf("%q: %q, %v", account, notes, err)
		}
	}
	inside, err := os.ReadDir(filepath.Join(dir, "kept"))
	if err != nil || len(inside) != len(accounts) {
		t.Errorf("%d directories for %d accounts, %v", len(inside), len(accounts), err)
	}
	if outside, err := os.ReadDir(dir); err != nil || len(outside) != 1 {
		t.Errorf("unexpected files: %v, %v", outside, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "kept", "*", "*.part-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A log that does not extend a checkpoint that was kept elsewhere is not signed, even if its own
// checkpoints, which are in the store, do not contradict it.
func TestCreateCheckpoint_ChecksExternalCheckpoints(t *testing.T) {
	key := audit.NewKey()
	honest := memory.NewStore(nil)
	growLog(t, honest, "acme", 5)
	kept, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(honest), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	growLog(t, honest, "acme", 3)
	if next, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(honest), "acme", key, kept.Note); err != nil || next.Size != 8 {
		t.Errorf("%+v, %v", next, err)
	}
	for name, records := range map[string]int{"shorter": 3, "as long": 5, "longer": 9, "nothing at all": 0} {
		forged := memory.NewStore(nil)
		growLog(t, forged, "acme", records)
		if c, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(forged), "acme", key, kept.Note); !errors.Is(err, audit.ErrFork) {
			t.Errorf("%s: signed %+v, %v", name, c, err)
		}
		for range audit.NewStoreLog(forged).Checkpoints(t.Context(), "acme") {
			t.Errorf("%s: it was stored", name)
		}
	}
	if _, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(honest), "acme", key, []byte("torn")); !errors.Is(err, audit.ErrCheckpoint) {
		t.Errorf("a truncated checkpoint: %v", err)
	}
}

// With many checkpoints, the last one is found without reading all of them.
func TestStoreLog_FindsLastOfManyCheckpoints(t *testing.T) {
	key := audit.NewKey()
	s := memory.NewStore(nil)
	counted := &documentCounter{Store: s}
	log := audit.NewStoreLog(counted)
	for n := range 250 {
		growLog(t, s, "acme", 1+n%3)
		c, err := audit.CreateCheckpoint(t.Context(), log, "acme", key)
		if err != nil {
			t.Fatal(err)
		}
		if n%10 != 9 {
			continue
		}
		before := counted.papers
		again, err := audit.CreateCheckpoint(t.Context(), log, "acme", key)
		if err != nil || !bytes.Equal(again.Note, c.Note) {
			t.Fatalf("of %d: %+v, %v", n+1, again, err)
		}
		if read := counted.papers - before; read > 200 {
			t.Fatalf("of %d: %d documents were read", n+1, read)
		}
	}
	if c, err := audit.CreateCheckpoint(t.Context(), log, "other", key); !errors.Is(err, audit.ErrEmpty) {
		t.Errorf("%+v, %v", c, err)
	}
}

// documentCounter counts the documents that are read.
type documentCounter struct {
	store.Store
	papers int
}

func (c *documentCounter) Documents(ctx context.Context, account string, kind store.DocumentKind, filter store.DocumentFilter) ([]store.Document, error) {
	page, err := c.Store.Documents(ctx, account, kind, filter)
	c.papers += len(page)
	return page, err
}

// A missing directory is not created: otherwise an unmounted volume or a wrong name would restart
// the signing, and earlier checkpoints would be ignored.
func TestCheckpointDir_MissingDirIsNotRecreated(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	if _, err := audit.OpenCheckpointDir(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory that never existed: %v", err)
	}
	f, err := audit.CreateCheckpointDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Add("acme", audit.Checkpoint{Size: 1, Note: []byte("1")}, "key"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if last, err := f.Last("acme"); err == nil {
		t.Errorf("the last checkpoint of a missing directory: %q", last)
	}
	if keys, err := f.PublicKeys("acme"); err == nil {
		t.Errorf("the keys of a missing directory: %q", keys)
	}
	if err := f.Add("acme", audit.Checkpoint{Size: 2, Note: []byte("2")}, "key"); err == nil {
		t.Error("the directory was created again")
	}
}
