package runs

import (
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/endpoint"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/server/visibility"
	"github.com/fermata-go/fermata/internal/store"
)

// admitStart rejects a start with invalid input, or if the account has too many runs or requests.
func (h *Handlers) admitStart(ctx context.Context, request executor.RunRequest) error {
	if err := h.Executor.CheckInput(ctx, request); err != nil {
		return startProblem(request, err)
	}
	if err := h.checkStartQuota(ctx, request); err != nil {
		return err
	}
	return h.takeAgentRequest(ctx, request)
}

// takeAgentRequest rejects a request of an agent that has created too many. A repetition does not
// count.
func (h *Handlers) takeAgentRequest(ctx context.Context, request executor.RunRequest) error {
	limit := h.Limits.RequestsPerAgent
	if limit <= 0 || request.Graph != visibility.ExternalGraph {
		return nil
	}
	if view, err := h.Executor.GetRun(ctx, request.Account, request.StateKey); err == nil && executor.IsRepeat(request, view.Run) {
		return nil
	}
	wait, err := h.Executor.TakeAgentRequest(ctx, request.Account, request.Actor, limit)
	if err != nil {
		return problems.Of(err)
	}
	if wait > 0 {
		p := quotaExceeded("agent_limit", "requests_per_agent", "%d requests in one hour are allowed", limit)
		p.RetryAfter = wait
		return p
	}
	return nil
}

// checkStartQuota rejects a start if the account has too many open requests or active runs.
func (h *Handlers) checkStartQuota(ctx context.Context, request executor.RunRequest) error {
	problem := h.TakeStart(ctx, request.Account)
	if problem == nil {
		return nil
	}
	if view, err := h.Executor.GetRun(ctx, request.Account, request.StateKey); err == nil && (view.Status.Active() || executor.IsRepeat(request, view.Run)) {
		return nil // already started: this is a repeated request
	}
	return problem
}

// TakeStart uses one start of the quota of an account, and counts it if necessary. It returns a
// problem if the account has too many open requests or active runs.
func (h *Handlers) TakeStart(ctx context.Context, account string) error {
	for !h.quotas.Take(account, time.Now()) {
		l, owner := h.quotas.Join(account)
		if owner {
			return h.countQuota(ctx, account, l)
		}
		select {
		case <-l.Done:
		case <-ctx.Done():
			return problems.Of(ctx.Err())
		}
		if p, ok := errors.AsType[*problems.Problem](l.Err); ok && p.Limit != "" {
			return p // otherwise the count failed for its caller, who may have disconnected
		}
	}
	return nil
}

// countQuota counts for all waiting callers. If it panics, they count for themselves.
func (h *Handlers) countQuota(ctx context.Context, account string, l *quotaCount) (err error) {
	more, err := 0, errQuotaUnknown
	defer func() { h.quotas.Finish(account, l, more, err, time.Now()) }()
	more, err = h.remainingStarts(ctx, account)
	return err
}

var errQuotaUnknown = errors.New("runs: quota count failed")

// remainingStarts returns how many more runs an account may start, or why it may not start any.
func (h *Handlers) remainingStarts(ctx context.Context, account string) (more int, err error) {
	open, err := h.Executor.CountOpenRequests(ctx, account, h.Limits.OpenRequests)
	if err != nil {
		return 0, problems.Of(err)
	}
	if open >= h.Limits.OpenRequests {
		return 0, quotaExceeded("too_many_open", "open_requests", "%d requests are open; the limit is %d", open, h.Limits.OpenRequests)
	}
	runs, err := h.countActive(ctx, account)
	if err != nil {
		return 0, problems.Of(err)
	}
	if runs >= h.Limits.ActiveRuns {
		return 0, quotaExceeded("too_many_runs", "active_runs", "%d runs are active; the limit is %d", runs, h.Limits.ActiveRuns)
	}
	return min(h.Limits.OpenRequests-open, h.Limits.ActiveRuns-runs), nil
}

// countActive counts the ready and running runs of an account up to the limit, page by page.
func (h *Handlers) countActive(ctx context.Context, account string) (count int, err error) {
	filter := store.RunFilter{Status: []store.Status{store.StatusReady, store.StatusRunning}}
	for count < h.Limits.ActiveRuns {
		filter.Limit = min(h.Limits.ActiveRuns-count, endpoint.MaxPage)
		runs, err := h.Executor.ListRuns(ctx, account, filter)
		if err != nil {
			return 0, err
		}
		count += len(runs)
		if len(runs) < filter.Limit {
			break
		}
		last := runs[len(runs)-1]
		filter.Before = store.RunPosition{Created: last.Created, ID: last.ID}
	}
	return count, nil
}

// quotaExceeded is the problem of an exhausted quota.
func quotaExceeded(code, limit, detail string, args ...any) *problems.Problem {
	p := problems.New(code, detail, args...)
	p.RetryAfter, p.Limit = quotaRetryAfter, limit
	return p
}

// quotaRetryAfter is the suggested retry delay: people do not decide faster.
const quotaRetryAfter = 30 * time.Second
