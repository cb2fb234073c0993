package audit

import "errors"

var (
	// ErrRecord says that a record must not be written as it is: something is missing, too long or no UTF-8. Nothing was appended.
	ErrRecord = errors.New("audit: not a record")

	// ErrUnreadable says that stored bytes are not a record as Append writes it.
	ErrUnreadable = errors.New("audit: unreadable")

	// ErrUnknownKind says that a record is of a kind that this version does not know. It may be verified and exported, not parsed.
	ErrUnknownKind = errors.New("audit: unknown kind of record")

	// ErrHead says that a stored head is none.
	ErrHead = errors.New("audit: not a head")

	// ErrEmpty says that an account has no records yet. There is nothing to sign, and the log has no name.
	ErrEmpty = errors.New("audit: the log is empty")

	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("audit: no such record")

	// ErrNotSigned says that no checkpoint covers what was asked for: make one first.
	ErrNotSigned = errors.New("audit: not covered by a checkpoint")

	// ErrUntrusted says that no key that the caller trusts has signed this, for this log.
	ErrUntrusted = errors.New("audit: not signed by a trusted key")

	// ErrCheckpoint says that a signed text is no checkpoint.
	ErrCheckpoint = errors.New("audit: not a checkpoint")

	// ErrFork says that the log is no longer an extension of what was signed before. A log that signs this lies to somebody; so it is not signed.
	ErrFork = errors.New("audit: the log does not extend its last checkpoint")

	// ErrProof says that a proof does not prove what it says.
	ErrProof = errors.New("audit: the proof does not hold")

	// ErrKeyFile says that a file holds no signing key, or that others may read it.
	ErrKeyFile = errors.New("audit: not a key file")
)
