package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Concurrent writes share a transaction and its fsync, which is most of the cost of a write:
//
//	A ──┐
//	B ──┼──► BEGIN IMMEDIATE  A  SAVEPOINT B  SAVEPOINT C  COMMIT (fsync) ──► A, B, C return
//	C ──┘
//
// Each write is isolated for its caller. A write that fails undoes only itself, and no caller gets
// a result before the group is on disk. A write may read what an earlier write of the group wrote,
// because they are committed together. If the database aborts the whole transaction because of one
// write (disk full, disk failure), each write gets its own transaction.

// pendingWrite is a change that a caller waits for.
type pendingWrite struct {
	ctx      context.Context
	change   func(context.Context, *sql.Tx) error // called again if its transaction was aborted
	err      error                                // the result of the change
	panicked any
	done     chan struct{}
}

// maxGroupSize is the maximum number of writes in a transaction. Each makes the first one, and
// other processes, wait a little longer.
const maxGroupSize = 16

// write runs change in a transaction that is the only writer of the file. A cancelled caller leaves
// before its change begins. Afterwards it waits, because the transaction is short and shared.
func (s *Store) write(ctx context.Context, change func(context.Context, *sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := &pendingWrite{ctx: ctx, change: change, done: make(chan struct{})}
	select {
	case s.queue <- w:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return ErrClosed
	}
	<-w.done
	if w.panicked != nil {
		panic(w.panicked)
	}
	return w.err
}

// writeLoop runs queued writes until the Store is closed.
func (s *Store) writeLoop() {
	for {
		select {
		case w := <-s.queue:
			s.commitGroup(w, s.nextWrite)
			s.resetWAL()
		case <-s.closing:
			return
		}
	}
}

// commitGroup runs a write together with those that arrive until it is done. next returns them one
// by one, and then nil.
func (s *Store) commitGroup(first *pendingWrite, next func() *pendingWrite) {
	tx, ok := s.beginGroup(first)
	if !ok {
		return
	}
	group := []*pendingWrite{first}
	for len(group) < maxGroupSize {
		w := next()
		if w == nil {
			break
		}
		group = append(group, w)
		if err := w.join(tx); err != nil {
			tx.Rollback()       // if anything is left to roll back
			s.commitEach(group) //mutate:group-lost-transaction
			return
		}
	}
	finish(group, tx.Commit()) //mutate:group-commit-reported
}

// nextWrite returns a queued write, or nil.
func (s *Store) nextWrite() *pendingWrite {
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

// beginGroup runs a write in a new transaction. If that fails, it reports the result to the caller
// of the write and returns false.
func (s *Store) beginGroup(w *pendingWrite) (*sql.Tx, bool) {
	tx, err := s.beginTx(w.ctx)
	if err == nil {
		if err = w.run(tx); err == nil {
			return tx, true
		}
		tx.Rollback()
	}
	finish([]*pendingWrite{w}, err)
	return nil, false
}

// beginTx begins a transaction. The caller may be cancelled until it has begun, because a vacuum
// may take long.
func (s *Store) beginTx(ctx context.Context) (*sql.Tx, error) {
	if err := s.files.check(); err != nil {
		return nil, err
	}
	begun, leave := context.WithCancel(context.WithoutCancel(ctx))
	stays := context.AfterFunc(ctx, leave)
	tx, err := s.writer.BeginTx(begun, nil)
	if !stays() && err == nil {
		tx.Rollback()
		err = ctx.Err()
	}
	return tx, err
}

// commitEach runs each write in its own transaction.
func (s *Store) commitEach(group []*pendingWrite) {
	for _, w := range group {
		if tx, ok := s.beginGroup(w); ok {
			finish([]*pendingWrite{w}, tx.Commit())
		}
	}
}

// join runs a write in the transaction of a group. An error means that the whole transaction
// failed.
func (w *pendingWrite) join(tx *sql.Tx) error {
	if _, err := tx.Exec(`SAVEPOINT change`); err != nil {
		return err
	}
	if w.run(tx) != nil {
		if _, err := tx.Exec(`ROLLBACK TO change`); err != nil { //mutate:group-rollback-of-one
			return err
		}
	}
	_, err := tx.Exec(`RELEASE change`)
	return err
}

// errPanicked is internal: the panic continues in the caller of the write.
var errPanicked = errors.New("panicked")

func (w *pendingWrite) run(tx *sql.Tx) (err error) {
	defer func() {
		if w.panicked = recover(); w.panicked != nil {
			err = errPanicked
		}
		w.err = err
	}()
	return w.change(context.WithoutCancel(w.ctx), tx)
}

// finish reports the result to the callers of a group. If the commit failed, the results of the
// writes do not count.
func finish(group []*pendingWrite, err error) {
	for _, w := range group {
		if err != nil { //mutate:group-commit-error-wins
			w.err = err
		}
		close(w.done)
	}
}
