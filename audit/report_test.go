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

	"github.com/fermata-go/fermata/audit"
)

func TestVerify_SaysHowFarItIsSigned(t *testing.T) {
	ctx := t.Context()
	m, _, trust := signed(t, "acme", 5)
	for range 2 {
		if _, err := m.Append(ctx, "acme", audit.New(noon, self, place, audit.Withdrawn{})); err != nil {
			t.Fatal(err)
		}
	}
	var said bytes.Buffer
	report, err := audit.Verify(ctx, m, "acme", audit.Against{Trust: trust}, &said)
	head, _ := m.Head(ctx, "acme")
	if err != nil || report.From != 1 || report.To != 7 || report.Signed != 5 || report.Checkpoints != 1 || report.Origin != head.Origin() || report.Root != head.Root() {
		t.Errorf("%+v, %v", report, err)
	}
	for _, want := range []string{"Whole.", "records 1 to 7", "Signed up to record 5", "The 2 records behind it are not signed yet"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("it does not say %q but\n%s", want, said.String())
		}
	}
	if body := report.Body(); body != (audit.Verified{From: 1, To: 7, Signed: 5}) {
		t.Errorf("for the log: %+v", body)
	}
}

func TestVerify_WithoutAKeySaysWhatItDidNotSee(t *testing.T) {
	m, _, _ := signed(t, "acme", 5)
	var said bytes.Buffer
	report, err := audit.Verify(t.Context(), m, "acme", audit.Against{}, &said)
	if err != nil || report.Signed != 0 || report.Foreign != 1 || !strings.Contains(said.String(), "No signature was checked") {
		t.Errorf("%+v, %v:\n%s", report, err, said.String())
	}
}

func TestVerify_AnEmptyLogIsNoProblem(t *testing.T) {
	_, _, trust := signed(t, "acme", 5)
	var said bytes.Buffer
	if _, err := audit.Verify(t.Context(), new(audit.Memory), "acme", audit.Against{Trust: trust}, &said); err != nil || !strings.Contains(said.String(), "no records") {
		t.Errorf("%v: %s", err, said.String())
	}
}

// Somebody who can write to the database changes one record, and the tree and the head stay. All three know better together than each alone.
func TestVerify_FindsEveryChangedByteWithItsNumber(t *testing.T) {
	m, _, trust := signed(t, "acme", 3)
	all := rows(t, m, "acme")
	for i, raw := range all {
		for at := range raw {
			changed := tampered{Memory: m, rows: slices.Clone(all)}
			changed.rows[i] = bytes.Clone(raw)
			changed.rows[i][at] ^= 1
			report, err := audit.Verify(t.Context(), changed, "acme", audit.Against{Trust: trust}, io.Discard)
			what := fmt.Sprintf("record %d, byte %d", i+1, at)
			p := problem(t, what, err)
			inLast := i == len(all)-1 && p.Seq == int64(i) // the prev of the last one: it, or the one before
			if p.Seq != int64(i+1) && !inLast || report.Problem != p {
				t.Errorf("%s: found %v", what, p)
			}
		}
	}
}

func TestVerify_FindsWhatWasDoneToTheStore(t *testing.T) {
	ctx := t.Context()
	m, key, trust := signed(t, "acme", 6)
	all := rows(t, m, "acme")
	longer := kept(t, "acme", samples(8)...)
	unsigned := kept(t, "acme", samples(6)...)
	foreign := kept(t, "acme", samples(6)...)
	if _, err := audit.MakeCheckpoint(ctx, foreign, "acme", audit.NewKey()); err != nil {
		t.Fatal(err)
	}
	head, _ := m.Head(ctx, "acme")
	good, _ := key.Sign(head)
	broken := kept(t, "acme", samples(6)...)
	if err := broken.KeepCheckpoint(ctx, "acme", audit.Checkpoint{Size: 6, Note: bytes.Replace(good.Note, []byte("\n6\n"), []byte("\n5\n"), 1)}); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		log   audit.Log
		seq   int64
		fault audit.Fault
	}{
		"tail cut":                {tampered{m, all[:4]}, 5, audit.CutOff},
		"unsigned tail cut":       {tampered{signedTail(t, key), all}, 7, audit.CutOff},
		"peaks of another head":   {wrongHead{m, otherPeaks(t, m)}, 6, audit.WrongHead},
		"everything gone":         {tampered{m, nil}, 1, audit.CutOff},
		"one deleted":             {tampered{m, slices.Delete(slices.Clone(all), 2, 3)}, 3, audit.Missing},
		"the last one changed":    {tampered{m, append(slices.Clone(all[:5]), bytes.Replace(all[5], []byte("alice"), []byte("mallo"), 1))}, 6, audit.Edited},
		"a record nobody wrote":   {tampered{m, append(slices.Clone(all), rows(t, longer, "acme")[6])}, 7, audit.WrongHead},
		"hashes changed":          {wrongHashes{m}, 4, audit.WrongHashes},
		"hashes gone":             {noHashes{m}, 1, audit.WrongHashes},
		"head of another history": {wrongHead{m, aLog(t, "acme", 6).head}, 6, audit.Edited},
		"head put back":           {wrongHead{m, mustHeadAt(t, samples(3))}, 4, audit.CutOff},
		"head put back to empty":  {wrongHead{unsigned, audit.Empty("acme")}, 1, audit.WrongHead},
		"checkpoints gone":        {unsigned, 1, audit.Unsigned},
		"checkpoints exchanged":   {foreign, 1, audit.Unsigned},
		"checkpoint changed":      {broken, 1, audit.BadCheckpoint},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			_, err := audit.Verify(ctx, test.log, "acme", audit.Against{Trust: trust}, &said)
			p := problem(t, name, err)
			if p.Seq != test.seq || p.Fault != test.fault {
				t.Errorf("found %v; want %s at %d", p, test.fault, test.seq)
			}
			if !strings.HasPrefix(said.String(), "NOT WHOLE") || !strings.Contains(said.String(), p.Text) {
				t.Errorf("it says %q", said.String())
			}
		})
	}
}

// forgery is what somebody makes of a log who has the store and the signing key: with another line in it, and signed, beside the honest log as it was, and
// what was signed of that.
func forgery(t *testing.T, key *audit.Key) (honest, forged *audit.Memory, old audit.Checkpoint) {
	t.Helper()
	honest = kept(t, "acme", samples(5)...)
	old, err := audit.MakeCheckpoint(t.Context(), honest, "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	records := samples(9)
	records[3] = sample(3, audit.Delegated{To: "mallory"})
	forged = kept(t, "acme", records...)
	if _, err := audit.MakeCheckpoint(t.Context(), forged, "acme", key); err != nil {
		t.Fatal(err)
	}
	return honest, forged, old
}

// Who has the store and the signing key can forge everything but what was taken elsewhere before.
func TestVerify_AKeptCheckpointFindsAForgeryWithTheRightKey(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	honest, forged, old := forgery(t, key)
	head, _ := forged.Head(ctx, "acme")
	trust := trustIn(t, key, head)
	if _, err := audit.Verify(ctx, forged, "acme", audit.Against{Trust: trust}, io.Discard); err != nil {
		t.Fatalf("the forgery is not good enough: %v", err)
	}
	_, err := audit.Verify(ctx, forged, "acme", audit.Against{Trust: trust, Kept: [][]byte{old.Note}}, io.Discard)
	if p := problem(t, "forged", err); p.Fault != audit.Rewritten || p.Seq != 1 {
		t.Errorf("found %v", p)
	}
	_, err = audit.Verify(ctx, honest, "acme", audit.Against{Trust: trust, Kept: [][]byte{[]byte("x")}}, io.Discard)
	if p := problem(t, "no checkpoint", err); p.Fault != audit.BadCheckpoint {
		t.Errorf("found %v", p)
	}
}

func TestVerify_AnErrorOfTheStoreIsNoProblemOfTheLog(t *testing.T) {
	m, _, trust := signed(t, "acme", 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := audit.Verify(ctx, m, "acme", audit.Against{Trust: trust}, io.Discard)
	if _, isProblem := errors.AsType[*audit.Problem](err); err == nil || isProblem {
		t.Errorf("Verify = %v; want the error of the store", err)
	}
}

func mustHeadAt(t *testing.T, records []audit.Record) audit.Head {
	t.Helper()
	head, err := kept(t, "acme", records...).Head(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// signedTail is the same log, with one more record that is not signed.
func signedTail(t *testing.T, key *audit.Key) *audit.Memory {
	t.Helper()
	m := kept(t, "acme", samples(6)...)
	if _, err := audit.MakeCheckpoint(t.Context(), m, "acme", key); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Append(t.Context(), "acme", sample(6, audit.Withdrawn{})); err != nil {
		t.Fatal(err)
	}
	return m
}

// otherPeaks is the head of a log with another tree.
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

// wrongHashes has another hash where the two records 3 and 4 meet.
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
