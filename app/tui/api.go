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

// apiCalls are what the model does outside of itself. Each returns at once; what comes of it is a message.
type apiCalls struct {
	poll  func(ask pollRequest) tea.Cmd                                     // → polled
	send  func(id string, decide api.Decide) tea.Cmd                        // → sent
	act   func(id, act string, body api.RequestAction, name string) tea.Cmd // → sent
	view  func(id, shown string) tea.Cmd                                    // nothing comes of it
	after func(after time.Duration, msg tea.Msg) tea.Cmd                    // → msg
}

// pollRequest is what the inbox wants to know: the list, and what became of the request on the screen; once also for whom it is.
type pollRequest struct {
	seq  int
	open string
	me   bool
}

// pollResult is what the server says now.
type pollResult struct {
	seq   int // of the question, so that a late answer can be told from the newest
	items []api.Request
	more  bool
	me    *api.Me // if it was asked for
	// open is the request on the screen, or why there is none. The list knows less of it.
	open    *api.Request
	openErr error
	err     error
}

// sendResult is what came of a decision, or of an act.
type sendResult struct {
	resumeID string // the name under which it was sent; that of an act is known here only
	outcome  fermata.Outcome
	err      error
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
				return sendResult{resumeID: decide.ResumeID, outcome: outcome, err: err}
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
		view: func(id, shown string) tea.Cmd {
			return func() tea.Msg {
				ctx, cancel := context.WithTimeout(ctx, pollTimeout)
				defer cancel()
				_, _ = config.Server.Act(ctx, id, client.ActionView, api.RequestAction{Shown: shown}) // whoever looks need not know what comes of it
				return nil
			}
		},
		after: func(after time.Duration, msg tea.Msg) tea.Cmd {
			return tea.Tick(after, func(time.Time) tea.Msg { return msg })
		},
	}
}

// maxPage is how many items a server gives at once; who asks for more is refused.
const maxPage = 1000

// FetchUpTo asks a list for as many items as a query says. A page of the server has fewer if they are large: whoever looked at one page only would not see what is
// behind a few of them.
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

// fetchPoll asks for the list, and for the request on the screen.
func fetchPoll(ctx context.Context, config Config, ask pollRequest) pollResult {
	page, err := FetchUpTo(ctx, config.Server.Requests, client.Query{State: "pending", Kind: config.Kind, Limit: config.Limit})
	said := pollResult{seq: ask.seq, items: page.Items, more: page.Next != "", err: err}
	if err == nil && ask.me {
		if me, err := config.Server.Me(ctx); err == nil { // or it is only not shown
			said.me = &me
		}
	}
	if err != nil || ask.open == "" {
		return said
	}
	r, err := config.Server.Request(ctx, ask.open)
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Status == http.StatusNotFound {
		said.openErr = err
	} else if err != nil {
		said.err = err
	} else {
		said.open = &r
	}
	return said
}
