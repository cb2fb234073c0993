package audit_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

func TestDigest_ConfirmsOnlyItsPayload(t *testing.T) {
	p := audit.NewPayload([]byte("reject: wrong customer"))
	d := p.Digest()
	if !d.Confirms(p, p.Data) {
		t.Error("the digest does not confirm its own payload")
	}
	other := audit.NewPayload(p.Data)
	unsalted := hmac.New(sha256.New, make([]byte, 32))
	unsalted.Write(p.Data)
	zero := audit.Digest{Sum: hex.EncodeToString(unsalted.Sum(nil)), Payload: p.ID}
	otherID := p
	otherID.ID = other.ID
	for name, confirmed := range map[string]bool{
		"other data":           d.Confirms(p, []byte("reject: right customer")),
		"another salt":         d.Confirms(audit.Payload{ID: p.ID, Salt: other.Salt}, p.Data),
		"another id":           d.Confirms(otherID, p.Data),
		"no salt":              d.Confirms(audit.Payload{ID: p.ID}, p.Data),
		"unsalted digest":      zero.Confirms(audit.Payload{ID: p.ID}, p.Data),
		"another digest":       other.Digest().Confirms(p, p.Data),
		"digest of empty data": (audit.Digest{}).Confirms(audit.Payload{}, nil),
	} {
		if confirmed {
			t.Errorf("%s was confirmed", name)
		}
	}
}

// The same payload has the same digest in every record, so that an auditor sees that the executed
// action is the approved one. Two payloads never have the same digest, even if they are equal.
func TestDigest_SameForOnePayloadDifferentForTwo(t *testing.T) {
	one, two := audit.NewPayload([]byte("yes")), audit.NewPayload([]byte("yes"))
	if again := (audit.Payload{ID: one.ID, Salt: one.Salt, Data: one.Data}); again.Digest() != one.Digest() {
		t.Error("two digests of one payload")
	}
	if one.Digest().Sum == two.Digest().Sum {
		t.Error("two payloads with one digest: the salt has no effect")
	}
}

// After the payload of a person is erased, the chain stays valid, and the record reveals nothing
// about the payload, not even by trying all possible values.
func TestErase_ChainStaysValidAndDigestRevealsNothing(t *testing.T) {
	ctx := t.Context()
	// the only possible values
	reasons := []string{"too old", "too young", "wrong sex", "no reason"}
	said := audit.NewPayload([]byte(reasons[1]))
	vault := map[string]audit.Payload{said.ID: said}
	m := memoryLog(t, "acme", sample(0, audit.RequestDecided{Verb: audit.VerbReject, Settles: true, Reason: said.Digest()}), sample(1, audit.RequestWithdrawn{}))
	key := audit.NewKey()
	if _, err := audit.CreateCheckpoint(ctx, m, "acme", key); err != nil {
		t.Fatal(err)
	}
	before := rows(t, m, "acme")

	guess := func() (confirmed []string) {
		r, err := audit.Parse(before[0])
		if err != nil {
			t.Fatal(err)
		}
		d := r.Body.(audit.RequestDecided).Reason
		for _, reason := range reasons {
			if d.Confirms(vault[d.Payload], []byte(reason)) {
				confirmed = append(confirmed, reason)
			}
			for _, unsalted := range []string{reason, string(before[0]) + reason} {
				if sum := sha256.Sum256([]byte(unsalted)); d.Sum == hex.EncodeToString(sum[:]) {
					confirmed = append(confirmed, reason)
				}
			}
			zero := audit.Payload{ID: d.Payload, Salt: audit.Salt{31: 1}, Data: []byte(reason)}
			if zero.Digest() == d {
				confirmed = append(confirmed, reason)
			}
		}
		return confirmed
	}
	if got := guess(); len(got) != 1 || got[0] != reasons[1] {
		t.Fatalf("with the salt the record confirms %q", got)
	}

	delete(vault, said.ID) // erase salt and data together
	if _, err := m.Append(ctx, "acme", audit.NewRecord(noon, self, audit.Location{}, audit.PayloadsErased{Payloads: []string{said.ID}, Order: "dsr-17"})); err != nil {
		t.Fatal(err)
	}
	if got := guess(); len(got) != 0 {
		t.Errorf("after the erasure the record still confirms %q", got)
	}
	for i, raw := range rows(t, m, "acme")[:2] {
		if !bytes.Equal(raw, before[i]) || bytes.Contains(raw, said.Salt[:]) || bytes.Contains(raw, []byte(hex.EncodeToString(said.Salt[:]))) || bytes.Contains(raw, said.Data) {
			t.Errorf("record %d was changed, or contains salt or data", i+1)
		}
	}
	head, _ := m.Head(ctx, "acme")
	report, err := audit.Verify(ctx, m, "acme", audit.VerifyOptions{Trust: trustIn(t, key, head)}, io.Discard)
	if err != nil || report.To != 3 || report.Signed != 2 {
		t.Errorf("after the erasure: %+v, %v", report, err)
	}
}

func TestI7_PayloadsAreNotPrinted(t *testing.T) {
	p := audit.Payload{ID: "pay_1", Salt: audit.Salt{1, 2, 3, 4, 5}, Data: []byte("secret")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		for _, got := range []string{fmt.Sprintf(verb, p), fmt.Sprintf(verb, &p), fmt.Sprintf(verb, []audit.Payload{p})} {
			if strings.Contains(got, "secret") || strings.Contains(got, "1 2 3 4") || strings.Contains(got, "0102030405") || strings.Contains(got, "0x1, 0x2") {
				t.Errorf("%s prints %s", verb, got)
			}
		}
	}
}

func TestPayload_WithoutSaltDigestPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an unsalted digest was made: it could be guessed")
		}
	}()
	t.Log(fmt.Sprint(audit.Payload{ID: "pay_1", Data: []byte("yes")}.Digest()))
}
