package store

import (
	"errors"

	public "github.com/fermata-go/fermata/store"
)

var (
	// ErrNotFound, ErrStale and ErrInvalid are those of the public package. ErrInvalid is returned
	// also for an index that is not a JSON object, a decision without answers, and a cursor that
	// the store did not create.
	ErrNotFound = public.ErrNotFound
	ErrStale    = public.ErrStale
	ErrInvalid  = public.ErrInvalid

	// ErrExists is returned if the state key has an active run, or if the id of a credential is
	// taken. Nothing was created.
	ErrExists = errors.New("store: already exists")

	// ErrFenced is returned if the run has another owner or has ended. Nothing was changed. The
	// caller has lost the run and must not write for it again.
	ErrFenced = errors.New("store: run has another owner")

	// ErrResumeIDReused is returned if a resume id was used for another decision. Nothing was
	// changed.
	ErrResumeIDReused = errors.New("store: resume id was used for another decision")

	// ErrNotApproved is returned if no decision approves exactly this effect. The effect was not
	// begun.
	ErrNotApproved = errors.New("store: effect is not approved")

	// ErrRunActive is returned if the run has not ended. Nothing was deleted.
	ErrRunActive = errors.New("store: run has not ended")

	// ErrFull is returned if there is no space left. Nothing was changed; the call succeeds once
	// there is space.
	ErrFull = errors.New("no space left for the database")

	// ErrDisk is returned if the disk fails, a disk quota is used up, or a file size limit is
	// reached. The outcome of the write is unknown.
	ErrDisk = errors.New("disk error of the database")
)
