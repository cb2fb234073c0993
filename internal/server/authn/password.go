package authn

import (
	"crypto/rand"
	"crypto/subtle"

	"golang.org/x/crypto/argon2"
)

// The parameters of argon2id, as OWASP recommends: memory in KiB, passes and threads. They are not
// stored with the hash: another set needs another version byte.
const (
	passwordVersion = 1
	passwordMemory  = 19 << 10
	passwordPasses  = 2
	saltLength      = 16
	passwordHash    = 32

	minPassword, maxPassword = 12, 256
)

// hashPassword returns a version byte, a random salt and the argon2id hash of a password.
func hashPassword(password string) []byte {
	hash := make([]byte, 1+saltLength)
	hash[0] = passwordVersion
	rand.Read(hash[1:])
	return append(hash, derivePassword(password, hash[1:])...)
}

func derivePassword(password string, salt []byte) []byte {
	return argon2.IDKey([]byte(password), salt, passwordPasses, passwordMemory, 1, passwordHash)
}

// isPassword reports whether a hash is that of the password. It takes as long for an empty hash as
// for a wrong password, so that the time does not tell whether a member exists.
func isPassword(hash []byte, password string) bool {
	known := isPasswordHash(hash)
	if !known {
		hash = make([]byte, 1+saltLength+passwordHash)
	}
	same := subtle.ConstantTimeCompare(hash[1+saltLength:], derivePassword(password, hash[1:1+saltLength])) == 1
	return same && known
}

// noPassword is stored for a member without a password.
var noPassword = []byte{0}

func isPasswordHash(hash []byte) bool {
	return len(hash) == 1+saltLength+passwordHash && hash[0] == passwordVersion
}
