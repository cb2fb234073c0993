package tui

import (
	"context"
	"errors"
	"net/http"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
)

// apiCalls are the server calls of the model. Each returns at once; the result arrives as a
// message.
type apiCalls struct {
	poll func(ask pollRequest) tea.Cmd                                     // → pollResult
	send func(id string, decide api.Decide) tea.Cmd                        // → sendResult
	act  func(id, act string, body api.RequestAction, name string) tea.Cmd // → sendResult
	view func(report viewReport) tea.Cmd                                   // → viewResult
	// reveal returns the masked values of a request.
	reveal func(id string) tea.Cmd                        // → revealResult
	after  func(after time.Duration, msg tea.Msg) tea.Cmd // → msg
}

// pollRequest asks for the list and the open request; the first one also for the principal.
type pollRequest struct {
	seq  int
	open string
	me   bool
}

// pollResult is the current state of the server.
type pollResult struct {
	seq   int // of the pollRequest, to recognize late results
	items []api.Request
	more  bool
	me    *api.Me // if requested
	// open is the open request, or openErr why there is none. The list has less data.
	open    *api.Request
	openErr error
	err     error
}

// viewReport tells the server what is on the screen.
type viewReport struct {
	id, shown string
	rendering api.Rendering
}

// viewResult says whether the server has recorded it. A failure does not matter: the decision does
// not name the rendering then.
type viewResult struct {
	viewReport
	recorded bool
}

// sendResult is the result of a decision or an action.
type sendResult struct {
	resumeID string // the resume id; that of an action is local
	outcome  fermata.Outcome
	r        *api.Request // the request after a vote that did not decide it
	err      error
}

// revealResult is a request with its masked values, or why they are not shown.
type revealResult struct {
	id  string
	r   api.Request
	err error
}

type (
	pollDue struct{ seq int }
	tick    struct{}
)

const (
	pollTimeout = 15 * time.Second
	sendTimeout = 90 * time.Second // the server waits a while for the outcome
)

func newCalls(ctx context.Context, config Config) apiCalls {
	return apiCalls{
		poll: func(ask pollRequest) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, pollTimeout)
				defer cancel()
				return fetchPoll(ctx, config, ask)
			}
		},
		send: func(id string, decide api.Decide) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, sendTimeout)
				defer cancel()
				outcome, err := config.Server.Decide(ctx, id, decide)
				result := sendResult{resumeID: decide.ResumeID, outcome: outcome, err: err}
				if _, waits := outcome.(fermata.NeedsInput); waits && err == nil {
					if r, err := config.Server.Request(ctx, id); err == nil { // otherwise the count is not shown
						result.r = &r
					}
				}
				return result
			}
		},
		act: func(id, act string, body api.RequestAction, name string) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, sendTimeout)
				defer cancel()
				_, err := config.Server.Act(ctx, id, act, body)
				return sendResult{resumeID: name, err: err}
			}
		},
		view: func(report viewReport) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, pollTimeout)
				defer cancel()
				_, err := config.Server.Act(ctx, report.id, client.ActionView, api.RequestAction{Shown: report.shown, Rendering: &report.rendering})
				return viewResult{report, err == nil}
			}
		},
		reveal: func(id string) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, pollTimeout)
				defer cancel()
				r, err := config.Server.Reveal(ctx, id)
				return revealResult{id: id, r: r, err: err}
			}
		},
		after: func(after time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(after, func(time.Time) tea.Msg { return msg })
		},
	}
}

// maxPage is the maximum page size of a server; larger ones are rejected.
const maxPage = 1000

// FetchUpTo reads as many items of a list as the query's limit. A page of the server has fewer if
// they are large, so it reads several pages.
func FetchUpTo[Item any](ctx context.Context, list func(context.Context, client.Query) (api.Page[Item], error), query client.Query) (all api.Page[Item], err error) {
	all.Items = []Item{}
	for left := query.Limit; ; {
		query.Limit = min(left, maxPage)
		page, err := list(ctx, query)
		if err != nil {
			return all, err
		}
		all.Items, all.Next = append(all.Items, page.Items...), page.Next
		left -= len(page.Items)
		if page.Next == "" || left <= 0 || len(page.Items) == 0 {
			return all, nil
		}
		query.Cursor = page.Next
	}
}

// fetchPoll requests the list and the open request.
func fetchPoll(ctx context.Context, config Config, ask pollRequest) pollResult {
	page, err := FetchUpTo(ctx, config.Server.Requests, client.Query{State: "pending", Kind: config.Kind, Limit: config.Limit})
	result := pollResult{seq: ask.seq, items: page.Items, more: page.Next != "", err: err}
	if err == nil && ask.me {
		if me, err := config.Server.Me(ctx); err == nil { // otherwise the name is not shown
			result.me = &me
		}
	}
	if err != nil || ask.open == "" {
		return result
	}
	r, err := config.Server.Request(ctx, ask.open)
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusNotFound {
		result.openErr = err
	} else if err != nil {
		result.err = err
	} else {
		result.open = &r
	}
	return result
}
