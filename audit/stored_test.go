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

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/audit/audittest"
	"github.com/fermata-go/fermata/internal/chain"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
	"github.com/fermata-go/fermata/store/postgres"
	"github.com/fermata-go/fermata/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// backDoor is a store whose lines can be changed by somebody who should not.
type backDoor struct {
	audit.Lines
	mu      sync.Mutex
	changed map[string][]store.AuditLine
}

func (b *backDoor) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines, ok := b.changed[account]
	if !ok {
		return b.Lines.AuditLines(ctx, account, after, limit)
	}
	lines = lines[min(after, int64(len(lines))):]
	return lines[:min(len(lines), limit)], ctx.Err()
}

func (b *backDoor) tamper(_ testing.TB, account string, rows [][]byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed[account] = nil
	for i, raw := range rows {
		b.changed[account] = append(b.changed[account], store.AuditLine{Seq: int64(i + 1), Raw: raw})
	}
}

func amend(s audit.Lines) func(context.Context, string, audit.Record) error {
	return func(ctx context.Context, account string, r audit.Record) error {
		line, err := audit.Line(account, r.Actor, r.Place, r.Body)
		if err != nil {
			return err
		}
		return s.Amend(ctx, account, store.Beside{Audit: [][]byte{line}})
	}
}

func TestStored_IsALog(t *testing.T) {
	for name, open := range map[string]func(*testing.T) audit.Lines{
		"memory": func(*testing.T) audit.Lines { return memory.NewRuns(nil) },
		"sqlite": func(t *testing.T) audit.Lines {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		},
		"postgres": func(t *testing.T) audit.Lines {
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
					b := &backDoor{Lines: open(t), changed: map[string][]store.AuditLine{}}
					return audittest.Subject{Log: audit.OverTiles(b, height), Append: amend(b), Tamper: b.tamper}
				})
			})
		}
	}
}

// What a fresh process finds in the store is all that it has to go by. It must not sign what is not whole.
func TestStored_DoesNotSignWhatIsNotWhole(t *testing.T) {
	ctx := t.Context()
	b := &backDoor{Lines: memory.NewRuns(nil), changed: map[string][]store.AuditLine{}}
	for i := range 5 {
		if err := amend(b)(ctx, "acme", sample(i, audit.Withdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	good := rows(t, audit.Over(b), "acme")
	for name, change := range map[string]func([][]byte) [][]byte{
		"edited":      func(r [][]byte) [][]byte { r[2] = bytes.Replace(r[2], []byte("alice"), []byte("mallo"), 1); return r },
		"last edited": func(r [][]byte) [][]byte { r[4] = bytes.Replace(r[4], []byte("alice"), []byte("mallo"), 1); return r },
		"cut":         func(r [][]byte) [][]byte { return r[:3] },
		"empty":       func([][]byte) [][]byte { return nil },
		"deleted":     func(r [][]byte) [][]byte { return append(r[:1], r[2:]...) },
	} {
		b.tamper(t, "acme", change(rows(t, audit.Over(b), "acme")))
		if c, err := audit.MakeCheckpoint(ctx, audit.Over(b), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s: signed %+v, %v; want ErrHead", name, c, err)
		}
		if _, err := audit.Verify(ctx, audit.Over(b), "acme", audit.Against{}, io.Discard); err == nil {
			t.Errorf("%s: verified", name)
		}
		b.tamper(t, "acme", good)
	}
	if _, err := audit.MakeCheckpoint(ctx, audit.Over(b), "acme", audit.NewKey()); err != nil {
		t.Errorf("put back: %v", err)
	}
}

// aLong log of n records in a store, signed every 500.
func aLong(t *testing.T, n int) (*counting, audit.Trust) {
	t.Helper()
	ctx, s := t.Context(), &counting{Lines: memory.NewRuns(nil)}
	log, key := audit.Over(s), audit.NewKey()
	var lines [][]byte
	for i := range n {
		line, err := audit.Line("acme", alice, place, audit.Released{})
		if err != nil {
			t.Fatal(err)
		}
		if lines = append(lines, line); i%500 == 499 || i == n-1 {
			if err := s.Amend(ctx, "acme", store.Beside{Audit: lines}); err != nil {
				t.Fatal(err)
			}
			lines = nil
			if _, err := audit.MakeCheckpoint(ctx, log, "acme", key); err != nil {
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

// counting counts the lines that are read, and can lose papers and change the head.
type counting struct {
	audit.Lines
	lines   int
	without store.PaperKind
	other   bool
}

func (c *counting) AuditHead(ctx context.Context, account string) (chain.Head, error) {
	end, err := c.Lines.AuditHead(ctx, account)
	if c.other {
		end.Hash[0] ^= 1
	}
	return end, err
}

func (c *counting) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	lines, err := c.Lines.AuditLines(ctx, account, after, limit)
	c.lines += len(lines)
	return lines, err
}

func (c *counting) Paper(ctx context.Context, account string, kind store.PaperKind, id string) (store.Paper, error) {
	if kind == c.without {
		return store.Paper{}, store.ErrNotFound
	}
	return c.Lines.Paper(ctx, account, kind, id)
}

// A log is longer than a page of the store.
func TestStored_ReadsPageByPage(t *testing.T) {
	s, trust := aLong(t, 2500)
	report, err := audit.Verify(t.Context(), audit.Over(s), "acme", audit.Against{Trust: trust}, io.Discard)
	if err != nil || report.To != 2500 || report.Signed != 2500 || report.Checkpoints != 5 {
		t.Errorf("%+v, %v", report, err)
	}
	if got := len(rows(t, audit.Over(s), "acme")); got != 2500 {
		t.Errorf("%d records", got)
	}
}

// A process that has just started finds the tree where others left it, and does not read the log again to sign or to prove.
func TestStored_TheTreeIsKept(t *testing.T) {
	ctx := t.Context()
	s, trust := aLong(t, 1300)
	work := func() {
		t.Helper()
		s.lines = 0
		fresh := audit.Over(s)
		if _, err := audit.MakeCheckpoint(ctx, fresh, "acme", audit.NewKey()); err != nil {
			t.Fatal(err)
		}
		if _, err := audit.Prove(ctx, fresh, "acme", 77, trust, io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if work(); s.lines > 4*256 {
		t.Errorf("%d lines were read of 1300", s.lines)
	}
	s.without = audit.TilePaper
	if work(); s.lines < 1300 {
		t.Errorf("without what is kept only %d lines were read: the test does not test anything", s.lines)
	}
}

// Whoever changes what is kept of the tree breaks proofs, and is found.
func TestStored_AChangedTileIsFound(t *testing.T) {
	ctx := t.Context()
	s, trust := aLong(t, 600)
	tile, err := s.Paper(ctx, "acme", audit.TilePaper, "8/0/0")
	if err != nil {
		t.Fatal(err)
	}
	change := func(facts string) {
		t.Helper()
		if err := s.Amend(ctx, "acme", store.Beside{Papers: []store.PaperChange{{Kind: audit.TilePaper, ID: tile.ID, Base: tile.Revision, Facts: []byte(facts)}}}); err != nil {
			t.Fatal(err)
		}
		tile.Revision++
	}
	at := bytes.IndexByte(tile.Facts, ':') + 20
	other := bytes.Clone(tile.Facts)
	if other[at] = 'A'; tile.Facts[at] == 'A' {
		other[at] = 'B'
	}
	change(string(other))
	_, err = audit.Verify(ctx, audit.Over(s), "acme", audit.Against{Trust: trust}, io.Discard)
	if p := problem(t, "changed tile", err); p.Fault != audit.WrongHead && p.Fault != audit.WrongHashes {
		t.Errorf("found %v", p)
	}
	if _, err := audit.Prove(ctx, audit.Over(s), "acme", 7, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("a proof with it: %v; want ErrProof", err)
	}
	if err := amend(s)(ctx, "acme", sample(1, audit.Withdrawn{})); err != nil {
		t.Fatal(err)
	}
	if c, err := audit.MakeCheckpoint(ctx, audit.Over(s), "acme", audit.NewKey()); !errors.Is(err, audit.ErrFork) {
		t.Errorf("signed %+v, %v; want ErrFork", c, err)
	}
	for _, torn := range []string{`{}`, `{"hashes":"AAAA"}`, `{"hashes":"?"}`, `{"hashes":1}`} {
		change(torn) // no tile at all: it is made anew
		if _, err := audit.Prove(ctx, audit.Over(s), "acme", 7, trust, io.Discard); err != nil {
			t.Errorf("with the tile %s: %v", torn, err)
		}
	}
}

// Also if the tree is complete and nothing has to be read for it, it must be the tree of what the store's head is about.
func TestStored_DoesNotSignForAnotherHead(t *testing.T) {
	for _, n := range []int{512, 513} {
		s, _ := aLong(t, n)
		s.other = true
		if c, err := audit.MakeCheckpoint(t.Context(), audit.Over(s), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%d records: signed %+v, %v; want ErrHead", n, c, err)
		}
	}
}

// fixed is a store with certain lines.
type fixed struct {
	audit.Lines
	end   chain.Head
	lines []store.AuditLine
}

func (f *fixed) AuditHead(context.Context, string) (chain.Head, error) { return f.end, nil }

func (f *fixed) AuditLines(_ context.Context, _ string, after int64, _ int) ([]store.AuditLine, error) {
	return f.lines[min(after, int64(len(f.lines))):], nil
}

// A chain that is whole may still be the wrong one.
func TestStored_DoesNotSignAChainThatIsNotThisLog(t *testing.T) {
	chainOf := func(account string, numbers ...int64) *fixed {
		f := &fixed{Lines: memory.NewRuns(nil)}
		for i, number := range numbers {
			line, err := audit.Line(account, alice, place, audit.Withdrawn{})
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
	if _, err := audit.MakeCheckpoint(t.Context(), audit.Over(chainOf("acme", 1, 2, 3)), "acme", audit.NewKey()); err != nil {
		t.Fatal(err)
	}
	short := chainOf("acme", 1, 2, 3)
	short.end.Seq = 5
	for name, lines := range map[string]*fixed{
		"of another account":            chainOf("evil", 1, 2, 3),
		"with another number":           chainOf("acme", 1, 8, 3),
		"shorter than the head says it": short,
	} {
		if c, err := audit.MakeCheckpoint(t.Context(), audit.Over(lines), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s: signed %+v, %v; want ErrHead", name, c, err)
		}
	}
}

// What was wrong for a while must not be kept as a part of the tree.
func TestStored_KeepsNoTileOfLinesThatAreNotWhole(t *testing.T) {
	ctx := t.Context()
	b := &backDoor{Lines: memory.NewRuns(nil), changed: map[string][]store.AuditLine{}}
	for i := range 5 {
		if err := amend(b)(ctx, "acme", sample(i, audit.Withdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	good := rows(t, audit.Over(b), "acme")
	bad := slices.Clone(good[:4]) // a tile of four, the last of which was changed, and nothing behind it that would know
	bad[3] = bytes.Replace(bad[3], []byte("alice"), []byte("mallo"), 1)
	b.tamper(t, "acme", bad)
	if _, err := audit.MakeCheckpoint(ctx, audit.OverTiles(b, 2), "acme", audit.NewKey()); !errors.Is(err, audit.ErrHead) {
		t.Errorf("signed: %v", err)
	}
	b.tamper(t, "acme", good)
	log := audit.OverTiles(b, 2)
	if _, err := audit.MakeCheckpoint(ctx, log, "acme", audit.NewKey()); err != nil {
		t.Errorf("put back: %v", err)
	}
	if _, err := audit.Verify(ctx, log, "acme", audit.Against{}, io.Discard); err != nil {
		t.Errorf("put back: %v", err)
	}
}

func TestAbout_FindsWhatToProve(t *testing.T) {
	ctx := t.Context()
	other := place
	other.Request, other.Interrupt = "req_2", "int_2"
	m := kept(t, "acme", sample(0, audit.Claimed{}), audit.New(noon, alice, other, audit.Claimed{}), audit.New(noon, self, audit.Place{}, audit.PolicyLoaded{}))
	for id, want := range map[string][]int64{"req_1": {1}, "int_2": {2}, "run_1": {1, 2}, "demo-1": {1, 2}, "nobody": nil} {
		var got []int64
		for r, err := range audit.About(ctx, m, "acme", id) {
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

func TestLine_RefusesWhatIsNoRecord(t *testing.T) {
	for name, try := range map[string]func() ([]byte, error){
		"no body":  func() ([]byte, error) { return audit.Line("acme", alice, place, nil) },
		"no actor": func() ([]byte, error) { return audit.Line("acme", audit.Actor{}, place, audit.Withdrawn{}) },
		"no UTF-8": func() ([]byte, error) { return audit.Line("ac\xffme", alice, place, audit.Withdrawn{}) },
		"too long": func() ([]byte, error) {
			return audit.Line("acme", alice, place, audit.Erased{Payloads: many(16, string(bytes.Repeat([]byte("x"), audit.MaxText)))})
		},
	} {
		if line, err := try(); !errors.Is(err, audit.ErrRecord) || line != nil {
			t.Errorf("%s: %.80s, %v; want ErrRecord", name, line, err)
		}
	}
}
