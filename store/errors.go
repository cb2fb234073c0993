package store

import "errors"

var (
	// ErrNotFound says that nothing is stored under this key of this account.
	ErrNotFound = errors.New("store: not found")

	// ErrStale says that somebody else saved since the version this save was prepared on. Nothing was changed; the caller
	// must load again and decide anew whether its change still makes sense.
	ErrStale = errors.New("store: stale version")

	// ErrKey says that a key or a part's name is empty. Nothing was changed.
	ErrKey = errors.New("store: empty key or part name")
)
