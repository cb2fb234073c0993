package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/internal/store"
)

// runColumns are the columns for runDest; r is the table.
const runColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, r.ref, r.input, r.outcome, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`

// unsealedRunColumns leaves out the sealed columns; refRunColumns leaves out all of them but the
// provider ref.
const (
	unsealedRunColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, NULL::bytea, NULL::bytea, NULL::bytea, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`
	refRunColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, r.ref, NULL::bytea, NULL::bytea, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`
)

func runDest(r *store.Run) []any {
	return []any{
		nameScanner{&r.Account}, nameScanner{&r.ID}, nameScanner{&r.StateKey}, &r.Generation, nameScanner{&r.Provider}, nameScanner{&r.Graph}, &r.ProviderRef, &r.Input, &r.Outcome, nameScanner{&r.InputDigest},
		(*string)(&r.Status), &r.Fence, nameScanner{&r.Owner}, timeScanner{&r.LeaseUntil}, &r.Attempts, timeScanner{&r.Created}, timeScanner{&r.Updated},
	}
}

func scanRun(rows pgx.CollectableRow) (r store.Run, err error) {
	err = rows.Scan(runDest(&r)...)
	return r, err
}

// interruptColumns are the columns for interruptDest; i is the table.
const interruptColumns = `i.account, i.run, i.id, i.address, i.kind, i.data, i.answer_schema, i.shown, i.action, i.timeout,
       i.created_at, i.deadline, i.state, i.verdict, i.final, i.answer, i.decided_by, i.via, i.source, i.decided_at, i.resume, i.applied`

func interruptDest(i *store.Interrupt) []any {
	return []any{
		nameScanner{&i.Account}, nameScanner{&i.Run}, nameScanner{&i.ID}, nameScanner{&i.Address}, nameScanner{&i.Kind}, &i.Data, &i.AnswerSchema, nameScanner{&i.ShownDigest}, nameScanner{&i.ActionDigest}, (*int64)(&i.Timeout),
		timeScanner{&i.Created}, timeScanner{&i.Deadline}, (*string)(&i.State), textScanner[store.Verdict]{&i.Verdict}, nameScanner{&i.ApprovedDigest}, &i.Answer, nameScanner{&i.DecidedBy}, nameScanner{&i.DecidedVia}, textScanner[store.Source]{&i.Source}, timeScanner{&i.DecidedAt}, nameScanner{&i.ResumeID}, &i.Applied,
	}
}

func scanInterrupt(rows pgx.CollectableRow) (i store.Interrupt, err error) {
	err = rows.Scan(interruptDest(&i)...)
	return i, err
}

// effectColumns are the columns for effectDest; e is the table.
const effectColumns = `e.account, e.run, e.interrupt, e.number, e.digest, e.target_key, e.fence, e.state, e.receipt, e.error, e.started_at, e.ended_at`

func effectDest(e *store.Effect) []any {
	return []any{
		nameScanner{&e.Account}, nameScanner{&e.Run}, nameScanner{&e.Interrupt}, &e.Attempt, nameScanner{&e.ActionDigest}, nameScanner{&e.IdempotencyKey}, &e.Fence, (*string)(&e.State), &e.Receipt, nameScanner{&e.Error}, timeScanner{&e.Started}, timeScanner{&e.Ended},
	}
}

func scanEffect(rows pgx.CollectableRow) (e store.Effect, err error) {
	err = rows.Scan(effectDest(&e)...)
	return e, err
}

// receiptColumns are the columns for receiptDest; p is the table. The outcome of a resume is the
// outcome of the execution that applied it. It is stored with the run until the next execution
// ends, and with the resume afterwards. newReceiptColumns are for a new resume, which has no
// outcome yet.
const (
	//mutate:postgres-resume-outcome
	receiptColumns = `p.run, p.result, p.interrupt, p.created_at, coalesce(p.outcome,
       (SELECT r.outcome FROM runs AS r WHERE r.key = p.run_key AND r.account = p.account AND r.rests = p.rest))`
	newReceiptColumns = `p.run, p.result, p.interrupt, p.created_at, NULL::bytea`
)

func receiptDest(r *store.DecisionReceipt) []any {
	return []any{nameScanner{&r.Run}, (*string)(&r.Result), nameScanner{&r.Interrupt}, timeScanner{&r.At}, &r.Outcome}
}

// eventColumns are the columns for eventDest; e is the table.
const eventColumns = `e.account, e.run, e.number, e.kind, e.interrupt, e.at`

func eventDest(e *store.Event) []any {
	return []any{nameScanner{&e.Account}, nameScanner{&e.Run}, &e.Seq, (*string)(&e.Kind), nameScanner{&e.Interrupt}, timeScanner{&e.At}}
}

func scanEvent(rows pgx.CollectableRow) (e store.Event, err error) {
	err = rows.Scan(eventDest(&e)...)
	return e, err
}

// nameScanner scans a string from a caller, which the tables store as bytes; NULL is empty.
type nameScanner struct{ to *string }

// ScanBytes implements pgtype.BytesScanner.
func (n nameScanner) ScanBytes(data []byte) error {
	*n.to = string(data)
	return nil
}

// textScanner scans a string type of the port; NULL is empty.
type textScanner[T ~string] struct{ to *T }

// ScanText implements pgtype.TextScanner.
func (w textScanner[T]) ScanText(text pgtype.Text) error {
	*w.to = T(text.String)
	return nil
}

// timeScanner scans a time; NULL is the zero time.
type timeScanner struct{ to *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m timeScanner) ScanTimestamptz(at pgtype.Timestamptz) error {
	*m.to = time.Time{}
	if at.Valid {
		*m.to = at.Time.UTC()
	}
	return nil
}

// micros rounds up, so that nothing ends too early.
func micros(d time.Duration) int64 {
	whole := d.Microseconds()
	if time.Duration(whole)*time.Microsecond < d {
		whole++
	}
	return whole
}

// bytesColumn converts strings from callers to a column.
func bytesColumn(texts []string) [][]byte {
	column := make([][]byte, len(texts))
	for i, text := range texts {
		column[i] = []byte(text)
	}
	return column
}
