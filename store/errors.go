package store

import "errors"

var (
	// ErrNotFound says that nothing is stored under this key of this account.
	ErrNotFound = errors.New("store: not found")

	// ErrStale says that somebody else saved since the version this save was prepared on. Nothing was changed; the caller
	// must load again and decide anew whether its change still makes sense.
	ErrStale = errors.New("store: stale version")

	// ErrInvalid says that an argument cannot be stored: a key or a name that is empty or too long, facts that are no JSON object, a decision without answers, a
	// cursor that the store did not make. Nothing was changed, and repeating the call does not help.
	ErrInvalid = errors.New("store: a key, name or value that cannot be stored")

	// ErrExists says that a run of this state key is alive. Nothing was created.
	ErrExists = errors.New("store: a run of this state key is alive")

	// ErrFenced says that the run has another owner, or is over. Nothing was changed, and whoever gets this must not write
	// for the run any more.
	ErrFenced = errors.New("store: the run has another owner")

	// ErrResumeIDReused says that a resume id was used for another decision. Nothing was changed.
	ErrResumeIDReused = errors.New("store: the resume id was used for another decision")

	// ErrNotApproved says that no decision approves exactly this effect. Nothing was begun.
	ErrNotApproved = errors.New("store: no approval for this effect")

	// ErrRunActive says that the run is not over. Nothing was deleted.
	ErrRunActive = errors.New("store: the run is not over")

	// ErrFull says that there is no room for what was to be written. Nothing was changed; it will succeed once there is room.
	ErrFull = errors.New("no space left for the database")

	// ErrDisk says that the disk did not do what it should: it fails, a quota is used up, a file may grow no further. Whether a write was done is not known.
	ErrDisk = errors.New("the disk of the database refuses")
)
