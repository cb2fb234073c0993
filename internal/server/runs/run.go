package runs

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/sanitize"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/outcomes"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

// RunView is a run with its outcome and its requests.
type RunView struct {
	api.Run
	Outcome  *outcomes.Outcome `json:"outcome,omitempty" doc:"The outcome, or what the run waits for. Omitted while the run is active."`
	Requests []api.Request     `json:"requests" doc:"All requests of the run."`
	Problem  *api.RunProblem   `json:"problem,omitempty" doc:"Why the run failed, is parked or is tried again."`
	Receipt  *api.Receipt      `json:"receipt,omitempty" doc:"What the external agent did, if it sent a receipt."`
}

func runOf(r store.Run) api.Run {
	return api.Run{
		StateKey: r.StateKey, RunID: r.ID, Generation: r.Generation, GraphID: r.Provider + ":" + r.Graph, Status: string(r.Status),
		Attempts: r.Attempts, CreatedAt: r.Created, UpdatedAt: r.Updated,
	}
}

type runsInput struct {
	Status []string `query:"status" doc:"Filter by status; separate several with commas." maxItems:"9" enum:"ready,running,waiting,parked,completed,failed,expired,cancelled,superseded"`
	Graph  string   `query:"graphId" maxLength:"512"`
	Cursor string   `query:"cursor" maxLength:"4096" doc:"The cursor of the next page."`
	Limit  int      `query:"limit" minimum:"0" maximum:"1000" doc:"Page size, 100 by default."`
}

type keyInput struct {
	StateKey string `path:"stateKey" maxLength:"512"`
}

type runOutput struct{ Body RunView }

func (h *Handlers) registerRuns(to huma.API) {
	huma.Register(to, endpoint.New("list-runs", http.MethodGet, api.Prefix+"/runs", "List runs, newest first", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor), h.listRuns)
	huma.Register(to, endpoint.New("get-run", http.MethodGet, api.Prefix+"/runs/{stateKey}", "Get a run with its outcome and its requests", authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor), h.getRun)
	cancel := endpoint.New("cancel-run", http.MethodPost, api.Prefix+"/runs/{stateKey}/cancel", "Cancel a run and withdraw its open requests", authn.RoleAgent)
	cancel.DefaultStatus = http.StatusNoContent
	huma.Register(to, cancel, h.cancelRun)
	retry := endpoint.New("retry-run", http.MethodPost, api.Prefix+"/runs/{stateKey}/retry", "Retry a parked or failed run from its last step", authn.RoleAdmin)
	retry.Description = "A failed run can be retried if it kept its state and its failure is not final. Recorded effects and accepted answers are kept. The problem not_retryable says why a run cannot be retried."
	retry.DefaultStatus = http.StatusNoContent
	huma.Register(to, retry, h.retryRun)
	receipt := endpoint.New("send-receipt", http.MethodPost, api.Prefix+"/runs/{stateKey}/receipt", "Say what an external agent did after the decision", authn.RoleAgent)
	receipt.Description = "The same receipt can be sent again; another one for the same run is rejected. Reconciliation compares it with the decision: see docs/external-agents.md."
	receipt.MaxBodyBytes = limits.MaxAnswerBytes + 4096
	huma.Register(to, receipt, h.sendReceipt)
}

// cancelRun cancels a run. Repeating it changes nothing and is not an error.
func (h *Handlers) cancelRun(ctx context.Context, in *keyInput) (*struct{}, error) {
	account := endpoint.Principal(ctx).Account
	err := h.Executor.Cancel(ctx, account, in.StateKey, endpoint.Principal(ctx).From())
	if errors.Is(err, executor.ErrRunEnded) {
		if view, readErr := h.Executor.GetRun(ctx, account, in.StateKey); readErr == nil && view.Status == store.StatusCancelled {
			return nil, nil
		}
	}
	return nil, problems.OrNil(err)
}

// retryRun resumes a parked or failed run. Repeating it changes nothing and is not an error, so a
// client without a response can send it again.
func (h *Handlers) retryRun(ctx context.Context, in *keyInput) (*struct{}, error) {
	account := endpoint.Principal(ctx).Account
	err := h.Executor.Retry(ctx, account, in.StateKey, endpoint.Principal(ctx).From())
	if errors.Is(err, executor.ErrNotRetryable) {
		if resumed, readErr := h.hasResumed(ctx, account, in.StateKey); readErr == nil && resumed {
			return nil, nil
		}
	}
	return nil, problems.OrNil(err)
}

// hasResumed reports whether a run was parked or failed and has been resumed since.
func (h *Handlers) hasResumed(ctx context.Context, account, stateKey string) (bool, error) {
	view, err := h.Executor.GetRun(ctx, account, stateKey)
	switch {
	case err != nil:
		return false, err
	case view.Status == store.StatusParked, view.Status == store.StatusFailed, view.Status == store.StatusCancelled, view.Status == store.StatusSuperseded:
		return false, nil // or it was cancelled while parked
	}
	for after := int64(0); ; {
		events, err := h.Executor.Events(ctx, account, view.ID, after)
		if err != nil || len(events) == 0 {
			return false, err
		}
		for _, event := range events {
			if event.Kind == store.EventParked || event.Kind == store.EventKind(store.StatusFailed) {
				return true, nil
			}
			after = event.Seq
		}
	}
}

func (h *Handlers) listRuns(ctx context.Context, in *runsInput) (*endpoint.Page[api.Run], error) {
	// one more shows whether there is a next page
	filter := store.RunFilter{Limit: endpoint.PageSize(in.Limit) + 1}
	for _, status := range in.Status {
		stored := store.Status(status)
		if status == api.StatusExpired {
			stored = store.StatusFailed
		}
		if !slices.Contains(filter.Status, stored) {
			filter.Status = append(filter.Status, stored)
		}
	}
	if in.Graph != "" {
		var err error
		if filter.Provider, filter.Graph, err = executor.ParseGraphID(in.Graph); err != nil {
			return nil, problems.Of(err)
		}
	}
	if err := endpoint.ReadCursor(in.Cursor, &filter.Before); err != nil {
		return nil, err
	}
	runs, err := h.Executor.ListRuns(ctx, endpoint.Principal(ctx).Account, filter)
	if err != nil {
		return nil, problems.Of(err)
	}
	// the store does not distinguish them, so a page may have fewer items
	var expiredErr error
	page, err := endpoint.Paged(runs, sizeOfRunPage(runs, endpoint.PageSize(in.Limit)), func(r store.Run) api.Run {
		run := runOf(r)
		expired, err := h.Executor.HasExpired(ctx, r)
		if expired {
			run.Status = api.StatusExpired
		}
		expiredErr = cmp.Or(expiredErr, err)
		return run
	}, func(r store.Run) any { return store.RunPosition{Created: r.Created, ID: r.ID} })
	if expiredErr != nil {
		return nil, problems.Of(expiredErr)
	}
	if err == nil && len(in.Status) > 0 {
		page.Body.Items = slices.DeleteFunc(page.Body.Items, func(r api.Run) bool { return !slices.Contains(in.Status, r.Status) })
	}
	return page, err
}

// maxFailed is how many failed runs a page has: whether one has expired takes two reads.
const maxFailed = 100

// sizeOfRunPage returns how many of the runs belong to a page.
func sizeOfRunPage(runs []store.Run, limit int) int {
	failed := 0
	for n, r := range runs[:min(limit, len(runs))] {
		if r.Status != store.StatusFailed {
			continue
		}
		if failed++; failed > maxFailed {
			return n
		}
	}
	return limit
}

func (h *Handlers) getRun(ctx context.Context, in *keyInput) (*runOutput, error) {
	view, err := h.Executor.GetRun(ctx, endpoint.Principal(ctx).Account, in.StateKey)
	if err != nil {
		return nil, problems.Of(err)
	}
	out := &runOutput{Body: RunView{Run: runOf(view.Run), Requests: []api.Request{}, Problem: runProblemOf(endpoint.Principal(ctx), view)}}
	shown, outcome, err := h.Visibility.Run(endpoint.Principal(ctx), view)
	if err != nil {
		return nil, problems.Of(err)
	}
	if outcome != nil {
		out.Body.Outcome = &outcomes.Outcome{Outcome: outcome}
		if failed, ok := outcome.(fermata.Failed); ok && view.Status == store.StatusFailed && failed.Code == api.StatusExpired {
			out.Body.Status = api.StatusExpired
		}
	}
	for _, q := range shown {
		out.Body.Requests = append(out.Body.Requests, visibility.Masked(endpoint.Principal(ctx), q, h.Visibility.Request(q)))
	}
	if len(shown) < len(view.Interrupts) { // the receipt is about a request that the caller may not see
		return out, nil
	}
	receipt, err := h.Executor.ReceiptOf(ctx, view.Run)
	if err != nil {
		return nil, problems.Of(err)
	}
	if receipt != nil {
		body := receiptOf(*receipt)
		out.Body.Receipt = &body
	}
	return out, nil
}

// runProblemOf returns the problem of a run as the caller may see it.
func runProblemOf(me authn.Principal, view executor.RunView) *api.RunProblem {
	p := view.Problem
	if p == nil {
		return nil
	}
	shown := &api.RunProblem{Code: p.Code, Message: sanitize.Text(p.Message), Retryable: view.Status == store.StatusParked || view.Status == store.StatusFailed && !p.Final}
	if me.Has(authn.RoleAdmin) {
		shown.Detail = sanitize.Text(p.Detail)
	}
	return shown
}

type receiptInput struct {
	StateKey string `path:"stateKey" maxLength:"512"`
	Body     api.SendReceipt
}

type receiptOutput struct{ Body api.Receipt }

func receiptOf(r executor.Receipt) api.Receipt {
	return api.Receipt{SendReceipt: api.SendReceipt{Digest: r.Digest, Outcome: r.Outcome, Result: r.Result}, By: r.By, At: r.At}
}

// sendReceipt stores what an external agent did. Repeating it changes nothing.
func (h *Handlers) sendReceipt(ctx context.Context, in *receiptInput) (*receiptOutput, error) {
	me := endpoint.Principal(ctx)
	sent := executor.Receipt{Digest: in.Body.Digest, Outcome: in.Body.Outcome, Result: in.Body.Result}
	receipt, err := h.Executor.RecordReceipt(ctx, me.Account, in.StateKey, sent, me.From())
	if err != nil {
		return nil, problems.Of(err)
	}
	return &receiptOutput{Body: receiptOf(receipt)}, nil
}
