package sqlite

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// rowScanner is a row.
type rowScanner interface{ Scan(dest ...any) error }

// runColumns are the columns for runDest.
const runColumns = `account, run, state_key, generation, provider, graph, ref, input, outcome, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at`

func runDest(r *store.Run) []any {
	return []any{
		&r.Account, &r.ID, &r.StateKey, &r.Generation, &r.Provider, &r.Graph, bytesScanner{&r.ProviderRef}, bytesScanner{&r.Input}, bytesScanner{&r.Outcome}, &r.InputDigest,
		&r.Status, &r.Fence, orZero(&r.Owner), timeScanner{&r.LeaseUntil}, &r.Attempts, timeScanner{&r.Created}, timeScanner{&r.Updated},
	}
}

// interruptColumns are the columns for scanInterrupt; i is the table.
const interruptColumns = `i.account, i.run, i.id, i.address, i.kind, i.data, i.answer_schema, i.shown, i.action, i.timeout,
       i.created_at, i.deadline, i.state, i.verdict, i.final, i.answer, i.decided_by, i.via, i.source, i.decided_at, i.resume, i.applied`

func scanInterrupt(row rowScanner) (i store.Interrupt, err error) {
	err = row.Scan(
		&i.Account, &i.Run, &i.ID, &i.Address, &i.Kind, bytesScanner{&i.Data}, bytesScanner{&i.AnswerSchema}, &i.ShownDigest, &i.ActionDigest, &i.Timeout,
		timeScanner{&i.Created}, timeScanner{&i.Deadline}, &i.State, orZero(&i.Verdict), orZero(&i.ApprovedDigest), bytesScanner{&i.Answer}, orZero(&i.DecidedBy), orZero(&i.DecidedVia), orZero(&i.Source), timeScanner{&i.DecidedAt}, orZero(&i.ResumeID), &i.Applied,
	)
	return i, err
}

// effectColumns are the columns for effectDest.
const effectColumns = `account, run, interrupt, number, digest, target_key, fence, state, receipt, error, started_at, ended_at`

func effectDest(e *store.Effect) []any {
	return []any{
		&e.Account, &e.Run, &e.Interrupt, &e.Attempt, &e.ActionDigest, &e.IdempotencyKey, &e.Fence, &e.State, bytesScanner{&e.Receipt}, &e.Error, timeScanner{&e.Started}, timeScanner{&e.Ended},
	}
}

// receiptColumns are the columns for receiptDest; s is the table. The outcome of a resume is the
// outcome of the execution that applied it. It is stored with the run until the next execution
// ends, and with the resume afterwards.
//
//mutate:sqlite-resume-outcome
const receiptColumns = `s.run, s.result, s.interrupt, s.created_at, coalesce(s.outcome,
       (SELECT outcome FROM runs AS r WHERE r.account = s.account AND r.run = s.run AND r.rests = s.rest))`

func receiptDest(r *store.DecisionReceipt) []any {
	return []any{&r.Run, &r.Result, &r.Interrupt, timeScanner{&r.At}, bytesScanner{&r.Outcome}}
}

// nullScanner scans NULL as the zero value.
type nullScanner[T any] struct{ to *T }

func orZero[T any](to *T) nullScanner[T] { return nullScanner[T]{to} }

func (n nullScanner[T]) Scan(src any) error {
	var value sql.Null[T]
	err := value.Scan(src)
	*n.to = value.V
	return err
}

// bytesScanner scans bytes and distinguishes NULL (nil) from empty. The driver returns nil for
// both, but with different types.
type bytesScanner struct{ to *[]byte }

func (s bytesScanner) Scan(src any) error {
	switch data := src.(type) {
	case nil:
		*s.to = nil
	case []byte:
		*s.to = append([]byte{}, data...)
	default:
		return fmt.Errorf("%T instead of bytes", src)
	}
	return nil
}

// textScanner scans text into bytes; NULL is nil.
type textScanner struct{ to *[]byte }

func (t textScanner) Scan(src any) error {
	switch words := src.(type) {
	case nil:
		*t.to = nil
	case string:
		*t.to = []byte(words)
	default:
		return fmt.Errorf("%T instead of text", src)
	}
	return nil
}

// timeScanner scans a time; NULL is the zero time.
type timeScanner struct{ to *time.Time }

func (m timeScanner) Scan(src any) error {
	switch at := src.(type) {
	case nil:
		*m.to = time.Time{}
	case int64:
		*m.to = timeOf(at)
	default:
		return fmt.Errorf("%T instead of a time", src)
	}
	return nil
}

func timeOf(at int64) time.Time { return time.UnixMicro(at).UTC() }

// micros rounds up, so that nothing ends too early.
func micros(d time.Duration) int64 {
	whole := d.Microseconds()
	if time.Duration(whole)*time.Microsecond < d {
		whole++
	}
	return whole
}
