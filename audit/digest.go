package audit

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/fermata-go/fermata/internal/ident"
)

// Hash is the hash of a record, SHA-256 of a zero byte and the bytes that are stored, or of a node of the tree over them.
type Hash = tlog.Hash

// HashOf returns the hash of a stored record. It is the leaf hash of RFC 6962, so the chain and the tree share it.
func HashOf(raw []byte) Hash { return tlog.RecordHash(raw) }

// Salt makes a digest worthless to whoever does not have it. The zero value is none: it is what is left after an erasure.
type Salt [32]byte

// Payload is what a record speaks of and does not hold: arguments, a rendered view, a reason in somebody's words. A store keeps it apart from
// the record, sealed, under its id, and can delete it. Salt and data go together: what is left then, the [Digest], says nothing.
//
// Records that speak of the same payload show the same digest, so an auditor sees that what ran is what was approved without seeing what it was. What is erased
// together may share an id and a salt, a run's payloads for instance; then equal data shows as equal. What may be erased alone needs its own.
type Payload struct {
	ID   string
	Salt Salt
	Data []byte
}

// NewPayload gives data an id and a fresh salt.
func NewPayload(data []byte) Payload {
	p := Payload{ID: ident.Random("pay"), Data: data}
	rand.Read(p.Salt[:])
	return p
}

// Format hides salt and data from logs, whatever verb they use.
func (p Payload) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "audit.Payload(%s)", p.ID) }

// Digest returns what a record says of the payload. It panics if the salt is gone: then there is nothing true to say.
func (p Payload) Digest() Digest {
	if p.Salt == (Salt{}) {
		panic("audit: the digest of a payload without a salt")
	}
	return Digest{Sum: p.sum(p.Data), Payload: p.ID}
}

func (p Payload) sum(data []byte) string {
	mac := hmac.New(sha256.New, p.Salt[:])
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// Digest stands for a payload in a record: HMAC-SHA-256 of the data under the payload's salt, and the id under which both may still be
// found. The zero value says that there was nothing.
type Digest struct {
	Sum     string `json:"sum"`
	Payload string `json:"payload"`
}

// Confirms reports whether the digest is that of data. Without the payload's salt nothing can be confirmed.
func (d Digest) Confirms(p Payload, data []byte) bool {
	return p.Salt != (Salt{}) && p.ID == d.Payload && hmac.Equal([]byte(p.sum(data)), []byte(d.Sum))
}

func (d Digest) valid() error {
	if d == (Digest{}) {
		return nil
	}
	if sum, err := hex.DecodeString(d.Sum); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != d.Sum || d.Payload == "" {
		return fmt.Errorf("a digest needs a sum in hex and the id of its payload")
	}
	return nil
}
