package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/server/authn"
	"github.com/fermata-go/fermata/server/internal/endpoint"
	"github.com/fermata-go/fermata/server/internal/problems"
	"github.com/fermata-go/fermata/store"
)

// maySee reports whether a caller may see a request. Every response that has a request, or a part
// of one, depends on it. A request without a document is visible.
func (s *Server) maySee(me authn.Principal, doc *desk.Request) (bool, error) {
	if doc == nil {
		return true, nil
	}
	return s.config.Executor.MaySee(*doc, me.Viewer())
}

// maySeeID is maySee for the id of a request. A request that does not exist is visible: the caller
// learns nothing from it.
func (s *Server) maySeeID(ctx context.Context, me authn.Principal, id string) (*desk.Request, bool, error) {
	doc, err := s.config.Executor.RequestDocument(ctx, me.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	visible, err := s.maySee(me, &doc)
	return &doc, visible, err
}

// errHidden is the response for a request that the caller may not see, and for one that does not
// exist.
func errHidden() *problems.Problem { return problems.Of(store.ErrNotFound) }

// requestPath is the path of the operations on one request.
const requestPath = api.Prefix + "/requests/{id}"

// requireVisible admits callers to the operations on a request that they may see. Others get the
// response for a request that does not exist.
func (s *Server) requireVisible(ctx huma.Context, next func(huma.Context)) {
	me := endpoint.Principal(ctx.Context())
	if me.Has() || !isRequestPath(ctx.Operation().Path) {
		next(ctx)
		return
	}
	id := ctx.Param("id")
	doc, visible, err := s.maySeeID(ctx.Context(), me, id)
	if err == nil && doc == nil { // the same response as for a hidden one
		_, err = s.config.Executor.GetRequest(ctx.Context(), me.Account, id)
		visible = !errors.Is(err, store.ErrNotFound)
	}
	switch {
	case errors.Is(err, executor.ErrUnreadable), err == nil && visible: // the operation reports it
		next(ctx)
	case !visible && (err == nil || errors.Is(err, store.ErrNotFound)):
		s.respondProblem(ctx, errHidden())
	default:
		s.respondProblem(ctx, problems.Of(err))
	}
}

func isRequestPath(path string) bool {
	rest, ok := strings.CutPrefix(path, requestPath)
	return ok && (rest == "" || rest[0] == '/')
}

// checkTargets rejects answers to requests that the caller may not see.
func (s *Server) checkTargets(ctx context.Context, request executor.RunRequest) error {
	me := endpoint.Principal(ctx)
	if me.Has() {
		return nil
	}
	for id := range request.Targets {
		if _, visible, err := s.maySeeID(ctx, me, id); err != nil {
			return problems.Of(err)
		} else if !visible {
			return problems.ForResult(store.ResultNotFound)
		}
	}
	if request.Value == nil || request.StateKey == "" {
		return nil
	}
	view, err := s.config.Executor.GetRun(ctx, me.Account, request.StateKey)
	if errors.Is(err, executor.ErrRunNotFound) { // the executor answers repetitions
		return nil
	}
	if err != nil {
		return problems.Of(err)
	}
	shown, err := s.shownRequests(me, view)
	if err != nil {
		return problems.Of(err)
	}
	open := func(list []executor.RequestView) (n int) {
		for _, q := range list {
			if q.State == store.InterruptPending {
				n++
			}
		}
		return n
	}
	switch visible, all := open(shown), open(view.Interrupts); {
	case visible == all:
		return nil
	case visible == 0:
		return problems.Of(&executor.RefusedError{Result: store.ResultWithdrawn})
	}
	return problems.New("bad_request", "name the request that is answered in resumeTargets")
}

// shownRequests returns the requests of a run that a caller may see.
func (s *Server) shownRequests(me authn.Principal, view executor.RunView) ([]executor.RequestView, error) {
	var shown []executor.RequestView
	for _, q := range view.Interrupts {
		visible, err := s.maySee(me, q.Request)
		if err != nil {
			return nil, err
		}
		if visible {
			shown = append(shown, q)
		}
	}
	return shown, nil
}

// shownOutcome returns an outcome as a caller may see it: without interrupts that are hidden from
// them, and with the id and deadline of the others. It returns nil if the run waits only for hidden
// requests; to the caller it is still active. The result of a run of an agent elsewhere is the
// answer to its request, so it depends on who may see the request.
func (s *Server) shownOutcome(ctx context.Context, me authn.Principal, outcome fermata.Outcome) (fermata.Outcome, error) {
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok {
		return s.shownResult(ctx, me, outcome)
	}
	deadlines, err := s.config.Executor.Deadlines(ctx, me.Account, waiting.Run)
	if err != nil {
		return nil, err
	}
	return withoutHidden(me, withDeadlines(waiting, deadlines), func(id string) (*desk.Request, bool, error) { return s.maySeeID(ctx, me, id) })
}

// shownRun returns the requests and the outcome of a run as a caller may see them.
func (s *Server) shownRun(me authn.Principal, view executor.RunView) ([]executor.RequestView, fermata.Outcome, error) {
	shown, err := s.shownRequests(me, view)
	if err != nil {
		return nil, nil, err
	}
	outcome := outcomeOf(view)
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok {
		if view.Provider+":"+view.Graph != externalGraph {
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

// shownResult returns the result of a run as a caller may see it.
func (s *Server) shownResult(ctx context.Context, me authn.Principal, outcome fermata.Outcome) (fermata.Outcome, error) {
	if !hasAnswer(outcome) {
		return outcome, nil
	}
	graph, ids, err := s.config.Executor.RunRequests(ctx, me.Account, runIDOf(outcome))
	if err != nil || graph != externalGraph {
		return outcome, err
	}
	for _, id := range ids {
		doc, visible, err := s.maySeeID(ctx, me, id)
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
	if !ok || len(done.Output) == 0 || !masks(me, doc) {
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
		if masks(me, doc) {
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
