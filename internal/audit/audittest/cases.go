package audittest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

func testEmpty(t testing.TB, s Subject) {
	if h := head(t, s.Log, "acme"); !h.Equal(audit.EmptyHead("acme")) {
		t.Errorf("the head of an empty log is %+v", h)
	}
	if got := rows(t, s.Log, "acme", 0, 0); len(got) != 0 {
		t.Errorf("there are records: %q", got)
	}
	for signed, err := range s.Log.Checkpoints(t.Context(), "acme") {
		t.Errorf("there is a checkpoint: %q, %v", signed, err)
	}
	if err := verify(t, s, "acme", audit.Trust{}); err != nil {
		t.Error(err)
	}
}

func testReference(t testing.TB, s Subject) {
	for n := range 20 {
		fill(t, s, "acme", n, n+1)
		if n < 5 || n == 19 {
			checkSame(t, s, "acme", n+1)
		}
	}
}

func testRefused(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 3)
	bad := record(3)
	bad.Actor.Principal = ""
	if err := s.Append(t.Context(), "acme", bad); !errors.Is(err, audit.ErrRecord) {
		t.Errorf("append: %v; want ErrRecord", err)
	}
	checkSame(t, s, "acme", 3)
	fill(t, s, "acme", 3, 4)
	checkSame(t, s, "acme", 4)
}

func testCancelled(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Append(ctx, "acme", record(3)); err == nil {
		t.Error("a cancelled append succeeded")
	}
	checkSame(t, s, "acme", 3)
}

func testConcurrent(t testing.TB, s Subject) {
	const writers, each = 6, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := s.Append(t.Context(), "acme", record(w*each+i)); err != nil {
					t.Errorf("append: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if err := verify(t, s, "acme", audit.Trust{}); err != nil {
		t.Error(err)
	}
	seen := map[string]bool{}
	for r, err := range audit.ParseRecords(s.Log.Records(t.Context(), "acme", 0, 0)) {
		if err != nil {
			t.Fatal(err)
		}
		seen[r.Location.Interrupt] = true
	}
	if h := head(t, s.Log, "acme"); len(seen) != writers*each || h.Size != writers*each {
		t.Errorf("%d records in a log of %d; want %d", len(seen), h.Size, writers*each)
	}
}

func testRanges(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 7)
	all := rows(t, reference(t, s, "acme", 7), "acme", 0, 0)
	for from := range int64(10) {
		for to := range int64(10) {
			first, last := max(from, 1), int64(7)
			if to > 0 {
				last = min(to, 7)
			}
			var want [][]byte
			if first <= last {
				want = all[first-1 : last]
			}
			if got := rows(t, s.Log, "acme", from, to); !slices.EqualFunc(got, want, bytes.Equal) {
				t.Errorf("records %d to %d: got %d, want %d, or different ones", from, to, len(got), len(want))
			}
		}
	}
}

func testStop(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 5)
	all := rows(t, s.Log, "acme", 0, 0)
	records := s.Log.Records(t.Context(), "acme", 0, 0)
	for n := range 6 {
		var got [][]byte
		for raw, err := range records {
			if err != nil {
				t.Fatal(err)
			}
			if len(got) == n {
				break
			}
			got = append(got, bytes.Clone(raw))
		}
		if !slices.EqualFunc(got, all[:min(n, 5)], bytes.Equal) {
			t.Errorf("the first %d records differ when read again", n)
		}
	}
	fill(t, s, "acme", 5, 6) // a reader that stopped must not hold a lock
}

// testAccounts fills logs of accounts with similar names.
func testAccounts(t testing.TB, s Subject) {
	accounts := []string{"acme", "ACME", "acme ", "acm", "", "äcme", "acme%", `a"c'me`}
	for i, account := range accounts {
		fill(t, s, account, 0, i+1)
	}
	for i, account := range accounts {
		checkSame(t, s, account, i+1)
	}
	c, _ := sign(t, s, "acme")
	for _, account := range accounts[1:] {
		for signed, err := range s.Log.Checkpoints(t.Context(), account) {
			t.Errorf("account %q has the checkpoint %q of another (%v)", account, signed, err)
		}
	}
	if c.Origin != head(t, s.Log, "acme").Origin() {
		t.Errorf("the checkpoint is that of %s", c.Origin)
	}
}

func testCheckpoints(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 4)
	key := audit.NewKey()
	var want [][]byte
	var made []audit.Checkpoint
	for n := 1; n <= 4; n++ {
		c, err := key.Sign(head(t, reference(t, s, "acme", n), "acme"))
		if err != nil {
			t.Fatal(err)
		}
		want, made = append(want, c.Note), append(made, c)
	}
	other := made[1]
	other.Note = append(bytes.Clone(other.Note), "— witness AAAA\n"...)
	for _, c := range []audit.Checkpoint{made[3], made[1], other, made[0], made[2], made[3]} {
		if err := s.Log.AddCheckpoint(t.Context(), "acme", c); err != nil {
			t.Fatalf("add the checkpoint of %d records: %v", c.Size, err)
		}
	}
	var got [][]byte
	for signed, err := range s.Log.Checkpoints(t.Context(), "acme") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, bytes.Clone(signed))
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("stored are\n%q; want, by size, once each, byte for byte,\n%q", got, want)
	}
}

func testHashes(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 4) // 7 hashes
	want, err := reference(t, s, "acme", 4).Hashes(t.Context(), "acme", []int64{6, 0, 3, 3})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Log.Hashes(t.Context(), "acme", []int64{6, 0, 3, 3}); err != nil || !slices.Equal(got, want) {
		t.Errorf("hashes 6, 0, 3 and 3 are %v, %v; want %v", got, err, want)
	}
	for _, unknown := range [][]int64{{7}, {0, 7}, {-1}, {1 << 40}} {
		if got, err := s.Log.Hashes(t.Context(), "acme", unknown); !errors.Is(err, audit.ErrNotFound) {
			t.Errorf("hashes %v are %v, %v; want ErrNotFound", unknown, got, err)
		}
	}
	if got, err := s.Log.Hashes(t.Context(), "nobody", []int64{0}); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("the first hash of an unknown account is %v, %v; want ErrNotFound", got, err)
	}
}

func testProofs(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 3)
	old, trust := sign(t, s, "acme")
	fill(t, s, "acme", 3, 11)
	key := audit.NewKey()
	newer, err := audit.CreateCheckpoint(t.Context(), s.Log, "acme", key)
	if err != nil {
		t.Fatalf("a second checkpoint: %v", err)
	}
	verifier, err := key.Trust(newer.Origin)
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= 11; seq++ {
		var file bytes.Buffer
		if _, err := audit.Prove(t.Context(), s.Log, "acme", seq, verifier, &file); err != nil {
			t.Fatalf("prove record %d: %v", seq, err)
		}
		if got, err := audit.CheckProof(file.Bytes(), verifier, io.Discard); err != nil || got.Seq != seq {
			t.Errorf("the proof of record %d: %+v, %v", seq, got, err)
		}
	}
	if _, err := trust.Open(old.Note); err != nil {
		t.Errorf("the first checkpoint has changed: %v", err)
	}
}

// testGrowing verifies while another goroutine appends. Appends in progress must not look like
// damage.
func testGrowing(t testing.TB, s Subject) {
	fill(t, s, "acme", 0, 3)
	_, trust := sign(t, s, "acme")
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 3; i < 30; i++ {
			if err := s.Append(t.Context(), "acme", record(i)); err != nil {
				t.Errorf("append: %v", err)
			}
		}
	})
	for range 10 {
		if err := verify(t, s, "acme", trust); err != nil {
			t.Errorf("while it grows: %v", err)
		}
	}
	writer.Wait()
}
