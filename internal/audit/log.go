package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"
)

// Log is an audit log for reading and signing. The store appends records itself, as [Append] does,
// in the transaction of the change and with the head of the account locked.
//
// All methods are safe for concurrent use. An account without records is an empty log and not an
// error.
type Log interface {
	// Head returns the head of an account.
	Head(ctx context.Context, account string) (Head, error)

	// Records returns the records of an account from number from to number to, inclusive, as
	// stored, in storage order, whatever their content says. 0 means the first and the last. The
	// caller must not change the bytes.
	Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error]

	// Hashes returns hashes of the tree by index: all Entry.Hashes of an account in append order,
	// from 0. A missing index is ErrNotFound.
	Hashes(ctx context.Context, account string, indexes []int64) ([]Hash, error)

	// Checkpoints returns the signed notes of an account, by increasing size.
	Checkpoints(ctx context.Context, account string) iter.Seq2[[]byte, error]

	// AddCheckpoint adds a checkpoint. If there is one of the same size, nothing changes.
	AddCheckpoint(ctx context.Context, account string, checkpoint Checkpoint) error
}

// RecordsAbout returns the records of an account about a run, a state key, a request or an
// interrupt, for example to prove one of them. It reads the whole log and skips unknown kinds.
func RecordsAbout(ctx context.Context, log Log, account, id string) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range ParseRecords(log.Records(ctx, account, 0, 0)) {
			if err == nil && r.Location.Run != id && r.Location.StateKey != id && r.Location.Request != id && r.Location.Interrupt != id {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// hashReader lets package tlog read the hashes of an account.
func hashReader(ctx context.Context, log Log, account string) tlog.HashReader {
	return tlog.HashReaderFunc(func(indexes []int64) ([]Hash, error) {
		hashes, err := log.Hashes(ctx, account, indexes)
		if err == nil && len(hashes) != len(indexes) {
			err = fmt.Errorf("%w: %d hashes instead of %d", ErrNotFound, len(hashes), len(indexes))
		}
		return hashes, err
	})
}

// CreateCheckpoint signs the log and stores the checkpoint. If nothing was added, it returns the
// last one. If the log does not extend the last checkpoint, or one of the given checkpoints that
// were kept elsewhere, it signs nothing and returns ErrFork.
func CreateCheckpoint(ctx context.Context, log Log, account string, key *Key, kept ...[]byte) (Checkpoint, error) {
	// read before the head, so that it cannot be longer
	last, lastErr := lastCheckpoint(ctx, log, account)
	if lastErr != nil && !errors.Is(lastErr, ErrNotSigned) {
		return Checkpoint{}, lastErr
	}
	head, err := log.Head(ctx, account)
	if err != nil {
		return Checkpoint{}, err
	}
	next, err := key.Sign(head)
	if errors.Is(err, ErrEmpty) && (lastErr == nil || len(kept) > 0) {
		return Checkpoint{}, fmt.Errorf("%w: the log is empty", ErrFork)
	}
	if err != nil {
		return Checkpoint{}, err
	}
	hashes := hashReader(ctx, log, account)
	for _, signed := range kept {
		older, err := ParseUnverified(signed)
		if err != nil {
			return Checkpoint{}, err
		}
		if err := checkExtends(next, older, hashes); err != nil {
			return Checkpoint{}, err
		}
	}
	if lastErr == nil {
		if err := checkExtends(next, last, hashes); err != nil {
			return Checkpoint{}, err
		}
		if last.Size == next.Size {
			return last, nil
		}
	}
	return next, log.AddCheckpoint(ctx, account, next)
}

// lastFinder is a log that finds its last checkpoint without reading all of them.
type lastFinder interface {
	lastNote(ctx context.Context, account string) ([]byte, error) // nil if there is none
}

func lastCheckpoint(ctx context.Context, log Log, account string) (Checkpoint, error) {
	var last []byte
	if finder, ok := log.(lastFinder); ok {
		var err error
		if last, err = finder.lastNote(ctx, account); err != nil {
			return Checkpoint{}, err
		}
	} else {
		for signed, err := range log.Checkpoints(ctx, account) {
			if err != nil {
				return Checkpoint{}, err
			}
			last = signed
		}
	}
	if last == nil {
		return Checkpoint{}, ErrNotSigned
	}
	return ParseUnverified(last)
}

func checkExtends(next, last Checkpoint, hashes tlog.HashReader) error {
	if last.Origin != next.Origin || last.Size > next.Size {
		return fmt.Errorf("%w: it was signed with %d records as %s", ErrFork, last.Size, last.Origin)
	}
	proof, err := tlog.ProveTree(next.Size, last.Size, hashes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFork, err)
	}
	if err := tlog.CheckTree(proof, next.Size, next.Root, last.Size, last.Root); err != nil {
		return fmt.Errorf("%w: %w", ErrFork, err)
	}
	return nil
}
