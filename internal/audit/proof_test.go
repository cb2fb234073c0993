package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

// signed returns a log of n records with a checkpoint, and the trust in it.
func signed(t testing.TB, account string, n int) (*audit.Memory, *audit.Key, audit.Trust) {
	t.Helper()
	m, key := memoryLog(t, account, samples(n)...), audit.NewKey()
	if _, err := audit.CreateCheckpoint(t.Context(), m, account, key); err != nil {
		t.Fatal(err)
	}
	head, _ := m.Head(t.Context(), account)
	return m, key, trustIn(t, key, head)
}

func TestProve_EveryRecordOfEverySize(t *testing.T) {
	for n := 1; n <= 17; n++ {
		m, _, trust := signed(t, "acme", n)
		for seq := int64(1); seq <= int64(n); seq++ {
			var file, said bytes.Buffer
			if _, err := audit.Prove(t.Context(), m, "acme", seq, trust, &file); err != nil {
				t.Fatalf("record %d of %d: %v", seq, n, err)
			}
			got, err := audit.CheckProof(file.Bytes(), trust, &said)
			if err != nil {
				t.Fatalf("record %d of %d: %v", seq, n, err)
			}
			if got.Seq != seq || got.Account != "acme" || got.Kind != "request.commented" || got.Checkpoint.Size != int64(n) {
				t.Errorf("record %d of %d: proved %+v", seq, n, got)
			}
			if !strings.Contains(said.String(), fmt.Sprintf("Record %d of account \"acme\"", seq)) {
				t.Errorf("it says %q", said.String())
			}
		}
	}
}

func TestProve_MissingOrUnsignedRecordFails(t *testing.T) {
	ctx := t.Context()
	m, _, trust := signed(t, "acme", 5)
	if _, err := m.Append(ctx, "acme", sample(9, audit.RequestWithdrawn{})); err != nil {
		t.Fatal(err)
	}
	stranger := trustIn(t, audit.NewKey(), newLog(t, "acme", 1).head)
	for name, test := range map[string]struct {
		account string
		seq     int64
		trust   audit.Trust
		want    error
	}{
		"number 0":                  {"acme", 0, trust, audit.ErrNotFound},
		"after the end":             {"acme", 7, trust, audit.ErrNotFound},
		"after the last checkpoint": {"acme", 6, trust, audit.ErrNotSigned},
		"another account":           {"evil", 1, trust, audit.ErrNotFound},
		"another key":               {"acme", 1, stranger, audit.ErrUntrusted},
	} {
		var file bytes.Buffer
		if _, err := audit.Prove(ctx, m, test.account, test.seq, test.trust, &file); !errors.Is(err, test.want) || file.Len() > 0 {
			t.Errorf("%s: %v and %d bytes; want %v and none", name, err, file.Len(), test.want)
		}
	}
	unsigned := memoryLog(t, "acme", samples(2)...)
	if _, err := audit.Prove(ctx, unsigned, "acme", 1, trust, io.Discard); !errors.Is(err, audit.ErrNotSigned) {
		t.Errorf("unsigned log: %v", err)
	}
	forged := tampered{Memory: m, rows: rows(t, m, "acme")}
	forged.rows[2] = bytes.Replace(forged.rows[2], []byte("alice"), []byte("mallo"), 1)
	if _, err := audit.Prove(ctx, forged, "acme", 3, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("a changed record: %v; want ErrProof", err)
	}
}

func TestCheckProof_ChangedByteIsRefused(t *testing.T) {
	m, _, trust := signed(t, "acme", 5)
	var file bytes.Buffer
	if _, err := audit.Prove(t.Context(), m, "acme", 3, trust, &file); err != nil {
		t.Fatal(err)
	}
	good, err := audit.CheckProof(file.Bytes(), trust, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Bytes() {
		bad := bytes.Clone(file.Bytes())
		bad[i] ^= 1
		got, err := audit.CheckProof(bad, trust, io.Discard)
		if err == nil && !bytes.Equal(got.Raw, good.Raw) {
			t.Errorf("byte %d changed, but it proves %+v", i, got)
		}
		if err != nil && !errors.Is(err, audit.ErrProof) && !errors.Is(err, audit.ErrUntrusted) && !errors.Is(err, audit.ErrCheckpoint) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
}

func TestCheckProof_OtherRecordIsRefused(t *testing.T) {
	m, key, trust := signed(t, "acme", 8)
	proof := func(m audit.Log, account string, seq int64, trust audit.Trust) audit.Proof {
		p, err := audit.Prove(t.Context(), m, account, seq, trust, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	three, four := proof(m, "acme", 3, trust), proof(m, "acme", 4, trust)
	mixed := three
	mixed.Record = four.Record
	renamed := three
	renamed.Format = "fermata-audit-proof/2"
	short := three
	short.Hashes = short.Hashes[1:]
	noRecord := three
	noRecord.Record = "{}"
	for name, p := range map[string]audit.Proof{"the record of another": mixed, "another format": renamed, "too few hashes": short, "no record": noRecord} {
		data, _ := json.Marshal(p)
		if got, err := audit.CheckProof(data, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
			t.Errorf("%s: %+v, %v; want ErrProof", name, got, err)
		}
	}
	// Another log of the same installation, with the same key: its records are not records of this
	// log.
	other := memoryLog(t, "evil", samples(8)...)
	if _, err := audit.CreateCheckpoint(t.Context(), other, "evil", key); err != nil {
		t.Fatal(err)
	}
	head, _ := other.Head(t.Context(), "evil")
	data, _ := json.Marshal(proof(other, "evil", 3, trustIn(t, key, head)))
	if got, err := audit.CheckProof(data, trust, io.Discard); !errors.Is(err, audit.ErrUntrusted) {
		t.Errorf("another log: %+v, %v; want ErrUntrusted", got, err)
	}
	for _, bad := range []string{"", "{}", "[]", `{"format":"fermata-audit-proof/1"}`} {
		if _, err := audit.CheckProof([]byte(bad), trust, io.Discard); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

// The name of a log is the hash of its first record. A checkpoint of another name over the same
// records is refused.
func TestCheckProof_FirstRecordMustMatchOrigin(t *testing.T) {
	m, key, trust := signed(t, "acme", 3)
	proof, err := audit.Prove(t.Context(), m, "acme", 1, trust, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	head, _ := m.Head(t.Context(), "acme")
	other := newLog(t, "evil", 1).head.Origin()
	proof.Checkpoint = string(resign(t, key, other, fmt.Sprintf("%s\n3\n%s\n", other, head.Root())))
	data, _ := json.Marshal(proof)
	lied, err := key.Trust(other)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := audit.CheckProof(data, lied, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("%+v, %v; want ErrProof", got, err)
	}
}

func TestConsistency_BetweenAnyTwoCheckpoints(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	m := new(audit.Memory)
	var notes [][]byte
	var trust audit.Trust
	for i, r := range samples(17) {
		if _, err := m.Append(ctx, "acme", r); err != nil {
			t.Fatal(err)
		}
		c, err := audit.CreateCheckpoint(ctx, m, "acme", key)
		if err != nil {
			t.Fatal(err)
		}
		head, _ := m.Head(ctx, "acme")
		notes, trust = append(notes, c.Note), trustIn(t, key, head)
		for old, signed := range notes {
			var file bytes.Buffer
			if _, err := audit.ProveConsistency(ctx, m, "acme", signed, trust, &file); err != nil {
				t.Fatalf("%d to %d: %v", old+1, i+1, err)
			}
			first, last, err := audit.CheckConsistency(file.Bytes(), trust, io.Discard)
			if err != nil || first.Size != int64(old+1) || last.Size != int64(i+1) {
				t.Errorf("%d to %d: %d to %d, %v", old+1, i+1, first.Size, last.Size, err)
			}
		}
	}
}

func TestConsistency_ForkIsRefused(t *testing.T) {
	ctx, key := t.Context(), audit.NewKey()
	_, forged, old := forgery(t, key)
	head, _ := forged.Head(ctx, "acme")
	trust := trustIn(t, key, head)
	if _, err := audit.ProveConsistency(ctx, forged, "acme", old.Note, trust, io.Discard); !errors.Is(err, audit.ErrFork) {
		t.Errorf("a proof for a fork: %v; want ErrFork", err)
	}
	// A forged proof is refused too.
	newest, _ := key.Sign(head)
	good := memoryLog(t, "acme", samples(9)...)
	if _, err := audit.CreateCheckpoint(ctx, good, "acme", key); err != nil {
		t.Fatal(err)
	}
	c, err := audit.ProveConsistency(ctx, good, "acme", old.Note, trust, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	c.New = string(newest.Note)
	data, _ := json.Marshal(c)
	if _, _, err := audit.CheckConsistency(data, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("a forged proof: %v; want ErrProof", err)
	}
	c.Format = "x"
	data, _ = json.Marshal(c)
	if _, _, err := audit.CheckConsistency(data, trust, io.Discard); !errors.Is(err, audit.ErrProof) {
		t.Errorf("another format: %v; want ErrProof", err)
	}
	if _, err := audit.ProveConsistency(ctx, good, "acme", []byte("x"), trust, io.Discard); !errors.Is(err, audit.ErrUntrusted) {
		t.Errorf("no checkpoint: %v; want ErrUntrusted", err)
	}
}
