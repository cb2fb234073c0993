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

// Hash is the hash of a record, SHA-256 of a zero byte and the stored bytes, or of a tree node.
type Hash = tlog.Hash

// HashOf returns the hash of a stored record. It is the leaf hash of RFC 6962, so the chain and the
// tree share it.
func HashOf(raw []byte) Hash { return tlog.RecordHash(raw) }

// Salt protects a digest against guessing. The zero value means that the salt was erased.
type Salt [32]byte

// Derive returns a salt for one purpose. It does not reveal the salt that it is derived from, so
// digests of the purpose can be checked by a person who must not test guesses against others.
func (s Salt) Derive(purpose string) Salt {
	if s == (Salt{}) {
		return s
	}
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte(purpose))
	return Salt(mac.Sum(nil))
}

// ScreenPurpose is the purpose of the salt of [Shown.Screen], together with the id of the request.
const ScreenPurpose = "screen"

// Payload is data that a record refers to and does not contain: arguments, a rendered view, a
// person's reason. A store keeps it apart from the record, encrypted, under its id, and can delete
// it. Salt and data are deleted together. The remaining [Digest] reveals nothing.
//
// Records about the same payload have the same digest. So an auditor sees that the executed action
// is the approved one, without seeing its content. Payloads that are erased together, such as those
// of a run, may share an id and a salt; then equal data has equal digests. A payload that may be
// erased alone needs its own salt.
type Payload struct {
	ID   string
	Salt Salt
	Data []byte
}

// NewPayload returns data with an id and a new salt.
func NewPayload(data []byte) Payload {
	p := Payload{ID: ident.Random("pay"), Data: data}
	rand.Read(p.Salt[:])
	return p
}

// Format hides salt and data from logs, for every verb.
func (p Payload) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "audit.Payload(%s)", p.ID) }

// Digest returns the digest of the payload. It panics if the salt was erased.
func (p Payload) Digest() Digest {
	if p.Salt == (Salt{}) {
		panic("audit: digest of a payload without a salt")
	}
	return Digest{Sum: p.sum(p.Data), Payload: p.ID}
}

func (p Payload) sum(data []byte) string {
	mac := hmac.New(sha256.New, p.Salt[:])
	mac.Write(data)
	return hex.EncodeToString(mac.Sum(nil))
}

// Digest represents a payload in a record: HMAC-SHA-256 of the data with the payload's salt, and
// the payload id. The zero value means that there was no payload.
type Digest struct {
	Sum     string `json:"sum"`
	Payload string `json:"payload"`
}

// Confirms reports whether d is the digest of data. It needs the payload's salt.
func (d Digest) Confirms(p Payload, data []byte) bool {
	return p.Salt != (Salt{}) && p.ID == d.Payload && hmac.Equal([]byte(p.sum(data)), []byte(d.Sum))
}

func (d Digest) valid() error {
	if d == (Digest{}) {
		return nil
	}
	if sum, err := hex.DecodeString(d.Sum); err != nil || len(sum) != sha256.Size || hex.EncodeToString(sum) != d.Sum || d.Payload == "" {
		return fmt.Errorf("a digest needs a hex sum and a payload id")
	}
	return nil
}
