// Package box seals what must not be readable in a database: AES-256-GCM, with the id of the key in front of each value, so that keys
// can be changed while the program runs.
//
//	value:  version (1 byte) · key id (8 bytes) · nonce and ciphertext
//
// A value is bound to a label, which says where it belongs. Put somewhere else, it does not open.
//
// Version 1 is sealed as it is; Seal makes it. Version 2 was packed before, with zstd and the dictionary of this package; Pack makes it, where that is
// smaller. The version is under the seal, too. Whoever can see packed values learns from their lengths not only how long the values are, but how
// much they resemble themselves and the dictionary: somebody who can put words beside a secret, and measure again and again, could guess it bit by bit. So Pack
// is for what stays in a database that few can read; what is handed out, as cookies are, is for Seal.
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
	// ErrUnknownKey says that a value was sealed with a key that this box does not have.
	ErrUnknownKey = errors.New("box: the key of this value is not here")

	// ErrCorrupt says that a value cannot be opened: it was changed, or belongs elsewhere.
	ErrCorrupt = errors.New("box: the value was changed or belongs elsewhere")
)

// Key is a secret of 32 bytes.
type Key [keySize]byte

// NewKey makes a key.
func NewKey() (Key, error) {
	var k Key
	_, err := rand.Read(k[:])
	return k, err
}

// id tells keys apart without telling anything about them.
func (k Key) id() [idSize]byte {
	sum := sha256.Sum256(append([]byte("fermata key id\n"), k[:]...))
	return [idSize]byte(sum[:idSize])
}

// String keeps the key out of logs.
//
//mutate:key-not-printed
func (k Key) String() string { id := k.id(); return "key " + hex.EncodeToString(id[:]) }

// GoString keeps the key out of logs.
func (k Key) GoString() string { return k.String() }

// ParseKey reads a key that is written as 64 hexadecimal digits.
func ParseKey(text string) (Key, error) {
	var k Key
	data, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(data) != keySize {
		//mutate:bad-key-not-printed
		return k, fmt.Errorf("box: a key is %d hexadecimal digits", 2*keySize) // without the text: it may be one nearly
	}
	copy(k[:], data)
	return k, nil
}

// Sealer seals with one key and opens with several.
type Sealer struct {
	current [idSize]byte
	ciphers map[[idSize]byte]cipher.AEAD
}

// New makes a box that seals with the first key and opens what any of them sealed.
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

// Seal closes data under a label, which is a text. Nil stays nil.
func (b *Sealer) Seal(label string, data []byte) []byte {
	if data == nil {
		return nil
	}
	return b.seal(version, label, data) //mutate:seal-without-compression
}

// Pack closes data under a label as Seal does, and makes it smaller before if it can: see what that tells in the comment on the package.
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

// associatedData is what a value is bound to. For all versions but the first it begins with a byte that is in no text, and the version: so nothing that is sealed under one version opens
// under another.
func associatedData(as byte, label string) []byte {
	if as == version {
		return []byte(label)
	}
	return append([]byte{0xff, as}, label...) //mutate:compression-flag-sealed
}

// Open opens what Seal or Pack closed under the same label.
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

// Current reports whether a value is sealed with the key that Seal uses now.
func (b *Sealer) Current(sealed []byte) bool {
	return len(sealed) > idSize && [idSize]byte(sealed[1:1+idSize]) == b.current
}
