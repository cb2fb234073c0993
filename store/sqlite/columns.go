package sqlite

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/store"
)

// scanner is a row.
type scanner interface{ Scan(dest ...any) error }

// runColumns are what runDest takes.
const runColumns = `account, run, state_key, generation, provider, graph, ref, input, outcome, input_digest,
       status, fence, owner, lease_until, attempts, created_at, updated_at`

func runDest(r *store.Run) []any {
	return []any{
		&r.Account, &r.ID, &r.StateKey, &r.Generation, &r.Provider, &r.Graph, sealed{&r.Ref}, sealed{&r.Input}, sealed{&r.Outcome}, &r.InputDigest,
		&r.Status, &r.Fence, zero(&r.Owner), moment{&r.Until}, &r.Attempts, moment{&r.Created}, moment{&r.Updated},
	}
}

// interruptColumns are what scanInterrupt takes; i is the table.
const interruptColumns = `i.account, i.run, i.id, i.address, i.kind, i.data, i.answer_schema, i.shown, i.action, i.timeout,
       i.created_at, i.deadline, i.state, i.verdict, i.final, i.answer, i.decided_by, i.via, i.source, i.decided_at, i.resume, i.applied`

func scanInterrupt(row scanner) (i store.Interrupt, err error) {
	err = row.Scan(
		&i.Account, &i.Run, &i.ID, &i.Address, &i.Kind, sealed{&i.Data}, sealed{&i.Schema}, &i.Shown, &i.Action, &i.Timeout,
		moment{&i.Created}, moment{&i.Deadline}, &i.State, zero(&i.Verdict), zero(&i.Final), sealed{&i.Answer}, zero(&i.By), zero(&i.Via), zero(&i.Source), moment{&i.At}, zero(&i.ResumeID), &i.Applied,
	)
	return i, err
}

// effectColumns are what effectDest takes.
const effectColumns = `account, run, interrupt, number, digest, target_key, fence, state, receipt, error, started_at, ended_at`

func effectDest(e *store.Effect) []any {
	return []any{
		&e.Account, &e.Run, &e.Interrupt, &e.Number, &e.Digest, &e.Key, &e.Fence, &e.State, sealed{&e.Receipt}, &e.Error, moment{&e.Started}, moment{&e.Ended},
	}
}

// receiptColumns are what receiptDest takes; s is the table. The outcome of a resume is that of the rest which applied it: with the run as long as there
// was no other, with the resume since.
//
//mutate:sqlite-resume-outcome
const receiptColumns = `s.run, s.result, s.interrupt, s.created_at, coalesce(s.outcome,
       (SELECT outcome FROM runs AS r WHERE r.account = s.account AND r.run = s.run AND r.rests = s.rest))`

func receiptDest(r *store.Receipt) []any {
	return []any{&r.Run, &r.Result, &r.Interrupt, moment{&r.At}, sealed{&r.Outcome}}
}

// nullable takes NULL as the zero value.
type nullable[T any] struct{ to *T }

func zero[T any](to *T) nullable[T] { return nullable[T]{to} }

func (n nullable[T]) Scan(src any) error {
	var value sql.Null[T]
	err := value.Scan(src)
	*n.to = value.V
	return err
}

// sealed takes bytes and tells NULL, which is nil, from empty. The driver has nil for both, but of different types.
type sealed struct{ to *[]byte }

func (s sealed) Scan(src any) error {
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

// text takes bytes that are kept as text; NULL is nil.
type text struct{ to *[]byte }

func (t text) Scan(src any) error {
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

// moment takes a time; NULL is none.
type moment struct{ to *time.Time }

func (m moment) Scan(src any) error {
	switch at := src.(type) {
	case nil:
		*m.to = time.Time{}
	case int64:
		*m.to = atMicro(at)
	default:
		return fmt.Errorf("%T instead of a time", src)
	}
	return nil
}

func atMicro(at int64) time.Time { return time.UnixMicro(at).UTC() }

// micros rounds up: nothing ends earlier than it was said to.
func micros(d time.Duration) int64 {
	whole := d.Microseconds()
	if time.Duration(whole)*time.Microsecond < d {
		whole++
	}
	return whole
}
