// Package ident creates ids. Derived ids are the same for the same parts; random ids are unique.
package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// encoding has no padding and no upper case, so that ids can be read aloud, selected with a double
// click and used in URLs.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const idBytes = 16

// Derive returns prefix + "_" + 128 bits of the hash of the parts. Each part is hashed with its
// length, so that different lists of parts never produce the same bytes.
func Derive(prefix string, parts ...string) string {
	buf := make([]byte, 0, 256)
	for _, part := range parts {
		buf = binary.AppendUvarint(buf, uint64(len(part)))
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	return format(prefix, sum[:idBytes])
}

// Random returns prefix + "_" + 128 random bits.
func Random(prefix string) string {
	var raw [idBytes]byte
	rand.Read(raw[:]) // never fails: it crashes the program instead
	return format(prefix, raw[:])
}

func format(prefix string, raw []byte) string {
	out := make([]byte, 0, len(prefix)+1+encoding.EncodedLen(len(raw)))
	out = append(out, prefix...)
	out = append(out, '_')
	return string(encoding.AppendEncode(out, raw))
}
