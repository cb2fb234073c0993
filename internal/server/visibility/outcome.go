package visibility

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// ExternalGraph is the graph of requests from external agents: the provider external.
const ExternalGraph = "external:request"

// Requests returns the requests of a run that a caller may see.
func (c Checker) Requests(me authn.Principal, view executor.RunView) ([]executor.RequestView, error) {
	var shown []executor.RequestView
	for _, q := range view.Interrupts {
		visible, err := c.MaySee(me, q.Request)
		if err != nil {
			return nil, err
		}
		if visible {
			shown = append(shown, q)
		}
	}
	return shown, nil
}

// HidesRequests reports whether a run has requests that a caller may not see, besides the questions
// to its end user, of which [MaySeeResult] decides.
func HidesRequests(view executor.RunView, shown []executor.RequestView) bool {
	hidden := len(view.Interrupts) - len(shown)
	for _, q := range view.Interrupts {
		if isForEndUser(q) && !slices.ContainsFunc(shown, func(s executor.RequestView) bool { return s.ID == q.ID }) {
			hidden--
		}
	}
	return hidden > 0
}

func isForEndUser(q executor.RequestView) bool {
	return q.Request != nil && q.Request.Subject.EndUser != ""
}

// MaySeeResult reports whether a caller may see the result and the tokens of a run. Those of
// a run with an end user are for that user, auditors and admins.
func MaySeeResult(me authn.Principal, endUser string) bool {
	return endUser == "" || endUser == me.ID || me.Has(authn.RoleAuditor)
}

// Outcome returns an outcome as a caller may see it: without interrupts that are hidden from
// them, and with the id and deadline of the others. It returns nil if the run waits only for hidden
// requests; to the caller it is still active. The result of a run may repeat what its requests
// show: a caller who may not see one of them gets none, and sensitive values are masked in it. That
// of a run with an end user depends on [MaySeeResult].
func (c Checker) Outcome(ctx context.Context, me authn.Principal, outcome fermata.Outcome) (fermata.Outcome, error) {
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok {
		return c.result(ctx, me, outcome)
	}
	deadlines, err := c.Executor.Deadlines(ctx, me.Account, waiting.Run)
	if err != nil {
		return nil, err
	}
	return withoutHidden(me, withDeadlines(waiting, deadlines), func(id string) (*desk.Request, bool, error) { return c.MaySeeID(ctx, me, id) })
}

// Run returns the requests and the outcome of a run as a caller may see them.
func (c Checker) Run(me authn.Principal, view executor.RunView) ([]executor.RequestView, fermata.Outcome, error) {
	shown, err := c.Requests(me, view)
	if err != nil {
		return nil, nil, err
	}
	outcome := outcomeOf(view)
	waiting, ok := outcome.(fermata.NeedsInput)
	switch {
	case ok:
	case !MaySeeResult(me, view.EndUser), HidesRequests(view, shown):
		return shown, withoutResult(outcome), nil
	default:
		return shown, maskedOutcome(me, view.Provider+":"+view.Graph, shown, outcome), nil
	}
	known := make(map[string]executor.RequestView)
	for _, q := range shown {
		known[q.ID] = q
	}
	outcome, err = withoutHidden(me, waiting, func(id string) (*desk.Request, bool, error) {
		q, visible := known[id]
		return q.Request, visible && !q.Unreadable, nil // or it is unknown who may see what
	})
	return shown, outcome, err
}

// result returns the result of a run as a caller may see it.
func (c Checker) result(ctx context.Context, me authn.Principal, outcome fermata.Outcome) (fermata.Outcome, error) {
	if _, done := outcome.(fermata.Completed); done {
		user, err := c.Executor.EndUser(ctx, me.Account, RunID(outcome))
		if err != nil {
			return nil, err
		}
		if !MaySeeResult(me, user) {
			return withoutResult(outcome), nil
		}
	}
	if !hasContent(outcome) {
		return outcome, nil
	}
	graph, ids, err := c.Executor.RunRequests(ctx, me.Account, RunID(outcome))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, executor.ErrRunNotFound) { // the run was deleted
		return withoutResult(outcome), nil
	}
	if err != nil {
		return outcome, err
	}
	var shown []executor.RequestView
	for _, id := range ids {
		q, err := c.Executor.GetRequest(ctx, me.Account, id)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		visible := err == nil
		if err == nil {
			visible, err = c.MaySee(me, q.Request)
		}
		if err == nil && isForEndUser(q) { // see MaySeeResult
			continue
		}
		switch {
		case errors.Is(err, executor.ErrUnreadable), err == nil && !visible:
			return withoutResult(outcome), nil
		case err != nil:
			return nil, err
		}
		shown = append(shown, q)
	}
	return maskedOutcome(me, graph, shown, outcome), nil
}

// hasContent reports whether the result of a run may repeat what its requests show.
func hasContent(outcome fermata.Outcome) bool {
	switch o := outcome.(type) {
	case fermata.Completed:
		return o.Content != "" || len(o.Output) > 0
	case fermata.Failed:
		return o.Message != ""
	case fermata.NeedsInput:
	}
	return false
}

// withoutResult returns an outcome without what a run has returned, or why a person rejected it.
func withoutResult(outcome fermata.Outcome) fermata.Outcome {
	switch o := outcome.(type) {
	case fermata.Completed:
		o.Content, o.Output = "", nil
		return o
	case fermata.Failed:
		if o.Code == "returned" || o.Code == "rejected" {
			o.Message = ""
		}
		return o
	case fermata.NeedsInput:
	}
	return outcome
}

// maskedOutcome masks the sensitive values of requests in the result of their run. The result of a
// run of an agent elsewhere has the answer, which is masked like that of the request.
func maskedOutcome(me authn.Principal, graph string, requests []executor.RequestView, outcome fermata.Outcome) fermata.Outcome {
	for _, q := range requests {
		if q.Unreadable && q.Request == nil { // or it is unknown who may see what
			return withoutResult(outcome)
		}
		if !Masks(me, q.Request) {
			continue
		}
		texts := q.Request.SensitiveTexts(q.Data)
		switch o := outcome.(type) {
		case fermata.Completed:
			if graph == ExternalGraph {
				o.Output = maskedAnswer(q.Request, o.Output)
			}
			o.Content, o.Output = maskedText(o.Content, texts), desk.MaskTexts(o.Output, texts)
			outcome = o
		case fermata.Failed:
			o.Message = maskedText(o.Message, texts)
			outcome = o
		case fermata.NeedsInput:
		}
	}
	return outcome
}

// maskedAnswer masks the answer in the output of an agent elsewhere.
func maskedAnswer(doc *desk.Request, data json.RawMessage) json.RawMessage {
	var output map[string]json.RawMessage
	if len(data) == 0 || json.Unmarshal(data, &output) != nil {
		return nil
	}
	output["answer"] = doc.MaskAnswer(output["answer"])
	masked, err := json.Marshal(output)
	if err != nil {
		return nil
	}
	return masked
}

// maskedText masks texts in a text.
func maskedText(text string, texts []string) string {
	quoted, err := json.Marshal(text)
	if err != nil || json.Unmarshal(desk.MaskTexts(quoted, texts), &text) != nil {
		return ""
	}
	return text
}

// withoutHidden removes hidden interrupts, and masks the others. It returns nil if none is left.
func withoutHidden(me authn.Principal, waiting fermata.NeedsInput, find func(id string) (*desk.Request, bool, error)) (fermata.Outcome, error) {
	var open []fermata.OpenInterrupt
	for _, i := range waiting.Interrupts {
		doc, visible, err := find(i.ID)
		if err != nil {
			return nil, err
		}
		if !visible {
			continue
		}
		if Masks(me, doc) {
			i.Data, i.Masked = doc.MaskData(i.Data)
		}
		open = append(open, i)
	}
	if len(open) == 0 {
		return nil, nil
	}
	waiting.Interrupts = open
	return waiting, nil
}

// withDeadlines adds the request id and the deadline to each open interrupt.
func withDeadlines(waiting fermata.NeedsInput, deadlines map[string]time.Time) fermata.NeedsInput {
	open := make([]fermata.OpenInterrupt, len(waiting.Interrupts))
	for n, i := range waiting.Interrupts {
		i.RequestID = i.ID
		if deadline, ok := deadlines[i.ID]; ok {
			i.Deadline = &deadline
		}
		open[n] = i
	}
	waiting.Interrupts = open
	return waiting
}

// outcomeOf returns the outcome of a run; nil while it is active.
func outcomeOf(view executor.RunView) fermata.Outcome {
	waiting, ok := view.Outcome.(fermata.NeedsInput)
	if !ok {
		return view.Outcome
	}
	deadlines := make(map[string]time.Time)
	for _, q := range view.Interrupts {
		if !q.Deadline.IsZero() {
			deadlines[q.ID] = q.Deadline
		}
	}
	return withDeadlines(waiting, deadlines)
}

// RunID returns the run id of an outcome.
func RunID(outcome fermata.Outcome) string {
	switch o := outcome.(type) {
	case fermata.Completed:
		return o.Run
	case fermata.NeedsInput:
		return o.Run
	case fermata.Failed:
		return o.Run
	}
	return ""
}
