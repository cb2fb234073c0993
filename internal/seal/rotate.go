package seal

import (
	"errors"
	"path/filepath"

	"github.com/fermata-go/fermata/internal/lockfile"
)

// Errors that prevent concurrent rotations of one key file. Each rotation could remove the new key
// of the other while processes already use it.
var (
	// ErrRotationInProgress is returned if another rotation is running for this file or for another
	// file in its directory. Nothing was changed.
	ErrRotationInProgress = errors.New("seal: another key rotation is in progress in this directory; retry when it is done")

	// ErrChanged is returned if the first key is not the one that the rotation added, so the other
	// keys may still be in use. No key was removed.
	ErrChanged = errors.New("seal: the key file was changed by another process; all keys are kept")
)

// Rotation is a key rotation in progress.
type Rotation struct {
	path   string
	key    Key // the first key
	unlock func()
}

// Rotate adds a new key as the first key of a file. If the file has more than one key, an
// interrupted rotation continues. No other process on this host can begin a rotation until Close or
// the end of the process.
func Rotate(path string) (_ *Rotation, err error) {
	unlock, err := lockfile.TryDir(filepath.Dir(path))
	if errors.Is(err, lockfile.ErrLocked) { //mutate:rotation-locked
		return nil, ErrRotationInProgress
	}
	if err != nil { // the directory does not exist, as readKeyFile will report, or cannot be locked
		unlock = func() {}
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	keys, _, err := readKeyFile(path)
	if err != nil {
		return nil, err
	}
	if len(keys) == 1 {
		k, err := NewKey()
		if err != nil {
			return nil, err
		}
		keys = append([]Key{k}, keys...)
		if err := replaceKeyFile(path, keys); err != nil {
			return nil, err
		}
	}
	return &Rotation{path, keys[0], unlock}, nil
}

// RetireOldKeys removes all keys but the first. Values sealed with the other keys cannot be opened
// afterwards.
func (r *Rotation) RetireOldKeys() error {
	keys, _, err := readKeyFile(r.path)
	if err != nil {
		return err
	}
	//mutate:rotation-still-current
	if keys[0] != r.key { // locks do not work across hosts
		return ErrChanged
	}
	return replaceKeyFile(r.path, keys[:1])
}

// Close ends the rotation and allows others.
func (r *Rotation) Close() { r.unlock() }
