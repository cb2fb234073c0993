package encrypted

import (
	"strconv"

	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
)

// Sealer encrypts and decrypts values. A value can be decrypted only under the label that it was
// encrypted with. Implementations are safe for concurrent use.
type Sealer interface {
	// Seal encrypts data. It returns nil for nil.
	Seal(label string, data []byte) []byte
	// Open decrypts a value. It returns nil for nil.
	Open(label string, sealed []byte) ([]byte, error)
	// Current reports whether a value is encrypted with the key that Seal uses now.
	Current(sealed []byte) bool
}

// Compressor is a Sealer that can compress values before it encrypts them. The store uses
// compression if the sealer supports it.
type Compressor interface {
	Sealer
	SealCompressed(label string, data []byte) []byte
}

// KeyReloader is a Sealer that reloads its keys when their source changes. Err returns why the
// source cannot be read, or nil.
type KeyReloader interface {
	Sealer
	Err() error
}

// OpenKeyFile opens a key file. The first key in it encrypts (AES-256-GCM), all of them decrypt.
// A running process notices changes of the file. Only its owner may be able to read it.
func OpenKeyFile(path string) (Sealer, error) {
	file, err := seal.OpenKeyFile(path)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// CreateKeyFile creates a key file with a new key, unless the file exists. All processes on one
// store need the same file. Keep a copy of it, separate from the backups of the store: without it
// the store cannot be decrypted.
func CreateKeyFile(path string) error { return seal.CreateKeyFile(path) }

// label returns the associated data of a value. It contains the place of the value, so a value
// that is moved to another place cannot be decrypted. Stored values depend on its exact format.
func label(account string, what store.SealedField, id, part string) string {
	text := make([]byte, 0, len(account)+len(what)+len(id)+len(part)+9)
	text = strconv.AppendQuote(text, account) //mutate:label-has-account
	text = append(text, '/')
	text = strconv.AppendQuote(text, id)
	text = append(text, '/')
	text = append(text, what...)
	text = append(text, '/')
	text = strconv.AppendQuote(text, part)
	return string(text)
}

// seal encrypts a value for the store, compressed if the sealer supports it. Nil stays nil.
func (s *Store) seal(account string, what store.SealedField, id, part string, data []byte) []byte {
	if data == nil {
		return nil
	}
	place := label(account, what, id, part)
	if c, ok := s.sealer.(Compressor); ok {
		return c.SealCompressed(place, data)
	}
	return s.sealer.Seal(place, data)
}

// open decrypts a value from the store. A value that cannot be decrypted is counted and logged.
func (s *Store) open(account string, what store.SealedField, id, part string, sealed []byte) ([]byte, error) {
	data, err := s.sealer.Open(label(account, what, id, part), sealed)
	if err != nil {
		return nil, s.Report(account, string(what), id, err)
	}
	return data, nil
}
