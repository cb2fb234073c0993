package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/audittest"
	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// tamperingStore is a store whose lines can be changed by an attacker.
type tamperingStore struct {
	audit.LineStore
	mu      sync.Mutex
	changed map[string][]store.AuditLine
}

func (b *tamperingStore) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, ok := b.changed[account]
	if !ok {
		return b.LineStore.AuditLines(ctx, account, after, limit)
	}
	lines = lines[min(after, int64(len(lines))):]
	return lines[:min(len(lines), limit)], ctx.Err()
}

func (b *tamperingStore) tamper(_ testing.TB, account string, rows [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed[account] = nil
	for i, raw := range rows {
		b.changed[account] = append(b.changed[account], store.AuditLine{Seq: int64(i + 1), Raw: raw})
	}
}

func appendTo(s audit.LineStore) func(context.Context, string, audit.Record) error {
	return func(ctx context.Context, account string, r audit.Record) error {
		line, err := audit.NewLine(account, r.Actor, r.Location, r.Body)
		if err != nil {
			return err
		}
		return s.CommitWrites(ctx, account, store.Writes{Audit: [][]byte{line}})
	}
}

func TestStoreLog_PassesSuite(t *testing.T) {
	for name, open := range map[string]func(*testing.T) audit.LineStore{
		"memory": func(*testing.T) audit.LineStore { return memory.NewStore(nil) },
		"sqlite": func(t *testing.T) audit.LineStore {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		"postgres": func(t *testing.T) audit.LineStore {
			s, err := postgres.Open(t.Context(), pgtest.New(t), postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
	} {
		for _, height := range []int{1, 2, 8} {
			if name != "memory" && height != 2 {
				continue // the tree is the same on every store
			}
			t.Run(fmt.Sprint(name, ", tiles of height ", height), func(t *testing.T) {
				audittest.Log(t, func(t *testing.T) audittest.Subject {
					b := &tamperingStore{LineStore: open(t), changed: map[string][]store.AuditLine{}}
					return audittest.Subject{Log: audit.NewStoreLogWithTiles(b, height), Append: appendTo(b), Tamper: b.tamper}
				})
			})
		}
	}
}

// A new process has only the store. It must not sign an invalid chain.
func TestStoreLog_DoesNotSignIncompleteChain(t *testing.T) {
	ctx := t.Context()
	b := &tamperingStore{LineStore: memory.NewStore(nil), changed: map[string][]store.AuditLine{}}
	for i := range 5 {
		if err := appendTo(b)(ctx, "acme", sample(i, audit.RequestWithdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	good := rows(t, audit.NewStoreLog(b), "acme")
	for name, change := range map[string]func([][]byte) [][]byte{
		"edited":      func(r [][]byte) [][]byte { r[2] = bytes.Replace(r[2], []byte("alice"), []byte("mallo"), 1); return r },
		"last edited": func(r [][]byte) [][]byte { r[4] = bytes.Replace(r[4], []byte("alice"), []byte("mallo"), 1); return r },
		"cut":         func(r [][]byte) [][]byte { return r[:3] },
		"empty":       func([][]byte) [][]byte { return nil },
		"deleted":     func(r [][]byte) [][]byte { return append(r[:1], r[2:]...) },
	} {
		b.tamper(t, "acme", change(rows(t, audit.NewStoreLog(b), "acme")))
		if c, err := audit.CreateCheckpoint(ctx, audit.NewStoreLog(b), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s: signed %+v, %v; want ErrHead", name, c, err)
		}
		if _, err := audit.Verify(ctx, audit.NewStoreLog(b), "acme", audit.VerifyOptions{}, io.Discard); err == nil {
			t.Errorf("%s: verified", name)
		}
		b.tamper(t, "acme", good)
	}
	if _, err := audit.CreateCheckpoint(ctx, audit.NewStoreLog(b), "acme", audit.NewKey()); err != nil {
		t.Errorf("put back: %v", err)
	}
}

// longLog returns a log of n records in a store, signed every 500.
func longLog(t *testing.T, n int) (*countingStore, audit.Trust) {
	t.Helper()
	ctx, s := t.Context(), &countingStore{LineStore: memory.NewStore(nil)}
	log, key := audit.NewStoreLog(s), audit.NewKey()
	var lines [][]byte
	for i := range n {
		line, err := audit.NewLine("acme", alice, place, audit.RequestReleased{})
		if err != nil {
			t.Fatal(err)
		}
		if lines = append(lines, line); i%500 == 499 || i == n-1 {
			if err := s.CommitWrites(ctx, "acme", store.Writes{Audit: lines}); err != nil {
				t.Fatal(err)
			}
			lines = nil
			if _, err := audit.CreateCheckpoint(ctx, log, "acme", key); err != nil {
				t.Fatal(err)
			}
		}
	}
	head, err := log.Head(ctx, "acme")
	if err != nil || head.Size != int64(n) {
		t.Fatalf("%+v, %v", head, err)
	}
	return s, trustIn(t, key, head)
}

// countingStore counts the lines that are read, and can lose documents and change the head.
type countingStore struct {
	audit.LineStore
	lines   int
	without store.DocumentKind
	other   bool
}

func (c *countingStore) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	end, err := c.LineStore.AuditHead(ctx, account)
	if c.other {
		end.Hash[0] ^= 1
	}
	return end, err
}

func (c *countingStore) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := c.LineStore.AuditLines(ctx, account, after, limit)
	c.lines += len(lines)
	return lines, err
}

func (c *countingStore) Document(ctx context.Context, account string, kind store.DocumentKind, id string) (store.Document, error) {
	if kind == c.without {
		return store.Document{}, store.ErrNotFound
	}
	return c.LineStore.Document(ctx, account, kind, id)
}

// A log that is longer than a page of the store.
func TestStoreLog_ReadsInPages(t *testing.T) {
	s, trust := longLog(t, 2500)
	report, err := audit.Verify(t.Context(), audit.NewStoreLog(s), "acme", audit.VerifyOptions{Trust: trust}, io.Discard)
	if err != nil || report.To != 2500 || report.Signed != 2500 || report.Checkpoints != 5 {
		t.Errorf("%+v, %v", report, err)
	}
	if got := len(rows(t, audit.NewStoreLog(s), "acme")); got != 2500 {
		t.Errorf("%d records", got)
	}
}

// A new process uses the stored tiles, and does not read the whole log to sign or to prove.
func TestStoreLog_StoresTiles(t *testing.T) {
	ctx := t.Context()
	s, trust := longLog(t, 1300)
	work := func() {
		t.Helper()
		s.lines = 0
		fresh := audit.NewStoreLog(s)
		if _, err := audit.CreateCheckpoint(ctx, fresh, "acme", audit.NewKey()); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Prove(ctx, fresh, "acme", 77, trust, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if work(); s.lines > 4*256 {
		t.Errorf("%d lines were read of 1300", s.lines)
	}
	s.without = audit.TileDocument
	if work(); s.lines < 1300 {
		t.Errorf("without tiles only %d lines were read: the test has no effect", s.lines)
	}
}

// A changed tile breaks proofs and is detected.
func TestStoreLog_DetectsChangedTile(t *testing.T) {
	ctx := t.Context()
	s, trust := longLog(t, 600)
	tile, err := s.Document(ctx, "acme", audit.TileDocument, "8/0/0")
	if err != nil {
		t.Fatal(err)
	}
	change := func(facts string) {
		t.Helper()
		if err := s.CommitWrites(ctx, "acme", store.Writes{Documents: []store.DocumentChange{{Kind: audit.TileDocument, ID: tile.ID, BaseRevision: tile.Revision, Index: []byte(facts)}}}); err != nil {
			t.Fatal(err)
		}
		tile.Revision++
	}
	at := bytes.IndexByte(tile.Index, ':') + 20
	other := bytes.Clone(tile.Index)
	if other[at] = 'A'; tile.Index[at] == 'A' {
		other[at] = 'B'
	}
	change(string(other))
	_, err = audit.Verify(ctx, audit.NewStoreLog(s), "acme", audit.VerifyOptions{Trust: trust}, io.Discard)
	if p := problem(t, "changed tile", err); p.Fault != audit.FaultWrongHead && p.Fault != audit.FaultWrongHashes {
		t.Errorf("found %v", p)
	}
	if _, err := audit.Prove(ctx, audit.NewStoreLog(s), "acme", 7, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("a proof with it: %v; want ErrProof", err)
	}
	if err := appendTo(s)(ctx, "acme", sample(1, audit.RequestWithdrawn{})); err != nil {
		t.Fatal(err)
	}
	if c, err := audit.CreateCheckpoint(ctx, audit.NewStoreLog(s), "acme", audit.NewKey()); !errors.Is(err, audit.ErrFork) {
		t.Errorf("signed %+v, %v; want ErrFork", c, err)
	}
	for _, torn := range []string{`{}`, `{"hashes":"AAAA"}`, `{"hashes":"?"}`, `{"hashes":1}`} {
		change(torn) // an invalid tile is computed again
		if _, err := audit.Prove(ctx, audit.NewStoreLog(s), "acme", 7, trust, io.Discard); err != nil {
			t.Errorf("with the tile %s: %v", torn, err)
		}
	}
}

// Even if the tree is complete and no line is read, it must match the store's head.
func TestStoreLog_DoesNotSignWithWrongHead(t *testing.T) {
	for _, n := range []int{512, 513} {
		s, _ := longLog(t, n)
		s.other = true
		if c, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(s), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%d records: signed %+v, %v; want ErrHead", n, c, err)
		}
	}
}

// fixedStore is a store with given lines.
type fixedStore struct {
	audit.LineStore
	end   chain.Head
	lines []store.AuditLine
}

func (f *fixedStore) AuditHead(context.Context, string) (chain.Head, error) { return f.end, nil }

func (f *fixedStore) AuditLines(_ context.Context, _ string, after int64, _ int) ([]store.AuditLine, error) {
	return f.lines[min(after, int64(len(f.lines))):], nil
}

// A valid chain may still be the wrong one.
func TestStoreLog_DoesNotSignForeignChain(t *testing.T) {
	chainOf := func(account string, numbers ...int64) *fixedStore {
		f := &fixedStore{LineStore: memory.NewStore(nil)}
		for i, number := range numbers {
			line, err := audit.NewLine(account, alice, place, audit.RequestWithdrawn{})
			if err != nil {
				t.Fatal(err)
			}
			raw, end, err := chain.Next(chain.Head{Seq: number - 1, Hash: f.end.Hash}, noon, line)
			if err != nil {
				t.Fatal(err)
			}
			end.Seq = int64(i + 1)
			f.lines, f.end = append(f.lines, store.AuditLine{Seq: end.Seq, Raw: raw}), end
		}
		return f
	}
	if _, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(chainOf("acme", 1, 2, 3)), "acme", audit.NewKey()); err != nil {
		t.Fatal(err)
	}
	short := chainOf("acme", 1, 2, 3)
	short.end.Seq = 5
	for name, lines := range map[string]*fixedStore{
		"of another account":    chainOf("evil", 1, 2, 3),
		"with another number":   chainOf("acme", 1, 8, 3),
		"shorter than the head": short,
	} {
		if c, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(lines), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s: signed %+v, %v; want ErrHead", name, c, err)
		}
	}
}

// A temporary fault must not be stored as a tile.
func TestStoreLog_StoresNoTileOfIncompleteChain(t *testing.T) {
	ctx := t.Context()
	b := &tamperingStore{LineStore: memory.NewStore(nil), changed: map[string][]store.AuditLine{}}
	for i := range 5 {
		if err := appendTo(b)(ctx, "acme", sample(i, audit.RequestWithdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	good := rows(t, audit.NewStoreLog(b), "acme")
	// a tile of four whose last record was changed, with no record after it
	bad := slices.Clone(good[:4])
	bad[3] = bytes.Replace(bad[3], []byte("alice"), []byte("mallo"), 1)
	b.tamper(t, "acme", bad)
	if _, err := audit.CreateCheckpoint(ctx, audit.NewStoreLogWithTiles(b, 2), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
		t.Errorf("signed: %v", err)
	}
	b.tamper(t, "acme", good)
	log := audit.NewStoreLogWithTiles(b, 2)
	if _, err := audit.CreateCheckpoint(ctx, log, "acme", audit.NewKey()); err != nil {
		t.Errorf("put back: %v", err)
	}
	if _, err := audit.Verify(ctx, log, "acme", audit.VerifyOptions{}, io.Discard); err != nil {
		t.Errorf("put back: %v", err)
	}
}

func TestRecordsAbout_FindsByID(t *testing.T) {
	ctx := t.Context()
	other := place
	other.Request, other.Interrupt = "req_2", "int_2"
	m := memoryLog(t, "acme", sample(0, audit.RequestClaimed{}), audit.NewRecord(noon, alice, other, audit.RequestClaimed{}), audit.NewRecord(noon, self, audit.Location{}, audit.PolicyLoaded{}))
	for id, want := range map[string][]int64{"req_1": {1}, "int_2": {2}, "run_1": {1, 2}, "demo-1": {1, 2}, "nobody": nil} {
		var got []int64
		for r, err := range audit.RecordsAbout(ctx, m, "acme", id) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("about %s: %v; want %v", id, got, want)
		}
	}
}

func TestNewLine_InvalidRecordReturnsErrRecord(t *testing.T) {
	for name, try := range map[string]func() ([]byte, error){
		"no body":  func() ([]byte, error) { return audit.NewLine("acme", alice, place, nil) },
		"no actor": func() ([]byte, error) { return audit.NewLine("acme", audit.Actor{}, place, audit.RequestWithdrawn{}) },
		"no UTF-8": func() ([]byte, error) { return audit.NewLine("ac\xffme", alice, place, audit.RequestWithdrawn{}) },
		"too long": func() ([]byte, error) {
			return audit.NewLine("acme", alice, place, audit.PayloadsErased{Payloads: repeatText(16, string(bytes.Repeat([]byte("x"), audit.MaxText)))})
		},
	} {
		if line, err := try(); !errors.Is(err, audit.ErrRecord) || line != nil {
			t.Errorf("%s: %.80s, %v; want ErrRecord", name, line, err)
		}
	}
}
