package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"github.com/fermata-go/fermata/internal/audit"
)

// verify verifies records against checkpoints.
func verify(account string, records [][]byte, checkpoints ...audit.Checkpoint) error {
	v := audit.NewVerifier(audit.EmptyHead(account))
	for _, c := range checkpoints {
		if err := v.ExpectCheckpoint(c); err != nil {
			return err
		}
	}
	for _, raw := range records {
		if err := v.Add(raw); err != nil {
			return err
		}
	}
	return v.End()
}

func checkpoint(t testing.TB, head audit.Head) audit.Checkpoint {
	t.Helper()
	c, err := audit.NewKey().Sign(head)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// problem returns the problem, or fails.
func problem(t *testing.T, what string, err error) *audit.Problem {
	t.Helper()
	p, ok := errors.AsType[*audit.Problem](err)
	if !ok {
		t.Fatalf("%s: %v; want a problem", what, err)
	}
	return p
}

func TestVerifier_IntactLogIsValid(t *testing.T) {
	w := newLog(t, "acme", 20)
	for n := range w.raw {
		var checkpoints []audit.Checkpoint
		for _, head := range w.heads[:n] {
			checkpoints = append(checkpoints, checkpoint(t, head))
		}
		slices.Reverse(checkpoints) // in any order
		if err := verify("acme", w.raw[:n], checkpoints...); err != nil {
			t.Errorf("%d records: %v", n, err)
		}
	}
}

func TestVerifier_LocatesChangedByte(t *testing.T) {
	w := newLog(t, "acme", 5)
	signed := checkpoint(t, w.head)
	for i, raw := range w.raw {
		for at := range raw {
			for _, bit := range []byte{0x01, 0x20, 0x80} {
				records := slices.Clone(w.raw)
				records[i] = bytes.Clone(raw)
				records[i][at] ^= bit
				what := fmt.Sprintf("record %d, byte %d, bit %x", i+1, at, bit)
				p := problem(t, what, verify("acme", records, signed))
				switch {
				case p.Seq == int64(i+1):
				// no record follows the last one
				case i == len(w.raw)-1 && p.Fault == audit.FaultRewritten:
				// prev was changed: either record could be wrong
				case i == len(w.raw)-1 && p.Fault == audit.FaultEdited && p.Seq == int64(i):
				default:
					t.Errorf("%s: found %v", what, p)
				}
			}
		}
	}
}

func TestVerifier_LocatesSwappedRecords(t *testing.T) {
	w := newLog(t, "acme", 8)
	signed := checkpoint(t, w.head)
	for i := range w.raw {
		for j := i + 1; j < len(w.raw); j++ {
			records := slices.Clone(w.raw)
			records[i], records[j] = records[j], records[i]
			what := fmt.Sprintf("%d and %d", i+1, j+1)
			if p := problem(t, what, verify("acme", records, signed)); p.Seq != int64(i+1) || p.Fault != audit.FaultMisplaced {
				t.Errorf("%s swapped: found %v", what, p)
			}
		}
	}
}

func TestVerifier_DetectsDeletion(t *testing.T) {
	w := newLog(t, "acme", 8)
	signed := checkpoint(t, w.head)
	for i := range w.raw {
		for j := i + 1; j <= len(w.raw); j++ {
			records := slices.Delete(slices.Clone(w.raw), i, j)
			what := fmt.Sprintf("without %d to %d", i+1, j)
			p := problem(t, what, verify("acme", records, signed))
			want := audit.FaultMissing
			if j == len(w.raw) {
				want = audit.FaultTruncated
			}
			if p.Seq != int64(i+1) || p.Fault != want {
				t.Errorf("%s: found %v; want %s at %d", what, p, want, i+1)
			}
			if err := verify("acme", records); (err == nil) != (j == len(w.raw)) {
				t.Errorf("%s: the chain alone says %v", what, err)
			}
		}
	}
}

func TestVerifier_DetectsRepetition(t *testing.T) {
	w := newLog(t, "acme", 6)
	for i := range w.raw {
		for at := i + 1; at <= len(w.raw); at++ {
			records := slices.Insert(slices.Clone(w.raw), at, w.raw[i])
			what := fmt.Sprintf("%d again after %d", i+1, at)
			want := audit.FaultMisplaced
			if at == i+1 {
				want = audit.FaultRepeated
			}
			if p := problem(t, what, verify("acme", records)); p.Seq != int64(at+1) || p.Fault != want {
				t.Errorf("%s: found %v; want %s at %d", what, p, want, at+1)
			}
		}
	}
}

func TestVerifier_DetectsRecordsOfAnotherAccount(t *testing.T) {
	acme, evil := newLog(t, "acme", 5), newLog(t, "evil", 5)
	for i := range acme.raw {
		records := slices.Clone(acme.raw)
		records[i] = evil.raw[i]
		if p := problem(t, "exchanged", verify("acme", records)); p.Seq != int64(i+1) || p.Fault != audit.FaultWrongAccount {
			t.Errorf("record %d of another account: found %v", i+1, p)
		}
	}
	if p := problem(t, "all of it", verify("acme", evil.raw)); p.Fault != audit.FaultWrongAccount {
		t.Errorf("the log of another account: found %v", p)
	}
}

// An owner of the store can write a whole new chain. Only a checkpoint that was kept elsewhere
// reveals it.
func TestVerifier_CheckpointDetectsRewrittenChain(t *testing.T) {
	w := newLog(t, "acme", 20)
	at5, at10, at20 := checkpoint(t, w.heads[4]), checkpoint(t, w.heads[9]), checkpoint(t, w.head)
	for from := range w.raw {
		forged := &appendedLog{head: audit.EmptyHead("acme")}
		if from > 0 {
			forged.head = w.heads[from-1]
		}
		forged.raw = slices.Clone(w.raw[:from])
		for i := from; i < len(w.raw); i++ {
			forged.append(t, sample(i, audit.RequestDelegated{To: "mallory"}))
		}
		if err := verify("acme", forged.raw); err != nil {
			t.Fatalf("the forged chain is not valid: %v", err)
		}
		want, origin := int64(11), from == 0
		switch {
		case from < 5:
			want = 1
		case from < 10:
			want = 6
		}
		p := problem(t, fmt.Sprintf("from %d", from+1), verify("acme", forged.raw, at5, at10, at20))
		if p.Fault != audit.FaultRewritten || p.Seq != want && !origin {
			t.Errorf("rewritten from %d: found %v; want %d", from+1, p, want)
		}
	}
}

// No other record contains the number of the last record, but it must still be right.
func TestVerifier_DetectsWrongSequenceNumber(t *testing.T) {
	w := newLog(t, "acme", 3)
	records := slices.Clone(w.raw)
	records[2] = bytes.Replace(records[2], []byte(`"seq":3`), []byte(`"seq":4`), 1)
	if p := problem(t, "renumbered", verify("acme", records)); p.Seq != 3 || p.Fault != audit.FaultEdited {
		t.Errorf("found %v", p)
	}
}

func TestVerifier_NamesChangedRecordBeforeCheckpoint(t *testing.T) {
	w := newLog(t, "acme", 6)
	records := slices.Clone(w.raw)
	records[2] = bytes.Replace(records[2], []byte("alice"), []byte("mallo"), 1)
	p := problem(t, "edited", verify("acme", records, checkpoint(t, w.heads[2]), checkpoint(t, w.head)))
	if p.Seq != 3 || p.Fault != audit.FaultEdited {
		t.Errorf("found %v; want record 3 as edited, although it is the last one before a checkpoint", p)
	}
}

func TestVerifier_CheckpointMismatchIsReportedFirst(t *testing.T) {
	w := newLog(t, "acme", 6)
	other := checkpoint(t, newLog(t, "acme", 4).heads[3])
	other.Root[0] ^= 1
	for name, last := range map[string][]byte{"unreadable": []byte("x"), "missing": w.raw[5]} {
		p := problem(t, name, verify("acme", append(slices.Clone(w.raw[:4]), last), other))
		if p.Fault != audit.FaultRewritten || p.Seq != 1 {
			t.Errorf("%s: found %v; want the checkpoint of 4 records", name, p)
		}
	}
}

func TestVerifier_CheckpointMismatchIsReportedBeforeLaterFaults(t *testing.T) {
	w := newLog(t, "acme", 9)
	wrong := checkpoint(t, w.heads[3])
	wrong.Root[0] ^= 1
	records := slices.Clone(w.raw)
	records[6] = bytes.Replace(records[6], []byte("alice"), []byte("mallo"), 1)
	if p := problem(t, "two things", verify("acme", records, wrong)); p.Fault != audit.FaultRewritten || p.Seq != 1 {
		t.Errorf("found %v; want the checkpoint of 4 records", p)
	}
}

// No record follows the last one, so at least its encoding must be canonical.
func TestVerifier_LastRecordHasOneEncoding(t *testing.T) {
	w := newLog(t, "acme", 3)
	last := string(w.raw[2])
	_, rest, _ := strings.Cut(last, `"prev":"`)
	for name, change := range map[string][2]string{
		"upper case hex":     {rest[:64], strings.ToUpper(rest[:64])},
		"a duplicate member": {`"body":{`, `"body":{"until":"x",`},
		"broken JSON":        {`"body":{`, `"body":[`},
		"a leading zero":     {`"seq":3`, `"seq":03`},
		"a line break":       {`"body":`, "\"body\":\n"},
		"a tab":              {`"body":`, "\"body\":\t"},
		"trailing data":      {`}}`, `}} ` + "\x00"},
		"account, escaped":   {`"acme"`, `"\u0061cme"`},
		"no actor":           {`"actor":`, `"actrix":`},
		"time, another one":  {`Z","account`, `z","account`},
	} {
		bad := strings.Replace(last, change[0], change[1], 1)
		if bad == last {
			t.Fatalf("%s: nothing was changed", name)
		}
		if p := problem(t, name, verify("acme", [][]byte{w.raw[0], w.raw[1], []byte(bad)})); p.Seq != 3 || p.Fault != audit.FaultUnreadable {
			t.Errorf("%s: found %v", name, p)
		}
	}
}

func TestVerifier_KeepsFirstProblem(t *testing.T) {
	w := newLog(t, "acme", 3)
	v := audit.NewVerifier(audit.EmptyHead("acme"))
	first := v.Add([]byte("{}"))
	if p := problem(t, "no record", first); p.Fault != audit.FaultUnreadable || p.Seq != 1 {
		t.Fatalf("found %v", p)
	}
	if again := v.Add(w.raw[0]); again != first {
		t.Errorf("then %v", again)
	}
	if again := v.ExpectCheckpoint(checkpoint(t, w.head)); again != first {
		t.Errorf("then %v", again)
	}
	if again := v.End(); again != first {
		t.Errorf("at the end %v", again)
	}
}

// An older program must be able to verify records of a newer one.
func TestVerifier_VerifiesUnknownKinds(t *testing.T) {
	w := newLog(t, "acme", 1)
	newer := bytes.Replace(w.raw[0], []byte("request.claimed"), []byte("request.dreamed"), 1)
	if err := verify("acme", [][]byte{newer}); err != nil {
		t.Error(err)
	}
}

// Records verify in append order, and the tree is that of RFC 6962, as in package tlog.
func TestProperty_AppendedIsVerified(t *testing.T) {
	all := bodies()
	rapid.Check(t, func(rt *rapid.T) {
		account := rapid.String().Draw(rt, "account")
		order := rapid.SliceOfN(rapid.IntRange(0, len(all)-1), 0, 40).Draw(rt, "bodies")
		w := &appendedLog{head: audit.EmptyHead(account)}
		for i, body := range order {
			w.append(t, sample(i, all[body]))
		}
		stored := tlog.HashReaderFunc(func(indexes []int64) ([]audit.Hash, error) {
			var got []audit.Hash
			for _, i := range indexes {
				got = append(got, w.hashes[i])
			}
			return got, nil
		})
		var want []audit.Hash
		for i, raw := range w.raw {
			hashes, err := tlog.StoredHashes(int64(i), raw, stored)
			if err != nil {
				rt.Fatal(err)
			}
			want = append(want, hashes...)
		}
		if !slices.Equal(w.hashes, want) {
			rt.Fatal("the hashes differ from those of package tlog")
		}
		root, err := tlog.TreeHash(int64(len(order)), stored)
		if err != nil || w.head.Root() != root {
			rt.Fatalf("the root is %v, and that of package tlog %v, %v", w.head.Root(), root, err)
		}
		for i, raw := range w.raw {
			r, err := audit.Parse(raw)
			if err != nil || r.Seq != int64(i+1) || r.Account != account || r.Kind() != sample(i, all[order[i]]).Kind() {
				rt.Fatalf("record %d was parsed as %+v, %v", i+1, r, err)
			}
		}
		if err := verify(account, w.raw); err != nil {
			rt.Fatal(err)
		}
		restart(rt, w)
	})
}

// restart appends to a head that was stored and loaded.
func restart(rt *rapid.T, w *appendedLog) {
	text, err := w.head.MarshalJSON()
	if err != nil {
		rt.Fatal(err)
	}
	var head audit.Head
	if err := head.UnmarshalJSON(text); err != nil || !head.Equal(w.head) {
		rt.Fatalf("the head %s has changed: %v", text, err)
	}
	a, _, err := audit.Append(head, sample(99, audit.RequestWithdrawn{}))
	b, _, err2 := audit.Append(w.head, sample(99, audit.RequestWithdrawn{}))
	if err != nil || err2 != nil || !bytes.Equal(a.Raw, b.Raw) || !slices.Equal(a.Hashes, b.Hashes) {
		rt.Fatalf("a stored head appends differently: %v, %v", err, err2)
	}
}

func TestAppend_DoesNotChangeGivenHead(t *testing.T) {
	w := newLog(t, "acme", 7)
	before := w.heads[6]
	root := before.Root()
	one, _, _ := audit.Append(before, sample(1, audit.RequestWithdrawn{Why: "one"}))
	two, _, _ := audit.Append(before, sample(2, audit.RequestWithdrawn{Why: "two"}))
	if before.Root() != root || one.Seq != 8 || two.Seq != 8 || slices.Equal(one.Hashes, two.Hashes) {
		t.Error("a rolled back transaction has changed the head")
	}
}

func TestHead_InvalidJSONReturnsErrHead(t *testing.T) {
	good, err := newLog(t, "acme", 3).head.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"size":              {`"size":3`, `"size":4`},
		"negative":          {`"size":3`, `"size":-1`},
		"empty with hashes": {`"size":3`, `"size":0`},
		"no last":           {`"last":"`, `"lost":"`},
		"short hash":        {`"first":"`, `"first":"0`},
		"long hash":         {`"last":"`, `"last":"00`},
		"no hex":            {`"peaks":["`, `"peaks":["zz`},
		"unknown member":    {`{`, `{"x":1,`},
	} {
		bad := bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1)
		if err := new(audit.Head).UnmarshalJSON(bad); !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s: %v; want ErrHead", name, err)
		}
	}
}

// seq returns a list as an iterator.
func seq[T any](all ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, one := range all {
			if !yield(one, nil) {
				return
			}
		}
	}
}
