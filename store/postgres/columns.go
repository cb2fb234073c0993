package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/fermata-go/fermata/store"
)

// runColumns are what runDest takes; r is the table.
const runColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, r.ref, r.input, r.outcome, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`

// bareRunColumns are the same without what is sealed, and refRunColumns without what is sealed but the ref.
const (
	bareRunColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, NULL::bytea, NULL::bytea, NULL::bytea, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`
	refRunColumns = `r.account, r.run, r.state_key, r.generation, r.provider, r.graph, r.ref, NULL::bytea, NULL::bytea, r.input_digest,
       r.status, r.fence, r.owner, r.lease_until, r.attempts, r.created_at, r.updated_at`
)

func runDest(r *store.Run) []any {
	return []any{
		name{&r.Account}, name{&r.ID}, name{&r.StateKey}, &r.Generation, name{&r.Provider}, name{&r.Graph}, &r.Ref, &r.Input, &r.Outcome, name{&r.InputDigest},
		(*string)(&r.Status), &r.Fence, name{&r.Owner}, moment{&r.Until}, &r.Attempts, moment{&r.Created}, moment{&r.Updated},
	}
}

func scanRun(rows pgx.CollectableRow) (r store.Run, err error) {
	err = rows.Scan(runDest(&r)...)
	return r, err
}

// interruptColumns are what interruptDest takes; i is the table.
const interruptColumns = `i.account, i.run, i.id, i.address, i.kind, i.data, i.answer_schema, i.shown, i.action, i.timeout,
       i.created_at, i.deadline, i.state, i.verdict, i.final, i.answer, i.decided_by, i.via, i.source, i.decided_at, i.resume, i.applied`

func interruptDest(i *store.Interrupt) []any {
	return []any{
		name{&i.Account}, name{&i.Run}, name{&i.ID}, name{&i.Address}, name{&i.Kind}, &i.Data, &i.Schema, name{&i.Shown}, name{&i.Action}, (*int64)(&i.Timeout),
		moment{&i.Created}, moment{&i.Deadline}, (*string)(&i.State), word[store.Verdict]{&i.Verdict}, name{&i.Final}, &i.Answer, name{&i.By}, name{&i.Via}, word[store.Source]{&i.Source}, moment{&i.At}, name{&i.ResumeID}, &i.Applied,
	}
}

func scanInterrupt(rows pgx.CollectableRow) (i store.Interrupt, err error) {
	err = rows.Scan(interruptDest(&i)...)
	return i, err
}

// effectColumns are what effectDest takes; e is the table.
const effectColumns = `e.account, e.run, e.interrupt, e.number, e.digest, e.target_key, e.fence, e.state, e.receipt, e.error, e.started_at, e.ended_at`

func effectDest(e *store.Effect) []any {
	return []any{
		name{&e.Account}, name{&e.Run}, name{&e.Interrupt}, &e.Number, name{&e.Digest}, name{&e.Key}, &e.Fence, (*string)(&e.State), &e.Receipt, name{&e.Error}, moment{&e.Started}, moment{&e.Ended},
	}
}

func scanEffect(rows pgx.CollectableRow) (e store.Effect, err error) {
	err = rows.Scan(effectDest(&e)...)
	return e, err
}

// receiptColumns are what receiptDest takes; p is the table. The outcome of a resume is that of the rest which applied it: with the run as long as there was
// no other, with the resume since. newReceiptColumns are those of a resume that nothing can have come of yet.
const (
	//mutate:postgres-resume-outcome
	receiptColumns = `p.run, p.result, p.interrupt, p.created_at, coalesce(p.outcome,
       (SELECT r.outcome FROM runs AS r WHERE r.key = p.run_key AND r.account = p.account AND r.rests = p.rest))`
	newReceiptColumns = `p.run, p.result, p.interrupt, p.created_at, NULL::bytea`
)

func receiptDest(r *store.Receipt) []any {
	return []any{name{&r.Run}, (*string)(&r.Result), name{&r.Interrupt}, moment{&r.At}, &r.Outcome}
}

// eventColumns are what eventDest takes; e is the table.
const eventColumns = `e.account, e.run, e.number, e.kind, e.interrupt, e.at`

func eventDest(e *store.Event) []any {
	return []any{name{&e.Account}, name{&e.Run}, &e.Number, (*string)(&e.Kind), name{&e.Interrupt}, moment{&e.At}}
}

func scanEvent(rows pgx.CollectableRow) (e store.Event, err error) {
	err = rows.Scan(eventDest(&e)...)
	return e, err
}

// name takes what a caller has chosen, as the bytes that the tables keep; NULL is empty.
type name struct{ to *string }

// ScanBytes implements pgtype.BytesScanner.
func (n name) ScanBytes(data []byte) error {
	*n.to = string(data)
	return nil
}

// word takes a word of the port; NULL is none.
type word[T ~string] struct{ to *T }

// ScanText implements pgtype.TextScanner.
func (w word[T]) ScanText(text pgtype.Text) error {
	*w.to = T(text.String)
	return nil
}

// moment takes a time; NULL is none.
type moment struct{ to *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (m moment) ScanTimestamptz(at pgtype.Timestamptz) error {
	*m.to = time.Time{}
	if at.Valid {
		*m.to = at.Time.UTC()
	}
	return nil
}

// micros rounds up: nothing ends earlier than it was said to.
func micros(d time.Duration) int64 {
	whole := d.Microseconds()
	if time.Duration(whole)*time.Microsecond < d {
		whole++
	}
	return whole
}

// bytesOf makes a column of what callers have chosen.
func bytesOf(texts []string) [][]byte {
	column := make([][]byte, len(texts))
	for i, text := range texts {
		column[i] = []byte(text)
	}
	return column
}
