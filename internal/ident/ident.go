// Package ident makes ids: derived ones, which are the same whenever the same thing is named again, and random ones.
package ident

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
)

// encoding has no padding and no upper case, so that ids can be spoken, double-clicked and put into URLs.
var encoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

const idBytes = 16

// Derive returns prefix + "_" + 128 bits of the parts' hash. Each part is hashed with its length, so that no two lists of
// parts run together into the same bytes.
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
