package audit

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/fermata-go/fermata/internal/atomicfile"
)

// Key signs checkpoints with Ed25519. One key can sign for all accounts of an installation. Its
// public key is derived per log, so that the public key of one log says nothing about another.
type Key struct{ seed [ed25519.SeedSize]byte }

// NewKey returns a new key.
func NewKey() *Key {
	k := new(Key)
	rand.Read(k.seed[:])
	return k
}

// Format hides the key from logs, for every verb.
func (k Key) Format(f fmt.State, _ rune) { fmt.Fprint(f, "audit.Key(…)") }

// Verifier returns the public key for a log, in the form "name+hash+key" of signed notes. Give it
// to auditors through a channel that the operator does not control alone.
func (k *Key) Verifier(origin string) (string, error) {
	public := ed25519.NewKeyFromSeed(k.seed[:]).Public().(ed25519.PublicKey)
	return note.NewEd25519VerifierKey(origin, public)
}

// Trust returns a trust in this key alone, for one log.
func (k *Key) Trust(origin string) (Trust, error) {
	verifier, err := k.Verifier(origin)
	if err != nil {
		return Trust{}, err
	}
	return NewTrust(verifier)
}

// algorithm is the Ed25519 identifier in the key of a note.
const algorithm = 1

func (k *Key) signer(origin string) (note.Signer, error) {
	verifier, err := k.Verifier(origin)
	if err != nil {
		return nil, err
	}
	name, rest, _ := strings.Cut(verifier, "+")
	hash, _, _ := strings.Cut(rest, "+")
	secret := base64.StdEncoding.EncodeToString(append([]byte{algorithm}, k.seed[:]...))
	return note.NewSigner(fmt.Sprintf("PRIVATE+KEY+%s+%s+%s", name, hash, secret))
}

// keyPrefix distinguishes a signing key from other files with 32 bytes.
const keyPrefix = "fermata-audit-ed25519:"

// OpenKey opens a key file. Only its owner may have read access. An error is ErrKeyFile or a file
// system error.
func OpenKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%w: %s is readable by others (mode %o): run chmod 600, and replace the key if it may have been read", ErrKeyFile, filepath.Base(path), mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	digits, ok := strings.CutPrefix(strings.TrimSpace(string(text)), keyPrefix)
	k := new(Key)
	if !ok || len(digits) != hex.EncodedLen(len(k.seed)) {
		return nil, fmt.Errorf("%w: %s contains no signing key", ErrKeyFile, filepath.Base(path))
	}
	if _, err := hex.Decode(k.seed[:], []byte(digits)); err != nil {
		return nil, fmt.Errorf("%w: %s contains no signing key", ErrKeyFile, filepath.Base(path))
	}
	return k, nil
}

// OpenOrCreateKey opens a key file and creates it if it does not exist. Concurrent callers get the
// same key.
func OpenOrCreateKey(path string) (*Key, error) {
	err := atomicfile.Create(path, 0o600, func(file *os.File) error {
		_, err := file.WriteString(keyPrefix + hex.EncodeToString(NewKey().seed[:]) + "\n")
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return OpenKey(path)
}
