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

// ReloadInterval is how often a File looks whether the keys have changed.
const ReloadInterval = time.Second

// KeyFile is a box with the keys of a file: one a line, the first to seal with, all to open with. Processes that use the file notice when it
// changes, so that keys can be changed while they run: see [Rotate].
type KeyFile struct {
	path string

	mu        sync.Mutex
	sealer    *Sealer
	stamp     stamp
	checked   time.Time
	reloadErr error // see Err
}

// stamp tells versions of a file apart. Who may read it counts, too: a file that the next start cannot read should be noticed before.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

func stampOf(info fs.FileInfo) stamp { return stamp{info.ModTime(), info.Size(), info.Mode()} }

// OpenKeyFile opens a key file. Nobody but its owner may read it.
func OpenKeyFile(path string) (*KeyFile, error) {
	f := &KeyFile{path: path}
	if err := f.reload(); err != nil {
		return nil, err
	}
	return f, nil
}

// Seal closes data under a label. Nil stays nil.
func (f *KeyFile) Seal(label string, data []byte) []byte { return f.current().Seal(label, data) }

// Pack closes data under a label, and makes it smaller before; see [Sealer.SealCompressed].
func (f *KeyFile) SealCompressed(label string, data []byte) []byte {
	return f.current().SealCompressed(label, data)
}

// Open opens what Seal or Pack closed under the same label, here or in another process.
func (f *KeyFile) Open(label string, sealed []byte) ([]byte, error) {
	data, err := f.current().Open(label, sealed)
	if errors.Is(err, ErrUnknownKey) { // somebody has a newer key
		if f.reload() == nil {
			return f.current().Open(label, sealed)
		}
	}
	return data, err
}

// Current reports whether a value is sealed with the key that Seal uses now.
func (f *KeyFile) Current(sealed []byte) bool { return f.current().Current(sealed) }

// fresh returns the keys, after a look at the file if the last one is a while ago. A file that cannot be read changes nothing: the keys that
// are known remain good.
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

// Err says why the file could not be read the last time it was looked at. Until it can, this process uses the keys that it knows, which may not be
// those that others use, and the next process does not start.
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
		return nil, stamp{}, fmt.Errorf("box: others may read the key file %s (mode %o): run chmod 600, and if they might have, change the key", filepath.Base(path), mode)
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
			return nil, stamp{}, fmt.Errorf("%w, and line %d of the file %s holds something else", err, len(keys)+1, filepath.Base(path))
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, stamp{}, fmt.Errorf("box: there is no key in the file %s", filepath.Base(path))
	}
	return keys, stampOf(info), nil
}

func replaceKeyFile(path string, keys []Key) error {
	return atomicfile.Replace(path, 0o600, func(file *os.File) error {
		return errors.Join(writeKeys(file, keys), keepOwner(file.Name(), path))
	})
}

// CreateKeyFile makes a key file with a new key, unless it is there. Of two that do so at the same time one wins, and both have its key.
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
