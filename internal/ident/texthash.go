package ident

import (
	"crypto/sha256"
	"encoding/hex"
)

// TextHash returns "sha256:" and the SHA-256 of a text in hex.
func TextHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
