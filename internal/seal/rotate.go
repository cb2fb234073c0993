package seal

import (
	"errors"
	"path/filepath"

	"github.com/fermata-go/fermata/internal/lockfile"
)

// What keeps two from changing the keys of a file at once. Each would take the other's new key for an old one, or not see it at all, and forget it: and
// processes may have sealed with it by then.
var (
	// ErrRotationInProgress says that somebody else is at it, with this file or another one in its folder. Nothing was changed.
	ErrRotationInProgress = errors.New("box: somebody else changes keys in this folder at the moment; wait until that is done")

	// ErrChanged says that the key in front is another one than the one that the change began with, so that nobody knows what the others are still needed for.
	// None was removed.
	ErrChanged = errors.New("box: somebody else has changed the keys of this file meanwhile, and all of them are kept")
)

// Rotation is a change of the keys of a file that is under way.
type Rotation struct {
	path   string
	key    Key // in front
	unlock func()
}

// Rotate puts a new key in front of those of a file. If there is more than one already, a change of keys was under way, and goes on. Nobody else on this host
// can begin one before Close, or the end of the process.
func Rotate(path string) (_ *Rotation, err error) {
	unlock, err := lockfile.TryDir(filepath.Dir(path))
	if errors.Is(err, lockfile.ErrLocked) { //mutate:rotation-locked
		return nil, ErrRotationInProgress
	}
	if err != nil { // there is no folder, as readKeyFile will say, or it cannot be locked here
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

// Retire removes all keys but the first. What is sealed with the others cannot be opened any more.
func (r *Rotation) RetireOldKeys() error {
	keys, _, err := readKeyFile(r.path)
	if err != nil {
		return err
	}
	//mutate:rotation-still-current
	if keys[0] != r.key { // on another host there is no lock
		return ErrChanged
	}
	return replaceKeyFile(r.path, keys[:1])
}

// Close lets others change the keys.
func (r *Rotation) Close() { r.unlock() }
