package seal

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata/internal/atomicfile"
)

// ReloadInterval is how often a KeyFile checks whether the file has changed.
const ReloadInterval = time.Second

// KeyFile is a sealer with the keys of a file, one per line. The first key seals; all keys open.
// Processes that use the file notice changes, so keys can be rotated while they run; see [Rotate].
type KeyFile struct {
	path string

	mu        sync.Mutex
	sealer    *Sealer
	stamp     stamp
	checked   time.Time
	reloadErr error // see Err
}

// stamp identifies a version of the file. It includes the permissions, so that a file that the next
// start would reject is noticed early.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.ModTime(), info.Size(), info.Mode()} }

// OpenKeyFile opens a key file. Only its owner may have read permission.
func OpenKeyFile(path string) (*KeyFile, error) {
	f := &KeyFile{path: path}
	if err := f.reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Seal encrypts data under a label. Nil stays nil.
func (f *KeyFile) Seal(label string, data []byte) []byte { return f.current().Seal(label, data) }

// SealCompressed compresses and encrypts data under a label; see [Sealer.SealCompressed].
func (f *KeyFile) SealCompressed(label string, data []byte) []byte {
	return f.current().SealCompressed(label, data)
}

// Open decrypts a value that was sealed under the same label, in this or another process.
func (f *KeyFile) Open(label string, sealed []byte) ([]byte, error) {
	data, err := f.current().Open(label, sealed)
	if errors.Is(err, ErrUnknownKey) { // another process has a newer key
		if f.reload() == nil {
			return f.current().Open(label, sealed)
		}
	}
	return data, err
}

// Current reports whether a value is sealed with the key that Seal uses now.
func (f *KeyFile) Current(sealed []byte) bool { return f.current().Current(sealed) }

// current returns the keys and reloads the file if ReloadInterval has passed. If the file cannot be
// read, the known keys stay in use.
func (f *KeyFile) current() *Sealer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) >= ReloadInterval {
		f.checked = time.Now()
		info, err := os.Stat(f.path)
		if err == nil && f.stamp != stampOf(info) {
			err = f.loadLocked()
		}
		f.reloadErr = err
	}
	return f.sealer
}

// Err returns the error of the last reload. Until a reload succeeds, this process uses the known
// keys, which may differ from those of other processes, and new processes fail to start.
func (f *KeyFile) Err() error {
	f.current()
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reloadErr
}

func (f *KeyFile) reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.loadLocked()
}

func (f *KeyFile) loadLocked() error {
	keys, stamp, err := readKeyFile(f.path)
	if err != nil {
		return err
	}
	b, err := New(keys[0], keys[1:]...)
	if err != nil {
		return err
	}
	f.sealer, f.stamp, f.checked, f.reloadErr = b, stamp, time.Now(), nil
	return nil
}

func readKeyFile(path string) ([]Key, stamp, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, stamp{}, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 { //mutate:key-file-mode
		return nil, stamp{}, fmt.Errorf("seal: key file %s is readable by other users (mode %o): run chmod 600, and rotate the key if they may have read it", filepath.Base(path), mode)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, stamp{}, err
	}
	var keys []Key
	for line := range strings.Lines(string(text)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		k, err := ParseKey(line)
		if err != nil {
			return nil, stamp{}, fmt.Errorf("%w: line %d of file %s", err, len(keys)+1, filepath.Base(path))
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, stamp{}, fmt.Errorf("seal: key file %s contains no key", filepath.Base(path))
	}
	return keys, stampOf(info), nil
}

func replaceKeyFile(path string, keys []Key) error {
	return atomicfile.Replace(path, 0o600, func(file *os.File) error {
		return errors.Join(writeKeys(file, keys), keepOwner(file.Name(), path))
	})
}

// CreateKeyFile creates a key file with a new key, unless the file exists. Of two concurrent calls
// one wins, and both have its key.
func CreateKeyFile(path string) error {
	err := atomicfile.Create(path, 0o600, func(file *os.File) error {
		k, err := NewKey()
		return errors.Join(err, writeKeys(file, []Key{k}))
	})
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func writeKeys(w io.StringWriter, keys []Key) error {
	var text strings.Builder
	for _, k := range keys {
		text.WriteString(hex.EncodeToString(k[:]) + "\n")
	}
	_, err := w.WriteString(text.String())
	return err
}
