package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// Writes that come at the same time share a transaction, and with it the wait for the disk, which is most of what a write costs:
//
//	A ──┐
//	B ──┼──► BEGIN IMMEDIATE  A  SAVEPOINT B  SAVEPOINT C  COMMIT (fsync) ──► A, B, C are told
//	C ──┘
//
// For its caller each is as good as alone. One that fails undoes nothing but itself, and nobody is told anything before all of it is on disk: what a
// write has seen of another one before it is as true then as its own. If the database gives up the whole transaction for the sake of one (no space, a
// disk that fails), each gets one of its own.

// pendingWrite is a change that somebody waits for.
type pendingWrite struct {
	ctx      context.Context
	change   func(context.Context, *sql.Tx) error // is called again if the transaction that it was in is gone
	err      error                                // what became of the change
	panicked any
	done     chan struct{}
}

// maxGroupSize is how many writes share a transaction. Each makes the first one wait a little longer, and other processes, too.
const maxGroupSize = 16

// pendingWrite runs change in a transaction that is the only writer of the file. Who is cancelled before it begins leaves; then it ends as it does: it is short,
// and shared.
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

// serve does what is to be written, until the Store is closed.
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

// group does a write, and with it those that have come until it is done: next returns one after the other, and then nil.
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
			tx.Rollback()       // if there is anything left to roll back
			s.commitEach(group) //mutate:group-lost-transaction
			return
		}
	}
	finish(group, tx.Commit()) //mutate:group-commit-reported
}

// next is a write that waits, if there is any.
func (s *Store) nextWrite() *pendingWrite {
	select {
	case w := <-s.queue:
		return w
	default:
		return nil
	}
}

// begin does a write in a new transaction. If there is none, or nothing to commit in it, it is over, and its caller was told.
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

// lock begins a transaction. Until it has, the caller may leave: somebody may be at a vacuum, for long.
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

// apart does writes one by one.
func (s *Store) commitEach(group []*pendingWrite) {
	for _, w := range group {
		if tx, ok := s.beginGroup(w); ok {
			finish([]*pendingWrite{w}, tx.Commit())
		}
	}
}

// join does a write in the transaction of others. An error is that of the whole transaction.
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

// errPanicked is seen by nobody: the panic goes on where the write came from.
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

// finish says what became of writes in one transaction. If that was not committed, what they found in it counts for nothing.
func finish(group []*pendingWrite, err error) {
	for _, w := range group {
		if err != nil { //mutate:group-commit-error-wins
			w.err = err
		}
		close(w.done)
	}
}
