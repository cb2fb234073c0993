package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

func TestVerify_ReportsLastSignedRecord(t *testing.T) {
	ctx := t.Context()
	m, _, trust := signed(t, "acme", 5)
	for range 2 {
		if _, err := m.Append(ctx, "acme", audit.NewRecord(noon, self, place, audit.RequestWithdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	report, err := audit.Verify(ctx, m, "acme", audit.VerifyOptions{Trust: trust}, &said)
	head, _ := m.Head(ctx, "acme")
	if err != nil || report.From != 1 || report.To != 7 || report.Signed != 5 || report.Checkpoints != 1 || report.Origin != head.Origin() || report.Root != head.Root() {
		t.Errorf("%+v, %v", report, err)
	}
	for _, want := range []string{"Valid.", "records 1 to 7", "Signed up to record 5", "The 2 records after it are not signed yet"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not print %q but\n%s", want, said.String())
		}
	}
	if body := report.Body(); body != (audit.LogVerified{From: 1, To: 7, Signed: 5}) {
		t.Errorf("body: %+v", body)
	}
}

func TestVerify_WithoutKeyReportsLimits(t *testing.T) {
	m, _, _ := signed(t, "acme", 5)
	var said bytes.Buffer
	report, err := audit.Verify(t.Context(), m, "acme", audit.VerifyOptions{}, &said)
	if err != nil || report.Signed != 0 || report.Untrusted != 1 || !strings.Contains(said.String(), "No signature was checked") {
		t.Errorf("%+v, %v:\n%s", report, err, said.String())
	}
}

func TestVerify_EmptyLogIsValid(t *testing.T) {
	_, _, trust := signed(t, "acme", 5)
	var said bytes.Buffer
	if _, err := audit.Verify(t.Context(), new(audit.Memory), "acme", audit.VerifyOptions{Trust: trust}, &said); err != nil || !strings.Contains(said.String(), "no records") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// An attacker with write access to the database changes one record, but not the tree and the head.
// Together they reveal which record was changed.
func TestVerify_LocatesEveryChangedByte(t *testing.T) {
	m, _, trust := signed(t, "acme", 3)
	all := rows(t, m, "acme")
	for i, raw := range all {
		for at := range raw {
			changed := tampered{Memory: m, rows: slices.Clone(all)}
			changed.rows[i] = bytes.Clone(raw)
			changed.rows[i][at] ^= 1
			report, err := audit.Verify(t.Context(), changed, "acme", audit.VerifyOptions{Trust: trust}, io.Discard)
			what := fmt.Sprintf("record %d, byte %d", i+1, at)
			p := problem(t, what, err)
			// the prev of the last record: it, or the one before
			inLast := i == len(all)-1 && p.Seq == int64(i)
			if p.Seq != int64(i+1) && !inLast || report.Problem != p {
				t.Errorf("%s: found %v", what, p)
			}
		}
	}
}

func TestVerify_DetectsStoreTampering(t *testing.T) {
	ctx := t.Context()
	m, key, trust := signed(t, "acme", 6)
	all := rows(t, m, "acme")
	longer := memoryLog(t, "acme", samples(8)...)
	unsigned := memoryLog(t, "acme", samples(6)...)
	foreign := memoryLog(t, "acme", samples(6)...)
	if _, err := audit.CreateCheckpoint(ctx, foreign, "acme", audit.NewKey()); err != nil {
		t.Fatal(err)
	}
	head, _ := m.Head(ctx, "acme")
	good, _ := key.Sign(head)
	broken := memoryLog(t, "acme", samples(6)...)
	if err := broken.AddCheckpoint(ctx, "acme", audit.Checkpoint{Size: 6, Note: bytes.Replace(good.Note, []byte("\n6\n"), []byte("\n5\n"), 1)}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		log   audit.Log
		seq   int64
		fault audit.Fault
	}{
		"tail cut":                {tampered{m, all[:4]}, 5, audit.FaultTruncated},
		"unsigned tail truncated": {tampered{signedTail(t, key), all}, 7, audit.FaultTruncated},
		"peaks of another head":   {wrongHead{m, otherPeaks(t, m)}, 6, audit.FaultWrongHead},
		"everything deleted":      {tampered{m, nil}, 1, audit.FaultTruncated},
		"one deleted":             {tampered{m, slices.Delete(slices.Clone(all), 2, 3)}, 3, audit.FaultMissing},
		"last record changed":     {tampered{m, append(slices.Clone(all[:5]), bytes.Replace(all[5], []byte("alice"), []byte("mallo"), 1))}, 6, audit.FaultEdited},
		"record inserted":         {tampered{m, append(slices.Clone(all), rows(t, longer, "acme")[6])}, 7, audit.FaultWrongHead},
		"hashes changed":          {wrongHashes{m}, 4, audit.FaultWrongHashes},
		"hashes gone":             {noHashes{m}, 1, audit.FaultWrongHashes},
		"head of another history": {wrongHead{m, newLog(t, "acme", 6).head}, 6, audit.FaultEdited},
		"head reset":              {wrongHead{m, mustHeadAt(t, samples(3))}, 4, audit.FaultTruncated},
		"head reset to empty":     {wrongHead{unsigned, audit.EmptyHead("acme")}, 1, audit.FaultWrongHead},
		"checkpoints deleted":     {unsigned, 1, audit.FaultUnsigned},
		"checkpoints swapped":     {foreign, 1, audit.FaultUnsigned},
		"checkpoint changed":      {broken, 1, audit.FaultBadCheckpoint},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			_, err := audit.Verify(ctx, test.log, "acme", audit.VerifyOptions{Trust: trust}, &said)
			p := problem(t, name, err)
			if p.Seq != test.seq || p.Fault != test.fault {
				t.Errorf("found %v; want %s at %d", p, test.fault, test.seq)
			}
			if !strings.HasPrefix(said.String(), "INVALID") || !strings.Contains(said.String(), p.Text) {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}

// forgery returns a log that was rewritten by an attacker with the store and the signing key, the
// original log, and a checkpoint of the original.
func forgery(t *testing.T, key *audit.Key) (honest, forged *audit.Memory, old audit.Checkpoint) {
	t.Helper()
	honest = memoryLog(t, "acme", samples(5)...)
	old, err := audit.CreateCheckpoint(t.Context(), honest, "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	records := samples(9)
	records[3] = sample(3, audit.RequestDelegated{To: "mallory"})
	forged = memoryLog(t, "acme", records...)
	if _, err := audit.CreateCheckpoint(t.Context(), forged, "acme", key); err != nil {
		t.Fatal(err)
	}
	return honest, forged, old
}

// An attacker with the store and the signing key can forge everything except checkpoints that were
// kept elsewhere.
func TestVerify_KnownCheckpointDetectsForgeryWithSameKey(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	honest, forged, old := forgery(t, key)
	head, _ := forged.Head(ctx, "acme")
	trust := trustIn(t, key, head)
	if _, err := audit.Verify(ctx, forged, "acme", audit.VerifyOptions{Trust: trust}, io.Discard); err != nil {
		t.Fatalf("the forgery is not valid: %v", err)
	}
	_, err := audit.Verify(ctx, forged, "acme", audit.VerifyOptions{Trust: trust, KnownCheckpoints: [][]byte{old.Note}}, io.Discard)
	if p := problem(t, "forged", err); p.Fault != audit.FaultRewritten || p.Seq != 1 {
		t.Errorf("found %v", p)
	}
	_, err = audit.Verify(ctx, honest, "acme", audit.VerifyOptions{Trust: trust, KnownCheckpoints: [][]byte{[]byte("x")}}, io.Discard)
	if p := problem(t, "no checkpoint", err); p.Fault != audit.FaultBadCheckpoint {
		t.Errorf("found %v", p)
	}
}

func TestVerify_StoreErrorIsNotAProblem(t *testing.T) {
	m, _, trust := signed(t, "acme", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := audit.Verify(ctx, m, "acme", audit.VerifyOptions{Trust: trust}, io.Discard)
	if _, isProblem := errors.AsType[*audit.Problem](err); err == nil || isProblem {
		t.Errorf("Verify = %v; want the error of the store", err)
	}
}

func mustHeadAt(t *testing.T, records []audit.Record) audit.Head {
	t.Helper()
	head, err := memoryLog(t, "acme", records...).Head(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// signedTail is the same log with one more, unsigned record.
func signedTail(t *testing.T, key *audit.Key) *audit.Memory {
	t.Helper()
	m := memoryLog(t, "acme", samples(6)...)
	if _, err := audit.CreateCheckpoint(t.Context(), m, "acme", key); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Append(t.Context(), "acme", sample(6, audit.RequestWithdrawn{})); err != nil {
		t.Fatal(err)
	}
	return m
}

// otherPeaks returns the head of a log with another tree.
func otherPeaks(t *testing.T, m *audit.Memory) audit.Head {
	t.Helper()
	head, _ := m.Head(t.Context(), "acme")
	text, err := head.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(`"peaks":["`)) + len(`"peaks":["`)
	if text[at]++; text[at] > '9' {
		text[at] = '0'
	}
	if err := head.UnmarshalJSON(text); err != nil {
		t.Fatal(err)
	}
	return head
}

type wrongHead struct {
	*audit.Memory
	head audit.Head
}

func (l wrongHead) Head(context.Context, string) (audit.Head, error) { return l.head, nil }

// wrongHashes returns a wrong hash for the node over records 3 and 4.
type wrongHashes struct{ *audit.Memory }

func (l wrongHashes) Hashes(ctx context.Context, account string, indexes []int64) ([]audit.Hash, error) {
	hashes, err := l.Memory.Hashes(ctx, account, indexes)
	for i, index := range indexes {
		if index == 5 {
			hashes[i][0] ^= 1
		}
	}
	return hashes, err
}

type noHashes struct{ *audit.Memory }

func (noHashes) Hashes(context.Context, string, []int64) ([]audit.Hash, error) {
	return nil, audit.ErrNotFound
}
