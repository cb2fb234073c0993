// Package audittest is the test suite for implementations of an audit log.
//
//	func TestLog(t *testing.T) {
//		audittest.Log(t, func(t *testing.T) audittest.Subject {
//			s := openStore(t)
//			return audittest.Subject{Log: s, Append: s.AppendAudit, Tamper: s.overwriteRows}
//		})
//	}
package audittest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
)

// Subject is a log under test.
type Subject struct {
	Log audit.Log
	// Append appends a record in its own transaction, as the store does it with a change. The store
	// may set its own time and nonce, but must not change the content.
	Append func(ctx context.Context, account string, r audit.Record) error
	// Tamper replaces the stored records of an account without the log's knowledge: rows[i] becomes
	// number i+1. Head, hashes and checkpoints stay. It simulates an attacker with write access to
	// the database.
	Tamper func(t testing.TB, account string, rows [][]byte)
}

// Log tests an implementation of [audit.Log]. It calls open once per test; open returns an empty
// log and registers its cleanup with t.Cleanup.
func Log(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// cases use a testing.TB, so that a test can run them and observe failures.
var cases = []struct {
	name string
	run  func(t testing.TB, s Subject)
}{
	{"Empty_IsNotAnError", testEmpty},
	{"Append_MatchesReference", testReference},
	{"Append_RefusedRecordLeavesNothing", testRefused},
	{"Append_CancelledLeavesNothing", testCancelled},
	{"I12_ConcurrentAppendsMakeOneChain", testConcurrent},
	{"Records_Ranges", testRanges},
	{"Records_CanStopAndRestart", testStop},
	{"I8_AccountsAreSeparate", testAccounts},
	{"Checkpoints_AreSortedAndUnique", testCheckpoints},
	{"Hashes_UnknownIsNotFound", testHashes},
	{"Proofs_HoldForEveryRecord", testProofs},
	{"Verify_DuringAppends", testGrowing},
	{"Tamper_DetectsChangedBytes", testBytes},
	{"Tamper_DetectsReordering", testOrder},
	{"Tamper_DetectsTruncation", testCut},
}

var start = time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)

// trickyNames are texts that databases and encoders often change.
var trickyNames = []string{"alice", `"quoted"`, `back\slash`, "<b>&amp;", "\u2028", "äöü", "🎼", "%d ' ; --", "\ufffd", "trailing ", "\x7f", `\u0061`, "\x00nul"}

// record returns the i-th record of a test. Only its nonce differs between calls.
func record(i int) audit.Record {
	name := trickyNames[i%len(trickyNames)]
	return audit.NewRecord(start.Add(time.Duration(i)*time.Millisecond), audit.Actor{Principal: name, Kind: audit.ActorPerson},
		audit.Location{Run: "run_1", Interrupt: fmt.Sprint("int_", i)}, audit.RequestDelegated{To: name})
}

func fill(t testing.TB, s Subject, account string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if err := s.Append(t.Context(), account, record(i)); err != nil {
			t.Fatalf("append record %d: %v", i+1, err)
		}
	}
}

func rows(t testing.TB, log audit.Log, account string, from, to int64) [][]byte {
	t.Helper()
	all := [][]byte{}
	for raw, err := range log.Records(t.Context(), account, from, to) {
		if err != nil {
			t.Fatalf("records %d to %d: %v", from, to, err)
		}
		all = append(all, bytes.Clone(raw))
	}
	return all
}

func head(t testing.TB, log audit.Log, account string) audit.Head {
	t.Helper()
	h, err := log.Head(t.Context(), account)
	if err != nil {
		t.Fatalf("head: %v", err)
	}
	return h
}

// reference returns a log in memory with the same first n records. It also checks their content and
// encoding.
func reference(t testing.TB, s Subject, account string, n int) *audit.Memory {
	t.Helper()
	m := new(audit.Memory)
	stored := rows(t, s.Log, account, 0, 0)
	if len(stored) < n {
		t.Fatalf("%d records; want %d", len(stored), n)
	}
	for i, raw := range stored[:n] {
		r, err := audit.Parse(raw)
		if err != nil {
			t.Fatalf("record %d is %q: %v", i+1, raw, err)
		}
		if want := record(i); r.Account != account || r.Actor != want.Actor || r.Location != want.Location || r.Body != want.Body {
			t.Errorf("record %d of %q says %q; want %+v, %+v, %+v", i+1, account, raw, want.Actor, want.Location, want.Body)
		}
		entry, err := m.Append(t.Context(), account, r)
		if err != nil || !bytes.Equal(entry.Raw, raw) {
			t.Errorf("record %d is\n%q; want, byte for byte,\n%q, %v", i+1, raw, entry.Raw, err)
		}
	}
	return m
}

// checkSame compares a log of n records with the reference.
func checkSame(t testing.TB, s Subject, account string, n int) {
	t.Helper()
	want := reference(t, s, account, n)
	if got := rows(t, s.Log, account, 0, 0); len(got) != n {
		t.Errorf("%d records; want %d", len(got), n)
	}
	h := head(t, want, account)
	if got := head(t, s.Log, account); !got.Equal(h) {
		t.Errorf("the head is %+v; want %+v", got, h)
	}
	count := 2*n - bits.OnesCount(uint(n)) // the number of nodes of all complete subtrees
	for i := range int64(count) {
		a, err := s.Log.Hashes(t.Context(), account, []int64{i})
		b, err2 := want.Hashes(t.Context(), account, []int64{i})
		if err != nil || err2 != nil || !slices.Equal(a, b) {
			t.Fatalf("hash %d is %v, %v; want %v, %v", i, a, err, b, err2)
		}
	}
}

// sign creates a checkpoint and returns a trust in its key.
func sign(t testing.TB, s Subject, account string) (audit.Checkpoint, audit.Trust) {
	t.Helper()
	key := audit.NewKey()
	c, err := audit.CreateCheckpoint(t.Context(), s.Log, account, key)
	if err != nil {
		t.Fatalf("make a checkpoint: %v", err)
	}
	trust, err := key.Trust(c.Origin)
	if err != nil {
		t.Fatal(err)
	}
	return c, trust
}

func verify(t testing.TB, s Subject, account string, trust audit.Trust) error {
	t.Helper()
	_, err := audit.Verify(t.Context(), s.Log, account, audit.VerifyOptions{Trust: trust}, io.Discard)
	return err
}
