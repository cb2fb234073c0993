// Package seal encrypts values for storage with AES-256-GCM. Each value starts with the id of its
// key, so that keys can be rotated while the program runs.
//
//	value:  version (1 byte) · key id (8 bytes) · nonce and ciphertext
//
// A value is bound to a label that names its location. It does not open under another label.
//
// Version 1 holds the plain data and is created by Seal. Version 2 holds data compressed with zstd
// and the dictionary of this package; SealCompressed creates it if it is smaller. The version is
// authenticated.
//
// The length of a compressed value reveals how repetitive the data is and how similar to the
// dictionary. An attacker who can add text next to a secret and measure lengths repeatedly could
// guess the secret. Use SealCompressed only for values that stay in the database. Use Seal for
// values that leave it, such as cookies.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	version           = 1
	compressedVersion = 2
	idSize            = 8
	keySize           = 32
)

var (
	// ErrUnknownKey is returned for a value that was sealed with a key that this sealer does not
	// have.
	ErrUnknownKey = errors.New("seal: value was sealed with an unknown key")

	// ErrCorrupt is returned for a value that was changed or is bound to another label.
	ErrCorrupt = errors.New("seal: value was changed or belongs to another location")
)

// Key is a secret of 32 bytes.
type Key [keySize]byte

// NewKey creates a random key.
func NewKey() (Key, error) {
	var k Key
	_, err := rand.Read(k[:])
	return k, err
}

// id identifies the key without revealing anything about it.
func (k Key) id() [idSize]byte {
	sum := sha256.Sum256(append([]byte("fermata key id\n"), k[:]...))
	return [idSize]byte(sum[:idSize])
}

// String hides the key from logs.
//
//mutate:key-not-printed
func (k Key) String() string { id := k.id(); return "key " + hex.EncodeToString(id[:]) }

// GoString hides the key from logs.
func (k Key) GoString() string { return k.String() }

// ParseKey parses a key of 64 hexadecimal digits.
func ParseKey(text string) (Key, error) {
	var k Key
	data, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(data) != keySize {
		//mutate:bad-key-not-printed
		// without the text, which may be almost a key
		return k, fmt.Errorf("seal: a key must have %d hexadecimal digits", 2*keySize)
	}
	copy(k[:], data)
	return k, nil
}

// Sealer encrypts with one key and decrypts with several.
type Sealer struct {
	current [idSize]byte
	ciphers map[[idSize]byte]cipher.AEAD
}

// New returns a sealer that encrypts with the first key and decrypts with all of them.
func New(current Key, older ...Key) (*Sealer, error) {
	b := &Sealer{current: current.id(), ciphers: make(map[[idSize]byte]cipher.AEAD)}
	for _, k := range append([]Key{current}, older...) {
		block, err := aes.NewCipher(k[:])
		if err != nil {
			return nil, err
		}
		if b.ciphers[k.id()], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Seal encrypts data under a label. Nil stays nil.
func (b *Sealer) Seal(label string, data []byte) []byte {
	if data == nil {
		return nil
	}
	return b.seal(version, label, data) //mutate:seal-without-compression
}

// SealCompressed encrypts data like Seal but compresses it first if that makes it smaller. The
// package comment describes what the length reveals.
func (b *Sealer) SealCompressed(label string, data []byte) []byte {
	if packed, smaller := compress(data); smaller {
		return b.seal(compressedVersion, label, packed)
	}
	return b.Seal(label, data) //mutate:pack-with-compression
}

func (b *Sealer) seal(version byte, label string, data []byte) []byte {
	head := make([]byte, 0, 1+idSize+b.ciphers[b.current].Overhead()+len(data))
	head = append(append(head, version), b.current[:]...)
	return b.ciphers[b.current].Seal(head, nil, data, associatedData(version, label)) //mutate:seal-bound-to-label
}

// associatedData returns the data that a value is bound to. For all versions but the first it
// begins with a byte that cannot occur in a label, and the version, so a value does not open under
// another version.
func associatedData(as byte, label string) []byte {
	if as == version {
		return []byte(label)
	}
	return append([]byte{0xff, as}, label...) //mutate:compression-flag-sealed
}

// Open decrypts a value that Seal or SealCompressed created under the same label.
func (b *Sealer) Open(label string, sealed []byte) ([]byte, error) {
	if sealed == nil {
		return nil, nil
	}
	if len(sealed) < 1+idSize || sealed[0] != version && sealed[0] != compressedVersion {
		return nil, ErrCorrupt
	}
	aead := b.ciphers[[idSize]byte(sealed[1:1+idSize])]
	if aead == nil {
		return nil, ErrUnknownKey
	}
	//mutate:open-bound-to-label
	data, err := aead.Open([]byte{}, nil, sealed[1+idSize:], associatedData(sealed[0], label))
	if err != nil {
		return nil, ErrCorrupt
	}
	if sealed[0] == compressedVersion {
		return decompress(data)
	}
	return data, nil
}

// Current reports whether a value is sealed with the current key.
func (b *Sealer) Current(sealed []byte) bool {
	return len(sealed) > idSize && [idSize]byte(sealed[1:1+idSize]) == b.current
}
