package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/internal/store"
)

// statements holds the prepared statements of one pool, by their text.
type statements map[string]*sql.Stmt

// readerSQL and writerSQL list all statements that a Store runs after it was opened.
var (
	readerSQL = []string{
		loadCheckpointSQL,
		newestRunSQL, readyRunSQL, delayedRunSQL, expiredLeaseSQL, claimableRunSQL, listSQL, listByStatusSQL,
		receiptSQL, interruptsSQL, runSnapshotSQL, pendingInterruptsSQL, dueInterruptsSQL,
		eventsSQL, feedSQL, lastEventSQL,
		finishedRunsSQL, runSQL, resumesOfSQL, effectsOfSQL, namedValueSQL,
		oldestItemsSQL, newestItemsSQL, oldestPendingItemsSQL, newestPendingItemsSQL, oldestOfKindSQL, newestOfKindSQL, oldestDecidedSQL, newestDecidedSQL,
		inboxItemSQL, countPendingSQL, pendingByKindSQL, credentialSQL, credentialsOfSQL,
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

// txn is a write transaction, or a read-only view of the last commit.
type txn struct {
	tx         *sql.Tx // nil for a reader without a transaction; each statement is its own snapshot
	statements statements
	// the time when the transaction became the only writer, in microseconds since 1970
	now     int64
	changed *[]store.Key // runs that were changed, for watchers
}

// update runs one write transaction. Everything is on disk when it returns nil. After an error that
// the port names, nothing was changed.
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

// snapshot runs statements on one read-only snapshot. It never waits for writers.
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

// view returns a read-only txn. It never waits for writers.
func (s *Store) view() txn { return txn{statements: s.reading, now: s.now()} }

func (t txn) stmt(ctx context.Context, text string) *sql.Stmt {
	if t.tx == nil {
		return t.statements[text]
	}
	return t.tx.StmtContext(ctx, t.statements[text])
}

// exec returns the number of changed rows.
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

// queryRow scans the first row, if there is one.
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

// bindArgs converts strings from callers to bytes, which the tables store. The string types of the
// port, such as store.Status, stay text.
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

// portErrors are the errors of the port, which are returned unchanged.
var portErrors = []error{
	store.ErrNotFound, store.ErrStale, store.ErrInvalid, store.ErrExists, store.ErrFenced, store.ErrResumeIDReused, store.ErrNotApproved,
	store.ErrRunActive,
}
