package audit

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/mod/sumdb/tlog"
)

// Log is a store of records, as those see it who read and sign. Appending is the store's own business: it does so as [Append] does, in the
// transaction of what it records, with the head of the account locked.
//
// All methods may be called at once from any goroutine. An account that has no records is an empty log and no error.
type Log interface {
	// Head returns the head of an account.
	Head(ctx context.Context, account string) (Head, error)

	// ParseRecords returns the records of an account with the numbers from to to, both included, as they were stored and in the order of
	// the place where they are stored, whatever they say themselves. 0 is the first, and the last. The bytes must not be changed.
	Records(ctx context.Context, account string, from, to int64) iter.Seq2[[]byte, error]

	// Hashes returns hashes of the tree by their index: all Entry.Hashes of an account in the order in which they were appended, from 0.
	// An index that is not there is ErrNotFound.
	Hashes(ctx context.Context, account string, indexes []int64) ([]Hash, error)

	// Checkpoints returns the signed notes of an account, by growing size.
	Checkpoints(ctx context.Context, account string) iter.Seq2[[]byte, error]

	// KeepCheckpoint adds a checkpoint. One of a size that is there already changes nothing.
	AddCheckpoint(ctx context.Context, account string, checkpoint Checkpoint) error
}

// RecordsAbout returns the records of an account that are about a run, a state key, a request or an interrupt, for whoever wants to prove one of them. It reads the
// whole log. Kinds of a newer version are passed over.
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

// CreateCheckpoint signs a log as it is now and keeps the checkpoint; or returns the last one, if nothing was added since. If the log is no
// extension of what was signed last, or of one of the checkpoints of the caller's own that were kept elsewhere, it signs nothing and returns ErrFork:
// whoever has the older checkpoint could show that the log lied.
func CreateCheckpoint(ctx context.Context, log Log, account string, key *Key, kept ...[]byte) (Checkpoint, error) {
	last, lastErr := lastCheckpoint(ctx, log, account) // before the head: so it cannot be longer
	if lastErr != nil && !errors.Is(lastErr, ErrNotSigned) {
		return Checkpoint{}, lastErr
	}
	head, err := log.Head(ctx, account)
	if err != nil {
		return Checkpoint{}, err
	}
	next, err := key.Sign(head)
	if errors.Is(err, ErrEmpty) && (lastErr == nil || len(kept) > 0) {
		return Checkpoint{}, fmt.Errorf("%w: it is empty", ErrFork)
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
	lastNote(ctx context.Context, account string) ([]byte, error) // nil: there is none
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
