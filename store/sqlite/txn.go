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
		loadCheckpointSQL,
		newestRunSQL, readyRunSQL, delayedRunSQL, expiredLeaseSQL, claimableRunSQL, listSQL, listByStatusSQL,
		receiptSQL, interruptsSQL, runSnapshotSQL, pendingInterruptsSQL, dueInterruptsSQL,
		eventsSQL, feedSQL, lastEventSQL,
		finishedRunsSQL, runSQL, resumesOfSQL, effectsOfSQL, namedValueSQL,
		pendingItemsSQL, inboxItemsSQL, inboxItemSQL, countPendingSQL, pendingByKindSQL, credentialSQL, credentialsOfSQL,
		documentSQL, documentsSQL, documentsOfRunByKindSQL, documentsOfRunSQL, dueDocumentsSQL, auditHeadSQL, auditAccountsSQL, auditLinesSQL,
	}
	writerSQL = []string{
		createCheckpointSQL, advanceVersionSQL, putPartSQL, deletePartSQL, deleteCheckpointSQL, dropCheckpointSQL,
		newestRunSQL, runExistsSQL, createRunSQL, endDelaysSQL, readyRunSQL, delayedRunSQL, expiredLeaseSQL, claimableRunSQL, claimRunSQL, unappliedSQL,
		checkLeaseSQL, renewSQL, setProviderRefSQL, releaseSQL, parkSQL, wakeSQL, retrySQL, cancelRunSQL,
		markAppliedSQL, linkResumeSQL, copyOutcomeSQL, openInterruptsSQL, setInterruptStateSQL, interruptRunSQL, addInterruptSQL, anyUnappliedSQL, endExecutionSQL,
		receiptSQL, checkAnswerSQL, recordReceiptSQL, decideInterruptSQL, dueInterruptsSQL, expireInterruptSQL,
		effectSQL, sourceSQL, recordRulingSQL, beginEffectSQL, endEffectSQL,
		addEventSQL,
		statusSQL, deleteEffectsSQL, deleteInterruptsSQL, deleteResumesSQL, deleteEventsSQL, deleteRunSQL, namedValueSQL, addNamedValueSQL,
		beginReencryptSQL, endReencryptSQL,
		credentialExistsSQL, credentialOfAccountSQL, addCredentialSQL, revokeCredentialSQL, purgeCredentialsSQL,
		documentSQL, documentExistsSQL, addDocumentSQL, updateDocumentSQL, reviseWithdrawnRequestSQL, setDeadlineSQL, deleteDocumentsSQL, auditHeadSQL, appendAuditSQL,
	}
)

func init() {
	for _, v := range sealedColumns {
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

// txn is a transaction of the writer, or a look at what the last one left, by a reader.
type txn struct {
	tx         *sql.Tx // nil for a reader, whose statements are each a snapshot of their own
	statements statements
	now        int64        // what the clock said once the transaction was the only writer, in microseconds since 1970
	changed    *[]store.Key // runs to which something happened, for those who watch
}

// update runs one transaction on the runs: all of it is on disk when do returns without an error, and nothing of it after an
// error that the port names.
func update[T any](ctx context.Context, s *Store, op string, change func(context.Context, txn) (T, error)) (T, error) {
	var result T
	var touched []store.Key
	err := s.write(ctx, func(ctx context.Context, tx *sql.Tx) (err error) {
		touched = nil
		result, err = change(ctx, txn{tx: tx, statements: s.writing, now: s.now(), changed: &touched})
		return err
	})
	if err != nil {
		var none T
		return none, s.fail(ctx, op, err)
	}
	s.watch.hub.Publish(touched...)
	return result, nil
}

// snapshot runs some statements on one snapshot. Like look, it cannot write and waits for nobody.
func snapshot[T any](ctx context.Context, s *Store, op string, look func(txn) (T, error)) (result T, err error) {
	tx, err := s.readers.BeginTx(ctx, nil)
	if err == nil {
		defer tx.Rollback()
		result, err = look(txn{tx: tx, statements: s.reading, now: s.now()})
	}
	if err != nil {
		var none T
		return none, s.fail(ctx, op, err)
	}
	return result, nil
}

// look returns a turn that cannot write and waits for nobody.
func (s *Store) view() txn { return txn{statements: s.reading, now: s.now()} }

func (t txn) stmt(ctx context.Context, text string) *sql.Stmt {
	if t.tx == nil {
		return t.statements[text]
	}
	return t.tx.StmtContext(ctx, t.statements[text])
}

// exec returns how many rows were changed.
func (t txn) exec(ctx context.Context, text string, values ...any) (int64, error) {
	if err := bindArgs(values); err != nil {
		return 0, err
	}
	result, err := t.stmt(ctx, text).ExecContext(ctx, values...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// find scans the first row, if there is one.
func (t txn) queryRow(ctx context.Context, dest []any, text string, values ...any) (found bool, err error) {
	if err := bindArgs(values); err != nil {
		return false, err
	}
	err = t.stmt(ctx, text).QueryRowContext(ctx, values...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// exists reports whether there is a row.
func (t txn) exists(ctx context.Context, text string, values ...any) (bool, error) {
	var one int
	return t.queryRow(ctx, []any{&one}, text, values...)
}

// queryAll returns all rows.
func queryAll[T any](ctx context.Context, t txn, scan func(rowScanner) (T, error), text string, values ...any) ([]T, error) {
	if err := bindArgs(values); err != nil {
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

// bindArgs makes the strings that callers chose the bytes which the tables keep. The port's own words (store.Status and the like)
// are no plain strings, and remain text.
func bindArgs(values []any) error {
	for i, value := range values {
		if text, ok := value.(string); ok {
			value = []byte(text)
			values[i] = value
		}
		if data, ok := value.([]byte); ok && len(data) > maxValueSize {
			return fmt.Errorf("%w: %d bytes", ErrTooLarge, len(data))
		}
	}
	return nil
}

// portErrors are the errors by which the ports tell their callers what to do; they come as they are.
var portErrors = []error{
	store.ErrNotFound, store.ErrStale, store.ErrInvalid, store.ErrExists, store.ErrFenced, store.ErrResumeIDReused, store.ErrNotApproved,
	store.ErrRunActive,
}
