package visibility

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
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

// MaySeeResult reports whether a caller may see the result and the tokens of a run. Those of
// a run with an end user are for that user, auditors and admins.
func MaySeeResult(me authn.Principal, endUser string) bool {
	return endUser == "" || endUser == me.ID || me.Has(authn.RoleAuditor)
}

// Outcome returns an outcome as a caller may see it: without interrupts that are hidden from
// them, and with the id and deadline of the others. It returns nil if the run waits only for hidden
// requests; to the caller it is still active. The result of a run of an agent elsewhere is the
// answer to its request, so it depends on who may see the request. That of a run with an end user
// depends on [MaySeeResult].
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
	if !ok {
		if !MaySeeResult(me, view.EndUser) {
			return shown, withoutResult(outcome), nil
		}
		if view.Provider+":"+view.Graph != ExternalGraph {
			return shown, outcome, nil
		}
		if len(shown) < len(view.Interrupts) {
			return shown, withoutAnswer(outcome), nil
		}
		for _, q := range shown {
			if q.Unreadable && q.Request == nil { // or it is unknown who may see what
				outcome = withoutAnswer(outcome)
			}
			outcome = maskedResult(me, q.Request, outcome)
		}
		return shown, outcome, nil
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
	if !hasAnswer(outcome) {
		return outcome, nil
	}
	graph, ids, err := c.Executor.RunRequests(ctx, me.Account, RunID(outcome))
	if err != nil || graph != ExternalGraph {
		return outcome, err
	}
	for _, id := range ids {
		doc, visible, err := c.MaySeeID(ctx, me, id)
		switch {
		case errors.Is(err, executor.ErrUnreadable), err == nil && !visible:
			return withoutAnswer(outcome), nil
		case err != nil:
			return nil, err
		}
		outcome = maskedResult(me, doc, outcome)
	}
	return outcome, nil
}

// withoutResult returns an outcome without what a run has returned.
func withoutResult(outcome fermata.Outcome) fermata.Outcome {
	done, ok := outcome.(fermata.Completed)
	if !ok {
		return outcome
	}
	done.Content, done.Output = "", nil
	return done
}

// hasAnswer reports whether the result of a run of an agent elsewhere has a part of the decision.
func hasAnswer(outcome fermata.Outcome) bool {
	switch o := outcome.(type) {
	case fermata.Completed:
		return len(o.Output) > 0
	case fermata.Failed:
		return o.Code == "returned" || o.Code == "rejected" // with the reason
	case fermata.NeedsInput:
	}
	return false
}

// withoutAnswer returns the result of a run of an agent elsewhere without the decision.
func withoutAnswer(outcome fermata.Outcome) fermata.Outcome {
	if !hasAnswer(outcome) {
		return outcome
	}
	switch o := outcome.(type) {
	case fermata.Completed:
		o.Output = nil
		return o
	case fermata.Failed:
		o.Message = ""
		return o
	case fermata.NeedsInput:
	}
	return outcome
}

// maskedResult masks the answer in the result of a run of an agent elsewhere.
func maskedResult(me authn.Principal, doc *desk.Request, outcome fermata.Outcome) fermata.Outcome {
	done, ok := outcome.(fermata.Completed)
	if !ok || len(done.Output) == 0 || !Masks(me, doc) {
		return outcome
	}
	var output map[string]json.RawMessage
	if err := json.Unmarshal(done.Output, &output); err != nil {
		return withoutAnswer(outcome)
	}
	output["answer"] = doc.MaskAnswer(output["answer"])
	data, err := json.Marshal(output)
	if err != nil {
		return withoutAnswer(outcome)
	}
	done.Output = data
	return done
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
