package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/store"
)

// statements are those of one pool, by their text.
type statements map[string]*sql.Stmt

// readerSQL and writerSQL are all statements that a Store runs after it was opened.
var (
	readerSQL = []string{
		loadSQL,
		newestRunSQL, readyRunSQL, delayedRunSQL, overdueRunSQL, thisRunSQL, listSQL, listByStatusSQL,
		resumeSQL, interruptsSQL, standingSQL, pendingSQL, dueSQL,
		eventsSQL, feedSQL, lastEventSQL,
		finishedSQL, runSQL, resumesOfSQL, effectsOfSQL, onceSQL,
		pendingAskedSQL, askedSQL, questionSQL, countPendingSQL, waitsSQL, credentialSQL, credentialsOfSQL,
		paperSQL, papersSQL, papersOfKindSQL, papersOfSQL, duePapersSQL, auditHeadSQL, auditAccountsSQL, auditLinesSQL,
	}
	writerSQL = []string{
		createSQL, advanceSQL, putSQL, dropSQL, removeSQL, dropStateSQL,
		newestRunSQL, runExistsSQL, createRunSQL, matureSQL, readyRunSQL, delayedRunSQL, overdueRunSQL, thisRunSQL, takeRunSQL, undoneSQL,
		ownedSQL, renewSQL, setRefSQL, releaseSQL, parkSQL, wakeSQL, retrySQL, cancelRunSQL,
		applySQL, setRestSQL, handOverSQL, openSQL, setStateSQL, askerSQL, askSQL, anyUndoneSQL, restSQL,
		resumeSQL, refusalSQL, recordSQL, decideSQL, dueSQL, expireSQL,
		effectSQL, deciderSQL, allowSQL, beginSQL, endSQL,
		noteSQL,
		statusSQL, forgetEffectsSQL, forgetInterruptsSQL, forgetResumesSQL, forgetEventsSQL, forgetRunSQL, onceSQL, keepOnceSQL,
		beginResealSQL, endResealSQL,
		credentialExistsSQL, credentialHereSQL, addCredentialSQL, revokeCredentialSQL, forgetCredentialsSQL,
		paperSQL, paperExistsSQL, addPaperSQL, amendSQL, moveOnSQL, moveDeadlineSQL, forgetPapersSQL, auditHeadSQL, recordLineSQL,
	}
)

func init() {
	for _, v := range vaults {
		readerSQL, writerSQL = append(readerSQL, v.read), append(writerSQL, v.write)
	}
}

func (s *Store) prepare(ctx context.Context) (err error) {
	if s.reading, err = prepare(ctx, s.readers, readerSQL); err != nil {
		return err
	}
	s.writing, err = prepare(ctx, s.writer, writerSQL)
	return err
}

func prepare(ctx context.Context, db *sql.DB, texts []string) (statements, error) {
	prepared := make(statements, len(texts))
	for _, text := range texts {
		stmt, err := db.PrepareContext(ctx, text)
		if err != nil {
			return nil, fmt.Errorf("%w in %s", err, text)
		}
		prepared[text] = stmt
	}
	return prepared, nil
}

// turn is a transaction of the writer, or a look at what the last one left, by a reader.
type turn struct {
	tx         *sql.Tx // nil for a reader, whose statements are each a snapshot of their own
	statements statements
	now        int64        // what the clock said once the transaction was the only writer, in microseconds since 1970
	touched    *[]store.Key // runs to which something happened, for those who watch
}

// do runs one transaction on the runs: all of it is on disk when do returns without an error, and nothing of it after an
// error that the port names.
func do[T any](ctx context.Context, s *Store, op string, change func(context.Context, turn) (T, error)) (T, error) {
	var result T
	var touched []store.Key
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		touched = nil
		result, err = change(ctx, turn{tx: tx, statements: s.writing, now: s.now(), touched: &touched})
		return err
	})
	if err != nil {
		var none T
		return none, s.fail(ctx, op, err)
	}
	s.hints.board.Tell(touched...)
	return result, nil
}

// see runs some statements on one snapshot. Like look, it cannot write and waits for nobody.
func see[T any](ctx context.Context, s *Store, op string, look func(turn) (T, error)) (result T, err error) {
	tx, err := s.readers.BeginTx(ctx, nil)
	if err == nil {
		defer tx.Rollback()
		result, err = look(turn{tx: tx, statements: s.reading, now: s.now()})
	}
	if err != nil {
		var none T
		return none, s.fail(ctx, op, err)
	}
	return result, nil
}

// look returns a turn that cannot write and waits for nobody.
func (s *Store) look() turn { return turn{statements: s.reading, now: s.now()} }

func (t turn) stmt(ctx context.Context, text string) *sql.Stmt {
	if t.tx == nil {
		return t.statements[text]
	}
	return t.tx.StmtContext(ctx, t.statements[text])
}

// exec returns how many rows were changed.
func (t turn) exec(ctx context.Context, text string, values ...any) (int64, error) {
	if err := bind(values); err != nil {
		return 0, err
	}
	result, err := t.stmt(ctx, text).ExecContext(ctx, values...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// find scans the first row, if there is one.
func (t turn) find(ctx context.Context, dest []any, text string, values ...any) (found bool, err error) {
	if err := bind(values); err != nil {
		return false, err
	}
	err = t.stmt(ctx, text).QueryRowContext(ctx, values...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// exists reports whether there is a row.
func (t turn) exists(ctx context.Context, text string, values ...any) (bool, error) {
	var one int
	return t.find(ctx, []any{&one}, text, values...)
}

// list returns all rows.
func list[T any](ctx context.Context, t turn, scan func(scanner) (T, error), text string, values ...any) ([]T, error) {
	if err := bind(values); err != nil {
		return nil, err
	}
	rows, err := t.stmt(ctx, text).QueryContext(ctx, values...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		row, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// bind makes the strings that callers chose the bytes which the tables keep. The port's own words (store.Status and the like)
// are no plain strings, and remain text.
func bind(values []any) error {
	for i, value := range values {
		if text, ok := value.(string); ok {
			value = []byte(text)
			values[i] = value
		}
		if data, ok := value.([]byte); ok && len(data) > maxPart {
			return fmt.Errorf("%w: %d bytes", ErrTooBig, len(data))
		}
	}
	return nil
}

// known are the errors by which the ports tell their callers what to do; they come as they are.
var known = []error{
	store.ErrNotFound, store.ErrStale, store.ErrKey, store.ErrExists, store.ErrFenced, store.ErrReused, store.ErrNotApproved,
	store.ErrAlive,
}
