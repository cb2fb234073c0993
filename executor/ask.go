package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// A provider may ask again under an id that was answered: the code that asked did not like the answer, or uses one id for one question after
// the other. A decision is for ever, so what is asked again is visible under an id of its own: "int_1", "int_1~2", "int_1~3".
const again = "~"

// questionID is the provider's id of a visible one.
func questionID(visible string) string {
	id, number, ok := cutLast(visible)
	if !ok || number < 2 {
		return visible
	}
	return id
}

// nextID is what a question is visible as when it is asked once more.
func nextID(visible string) string {
	id, number, ok := cutLast(visible)
	if !ok || number < 2 {
		id, number = visible, 1
	}
	return id + again + strconv.Itoa(number+1)
}

func cutLast(visible string) (id string, number int, ok bool) {
	i := strings.LastIndex(visible, again)
	if i < 0 {
		return "", 0, false
	}
	number, err := strconv.Atoi(visible[i+len(again):])
	return visible[:i], number, err == nil
}

// visible finds the id under which a question is visible: the one that it has, if it is open; a new one, if that was answered in this execution.
func visible(q provider.Question, open []fermata.OpenInterrupt, applied []string) string {
	for _, known := range open {
		if questionID(known.ID) != q.ID {
			continue
		}
		if slices.Contains(applied, known.ID) || ShownDigest(known.Envelope) != ShownDigest(q.Envelope) {
			return nextID(known.ID) // it was answered, or is another question by now
		}
		return known.ID
	}
	return q.ID
}

// ask makes questions visible.
func (e *Executor) ask(
	ctx context.Context, work *store.Work, c *filing, questions []provider.Question, rest *store.Rest, again bool,
) (fermata.Outcome, error) {
	run := work.Run
	before, err := e.lastOpen(run)
	if err != nil {
		return nil, err
	}
	waiting := fermata.NeedsInput{Run: run.ID, StateKey: run.StateKey}
	for _, q := range questions {
		if code, problem := plain(&q); code != "" {
			return failed(run, code, fmt.Sprintf("the question at %s: %s", q.Address, problem)), nil
		}
		q.ID = visible(q, before, rest.Applied)
		if again {
			if q.ID, err = e.unused(ctx, run, q); err != nil {
				return nil, err
			}
		}
		shown, err := e.show(run, q)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(before, func(known fermata.OpenInterrupt) bool { return known.ID == q.ID }) {
			err := e.request(ctx, c, q, &shown, again)
			if denied, ok := errors.AsType[*deniedError](err); ok {
				return failed(run, "denied", denied.Error()), nil
			}
			if errors.Is(err, desk.ErrInvalid) {
				return failed(run, badQuestion, fmt.Sprintf("what %s asks cannot be put before people: %v", q.Address, err)), nil
			}
			if err != nil {
				return nil, err
			}
		}
		rest.Open = append(rest.Open, shown)
		waiting.Interrupts = append(waiting.Interrupts, fermata.OpenInterrupt{ID: q.ID, Address: q.Address, Envelope: q.Envelope, AnswerSchema: q.AnswerSchema})
	}
	return waiting, nil
}

// plain gives what is shown its one spelling, as everybody reads it later: when it is asked again, it is the same question. It returns what is wrong
// with a question that cannot be shown.
func plain(q *provider.Question) (code, problem string) {
	switch {
	case len(q.ID) > MaxName || !utf8.ValidString(q.ID):
		return badQuestion, fmt.Sprintf("its id is not a text of %d bytes at most", MaxName)
	case questionID(q.ID) != q.ID:
		return badQuestion, "its id is reserved"
	case len(q.Kind) > MaxName || !utf8.ValidString(q.Kind):
		return badQuestion, fmt.Sprintf("its kind is not a text of %d bytes at most", MaxName)
	case len(q.Data) > fermata.MaxData:
		return "question_too_large", fmt.Sprintf("what it shows has %d bytes; %d are allowed", len(q.Data), fermata.MaxData)
	case q.AnswerSchema != nil && strictjson.CheckValue(q.AnswerSchema) != nil:
		return badQuestion, "the schema of its answer is not JSON with one meaning"
	case q.Data == nil:
		return "", ""
	case strictjson.CheckValue(q.Data) != nil:
		return badQuestion, "what it shows is not JSON with one meaning" // without saying what: it may be secret
	}
	data, err := json.Marshal(q.Data)
	if err != nil {
		return badQuestion, "what it shows is not JSON"
	}
	q.Data = data
	if q.Kind == fermata.Approval.Name() && !isNamedRight(data) {
		return badQuestion, "its digest is not that of the action which people would see"
	}
	return "", ""
}

// isNamedRight reports whether the digest of an action is that of the action: what is approved is the digest, and what people see is the rest.
func isNamedRight(data json.RawMessage) bool {
	var asked fermata.ApprovalRequest
	if json.Unmarshal(data, &asked) != nil || asked.Args == nil {
		return false
	}
	digest, err := asked.Approves(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args})
	return err == nil && digest == asked.Digest
}

// badQuestion is the code of a run that asks what nobody can be shown.
const badQuestion = "bad_question"

// unused is the id under which a question can be asked again: the one that it has, if it was withdrawn and is still the same question; a new
// one, if that was answered, or was another question.
func (e *Executor) unused(ctx context.Context, run store.Run, q provider.Question) (string, error) {
	for id := q.ID; ; id = nextID(id) {
		known, err := e.store.Question(ctx, run.Account, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return id, nil
		case err != nil:
			return "", err
		case known.State == store.Pending, known.State == store.Withdrawn && known.Shown == ShownDigest(q.Envelope):
			return id, nil
		}
	}
}

// request puts a question before people.
func (e *Executor) request(ctx context.Context, c *filing, q provider.Question, shown *store.NewInterrupt, again bool) error {
	base := int64(0)
	if again {
		known, err := e.store.Paper(ctx, c.run.Account, store.RequestPaper, q.ID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		base = known.Revision
	}
	deadline, err := e.openRequest(ctx, c, q, *shown, base)
	if shown.Timeout > 0 || deadline.Before(forever(c.now)) {
		shown.Timeout = max(deadline.Sub(c.now), time.Nanosecond)
	}
	return err
}

// lastOpen is what the run waited for when it rested last.
func (e *Executor) lastOpen(run store.Run) ([]fermata.OpenInterrupt, error) {
	if run.Outcome == nil {
		return nil, nil
	}
	data, err := e.open(run.Account, store.SealedOutcome, run.ID, run.Outcome)
	if err != nil {
		return nil, err
	}
	var before struct { // of other outcomes it has none; what is sealed is ours, and need not be read strictly
		Interrupts []fermata.OpenInterrupt `json:"interrupts"`
	}
	err = json.Unmarshal(data, &before)
	return before.Interrupts, err
}

// show is what becomes visible of a question.
func (e *Executor) show(run store.Run, q provider.Question) (store.NewInterrupt, error) {
	shown := store.NewInterrupt{
		ID: q.ID, Address: q.Address.String(), Kind: q.Kind, Schema: q.AnswerSchema, Shown: ShownDigest(q.Envelope),
		Data: e.seal(run.Account, store.SealedData, q.ID, q.Data), Timeout: e.timeout(q.Timeout),
	}
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return shown, err
		}
		shown.Action = asked.Digest
	}
	return shown, nil
}

// ShownDigest names what a person was shown. An answer that carries it is refused if the question is another one.
func ShownDigest(shown fermata.Envelope) string { return digest(shown.Kind, shown.Data) }

// timeout is how long a question may be open: as long as it says itself, but not longer than any.
func (e *Executor) timeout(own time.Duration) time.Duration {
	limit := e.config.Timeout
	switch {
	case limit < 0:
		return max(own, 0)
	case own <= 0:
		return limit
	}
	return min(own, limit)
}
