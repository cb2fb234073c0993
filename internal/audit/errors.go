package audit

import "errors"

var (
	// ErrRecord reports an invalid record: something is missing, too long or not UTF-8. Nothing was
	// appended.
	ErrRecord = errors.New("audit: invalid record")

	// ErrUnreadable reports stored bytes that are not a record as Append writes it.
	ErrUnreadable = errors.New("audit: unreadable record")

	// ErrUnknownKind reports a record of a kind that this version does not know. It can be verified
	// and exported, but not parsed.
	ErrUnknownKind = errors.New("audit: unknown record kind")

	// ErrHead reports an invalid stored head.
	ErrHead = errors.New("audit: invalid head")

	// ErrEmpty reports an account without records. There is nothing to sign, and the log has no
	// origin.
	ErrEmpty = errors.New("audit: the log is empty")

	// ErrNotFound reports a missing record.
	ErrNotFound = errors.New("audit: record not found")

	// ErrNotSigned reports that no checkpoint covers the record. Create a checkpoint first.
	ErrNotSigned = errors.New("audit: not covered by a checkpoint")

	// ErrUntrusted reports that no trusted key has signed this, for this log.
	ErrUntrusted = errors.New("audit: not signed by a trusted key")

	// ErrCheckpoint reports an invalid checkpoint.
	ErrCheckpoint = errors.New("audit: invalid checkpoint")

	// ErrFork reports that the log does not extend an earlier checkpoint. Such a log is not signed,
	// because the two checkpoints would contradict each other.
	ErrFork = errors.New("audit: the log does not extend its last checkpoint")

	// ErrProof reports an invalid proof.
	ErrProof = errors.New("audit: invalid proof")

	// ErrKeyFile reports a file without a signing key, or one that others may read.
	ErrKeyFile = errors.New("audit: invalid key file")
)
