package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/history"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// visibleID returns the visible id of an interrupt. open is what the run waited for before this
// execution, applied which of it was answered.
func visibleID(q provider.Interrupt, open []fermata.OpenInterrupt, applied []string) string {
	for _, known := range open {
		if ids.ProviderID(known.ID) != q.ID {
			continue
		}
		if slices.Contains(applied, known.ID) || ids.EnvelopeDigest(known.Envelope) != ids.EnvelopeDigest(q.Envelope) {
			//mutate:new-id-per-repetition
			return ids.Next(known.ID) // it was answered, or shows something else now
		}
		return known.ID
	}
	return q.ID
}

// supersededID returns the visible id of the interrupt that q replaces. before is what the run
// waited for before this execution.
func supersededID(q provider.Interrupt, before []fermata.OpenInterrupt) string {
	for _, known := range before {
		if q.Supersedes != "" && ids.ProviderID(known.ID) == q.Supersedes {
			return known.ID
		}
	}
	return q.Supersedes
}

// visibleUnused returns unused answers with the visible ids of their interrupts, which are among
// the applied ones.
func visibleUnused(unused []fermata.UnusedAnswer, applied []string) []fermata.UnusedAnswer {
	list := slices.Clone(unused)
	for i := range list {
		for _, id := range applied {
			if ids.ProviderID(id) == list[i].ID {
				list[i].ID = id
			}
		}
	}
	return list
}

// publishInterrupts makes interrupts visible: it adds them to rest, and creates requests for new
// ones. onFailure is written if the run fails instead. retried says that the store may have
// published them already.
func (w *Worker) publishInterrupts(ctx context.Context, tx *txn.Tx, came provider.Waiting, rest *store.ExecutionEnd, retried bool) (outcome fermata.Outcome, onFailure store.Writes, err error) {
	run := tx.Run
	session := w.governor.NewSession(tx, history.New(w.docs, run))
	before, err := w.lastOpenInterrupts(run)
	if err != nil {
		return nil, store.Writes{}, err
	}
	waiting := fermata.NeedsInput{Run: run.ID, StateKey: run.StateKey, Unused: visibleUnused(came.Unused, rest.Applied)}
	if came.Failure != nil {
		waiting.Failure = &fermata.Failure{Code: came.Failure.Code, Message: came.Failure.Message}
	}
	// a failed run was retried: what it asked before is withdrawn and is asked under a new id
	afterFailure, err := w.lastFailed(run)
	if err != nil {
		return nil, store.Writes{}, err
	}
	for _, q := range came.Interrupts {
		if code, problem := normalizeInterrupt(&q); code != "" {
			return await.FailedOutcome(run, code, fmt.Sprintf("the question at %s: %s", q.Address, problem)), store.Writes{}, nil
		}
		q.ID, q.Supersedes = visibleID(q, before, rest.Applied), supersededID(q, before)
		if retried || afterFailure {
			if q.ID, err = w.unusedID(ctx, run, q, afterFailure); err != nil {
				return nil, store.Writes{}, err
			}
		}
		shown, err := w.newInterrupt(run, q)
		if err != nil {
			return nil, store.Writes{}, err
		}
		if !slices.ContainsFunc(before, func(known fermata.OpenInterrupt) bool { return known.ID == q.ID }) {
			err := w.publishRequest(ctx, session, q, &shown, retried)
			if denied, ok := errors.AsType[*govern.DeniedError](err); ok {
				return await.FailedOutcome(run, codeDenied, denied.Error()), denied.Writes, nil
			}
			if errors.Is(err, desk.ErrInvalid) {
				return await.FailedOutcome(run, codeBadQuestion, fmt.Sprintf("what %s asks cannot be put before people: %v", q.Address, err)), store.Writes{}, nil
			}
			if err != nil {
				return nil, store.Writes{}, err
			}
		}
		rest.Open = append(rest.Open, shown)
		waiting.Interrupts = append(waiting.Interrupts, fermata.OpenInterrupt{
			ID: q.ID, Address: q.Address, Envelope: q.Envelope, AnswerSchema: q.AnswerSchema,
			Supersedes: q.Supersedes, Changed: q.Changed, Refused: q.Refused,
		})
	}
	return waiting, store.Writes{}, nil
}

// normalizeInterrupt compacts the JSON of an interrupt, so that its digest is the same each time.
// It returns a code and a text if the interrupt is invalid; the run fails with them.
func normalizeInterrupt(q *provider.Interrupt) (code, problem string) {
	switch {
	case len(q.ID) > errs.MaxName || !utf8.ValidString(q.ID):
		return codeBadQuestion, fmt.Sprintf("its id is not a text of %d bytes at most", errs.MaxName)
	case ids.ProviderID(q.ID) != q.ID:
		return codeBadQuestion, "its id is reserved"
	case len(q.Kind) > errs.MaxName || !utf8.ValidString(q.Kind):
		return codeBadQuestion, fmt.Sprintf("its kind is not a text of %d bytes at most", errs.MaxName)
	case len(q.Data) > limits.MaxDataBytes:
		return provider.CodeDataTooLarge, fmt.Sprintf("what it shows has %d bytes; %d are allowed", len(q.Data), limits.MaxDataBytes)
	case q.AnswerSchema != nil && strictjson.CheckValue(q.AnswerSchema) != nil:
		return codeBadQuestion, "the schema of its answer is not JSON with one meaning"
	case q.Data == nil:
		return "", ""
	case strictjson.CheckValue(q.Data) != nil:
		// without saying what: it may be secret
		return codeBadQuestion, "what it shows is not JSON with one meaning"
	}
	data, err := json.Marshal(q.Data)
	if err != nil {
		return codeBadQuestion, "what it shows is not JSON"
	}
	q.Data = data
	if q.Kind == fermata.Approval.Name() && !digestMatches(data) {
		return codeBadQuestion, "its digest is not that of the action which people would see"
	}
	return "", ""
}

// digestMatches reports whether the digest of an action is that of the action: the digest is
// approved, and people see the rest.
func digestMatches(data json.RawMessage) bool {
	var asked fermata.ApprovalRequest
	if json.Unmarshal(data, &asked) != nil || asked.Args == nil {
		return false
	}
	digest, err := asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args})
	return err == nil && digest == asked.Digest
}

const (
	codeBadQuestion = "bad_question" // the run raises an invalid interrupt
	codeDenied      = "denied"       // the policy denies what the run asks
)

// unusedID returns the visible id of an interrupt that the store may know already. An id that is
// open, or was withdrawn and showed the same, is used again; for one that was answered, or showed
// something else, or was withdrawn by a failure of the run, the next is tried.
func (w *Worker) unusedID(ctx context.Context, run store.Run, q provider.Interrupt, afterFailure bool) (string, error) {
	for id := q.ID; ; id = ids.Next(id) {
		known, err := w.store.InboxItem(ctx, run.Account, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return id, nil
		case err != nil:
			return "", err
		case known.State == store.InterruptPending, known.State == store.InterruptWithdrawn && !afterFailure && known.ShownDigest == ids.EnvelopeDigest(q.Envelope):
			return id, nil
		}
	}
}

// publishRequest creates the request of an interrupt, and sets its timeout.
func (w *Worker) publishRequest(ctx context.Context, session *govern.Session, q provider.Interrupt, shown *store.NewInterrupt, retried bool) error {
	base, tx := int64(0), session.Tx
	if retried {
		known, err := w.store.Document(ctx, tx.Run.Account, store.RequestDocument, q.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		base = known.Revision
	}
	deadline, err := w.requests.OpenRequest(ctx, session, q, *shown, base)
	if shown.Timeout > 0 || deadline.Before(requests.NoDeadline(tx.Now)) {
		shown.Timeout = max(deadline.Sub(tx.Now), time.Nanosecond)
	}
	return err
}

// lastOpenInterrupts returns what the run waited for after its last execution.
func (w *Worker) lastOpenInterrupts(run store.Run) ([]fermata.OpenInterrupt, error) {
	if run.Outcome == nil {
		return nil, nil
	}
	data, err := w.store.Outcome(run.Account, run.ID, run.Outcome)
	if err != nil {
		return nil, err
	}
	// other outcomes have no interrupts; we wrote this ourselves, so it need not be read strictly
	var before struct {
		Interrupts []fermata.OpenInterrupt `json:"interrupts"`
	}
	err = json.Unmarshal(data, &before)
	return before.Interrupts, err
}

// lastFailed reports whether the last execution of the run ended with a failure.
func (w *Worker) lastFailed(run store.Run) (bool, error) {
	if run.Outcome == nil {
		return false, nil
	}
	data, err := w.store.Outcome(run.Account, run.ID, run.Outcome)
	if err != nil {
		return false, err
	}
	last, err := fermata.UnmarshalOutcome(data)
	_, failed := last.(fermata.Failed)
	return failed, err
}

// newInterrupt returns an interrupt as it is stored.
func (w *Worker) newInterrupt(run store.Run, q provider.Interrupt) (store.NewInterrupt, error) {
	shown := store.NewInterrupt{
		ID: q.ID, Address: q.Address.String(), Kind: q.Kind, AnswerSchema: q.AnswerSchema, ShownDigest: ids.EnvelopeDigest(q.Envelope),
		Data: q.Data, Timeout: w.requests.RequestTimeout(q.Timeout),
	}
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return shown, err
		}
		shown.ActionDigest = asked.Digest
	}
	return shown, nil
}
