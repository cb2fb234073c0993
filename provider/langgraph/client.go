package langgraph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/provider"
)

// statusError is a response with an error status. It has no text of the server, which may contain
// the thread id or data of the run.
type statusError struct {
	op     string
	status int
	// busy reports that another run of the thread is in progress: 409 of the Python server, 422 of
	// the JavaScript server.
	busy bool
}

func (e *statusError) Error() string {
	return fmt.Sprintf("langgraph: %s: the server returned status %d", e.op, e.status)
}

// ForLog implements [provider.LogError].
func (e *statusError) ForLog() string { return e.Error() }

// Unwrap reports errors that only an operator can correct.
func (e *statusError) Unwrap() error {
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		return provider.ErrPark
	}
	return nil
}

// connError is a failed connection. The error of net/http has the URL with the thread id, so only
// its cause is kept.
type connError struct {
	op  string
	err error
}

func (e *connError) Error() string { return "langgraph: " + e.op + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *connError) Unwrap() error { return e.err }

// ForLog implements [provider.LogError].
func (e *connError) ForLog() string { return e.Error() }

func connectionError(op string, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return &connError{op, err}
}

func hasStatus(err error, status int) bool {
	failed, ok := errors.AsType[*statusError](err)
	return ok && failed.status == status
}

func isBusy(err error) bool {
	failed, ok := errors.AsType[*statusError](err)
	return ok && failed.busy
}

// client calls the REST API of a LangGraph server.
type client struct {
	base   string
	apiKey string
	http   *http.Client
}

func (c *client) request(ctx context.Context, op, method, path string, body any, header http.Header) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, &connError{op, err}
		}
		content = bytes.NewReader(data)
	}
	if err := checkPath(path); err != nil {
		return nil, &connError{op, err}
	}
	request, err := http.NewRequestWithContext(ctx, method, c.base+path, content)
	if err != nil {
		return nil, connectionError(op, err)
	}
	for name := range header {
		request.Header.Set(name, header.Get(name))
	}
	request.Header.Set("User-Agent", "fermata")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.apiKey != "" {
		request.Header.Set("X-Api-Key", c.apiKey)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, connectionError(op, err)
	}
	if response.StatusCode/100 == 2 {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	defer closeLater(response).Stop()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4096))
	failed := &statusError{op: op, status: response.StatusCode}
	failed.busy = (failed.status == http.StatusConflict || failed.status == http.StatusUnprocessableEntity) &&
		(strings.Contains(string(text), "already running") || strings.Contains(string(text), "busy"))
	return nil, failed
}

// call makes a call with a short JSON response. out may be nil.
func (c *client) call(ctx context.Context, op, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := c.request(ctx, op, method, path, body, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	if err != nil {
		return connectionError(op, err)
	}
	if len(data) > maxBody {
		return &connError{op, errTooLarge}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); errors.Is(err, errTooMany) {
		return &connError{op, errTooMany}
	} else if err != nil {
		return &connError{op, errors.New("the response is not the expected JSON")}
	}
	return nil
}

// threadInfo is a thread.
type threadInfo struct {
	ID       string `json:"thread_id"`
	Status   string `json:"status"`
	Metadata struct {
		Graph     string `json:"graph_id"`
		Assistant string `json:"assistant_id"`
		Fermata   string `json:"fermata"`
	} `json:"metadata"`
	Interrupts dict[list[rawInterrupt]] `json:"interrupts"`
}

// rawInterrupt is an interrupt as the server sends it.
type rawInterrupt struct {
	ID             string          `json:"id"`
	Value          json.RawMessage `json:"value"`
	ResponseSchema json.RawMessage `json:"response_schema"`
}

// threadState is the newest checkpoint of a thread.
type threadState struct {
	Values     json.RawMessage `json:"values"`
	Next       list[string]    `json:"next"`
	Tasks      list[task]      `json:"tasks"`
	Checkpoint checkpointRef   `json:"checkpoint"`
	Parent     *checkpointRef  `json:"parent_checkpoint"`
	Metadata   struct {
		Source string `json:"source"`
	} `json:"metadata"`
}

type checkpointRef struct {
	ID string `json:"checkpoint_id"`
}

type task struct {
	Name       string             `json:"name"`
	Interrupts list[rawInterrupt] `json:"interrupts"`
	State      json.RawMessage    `json:"state"`
}

// nodeOf returns the names of the nodes that raised an interrupt, from the root graph inwards.
func nodeOf(tasks []task, id string) []string {
	for _, each := range tasks {
		for _, i := range each.Interrupts {
			if i.ID != id {
				continue
			}
			path := []string{each.Name}
			var below threadState
			if len(each.State) > 0 && len(each.State) <= maxNested && json.Unmarshal(each.State, &below) == nil {
				path = append(path, nodeOf(below.Tasks, id)...)
			}
			return path
		}
	}
	return nil
}

// interrupts lists the interrupts of the state, each once. It may contain interrupts that were
// answered while others of the same step are open.
func (s *threadState) interrupts() []rawInterrupt {
	var all []rawInterrupt
	known := make(map[string]bool)
	for _, each := range s.Tasks {
		for _, i := range each.Interrupts {
			if !known[i.ID] {
				known[i.ID] = true
				all = append(all, i)
			}
		}
	}
	return all
}

// runInfo is a run of a thread: one call of the graph.
type runInfo struct {
	ID       string `json:"run_id"`
	Status   string `json:"status"`
	Metadata struct {
		// Keys say which steps of ours the run executes.
		Keys list[string] `json:"fermata_keys"`
	} `json:"metadata"`
}

func (r *runInfo) active() bool { return r.Status == "pending" || r.Status == "running" }

func (c *client) createThread(ctx context.Context, id string) error {
	return c.call(ctx, "creating the thread", http.MethodPost, "/threads", map[string]any{
		"thread_id": id, "if_exists": "do_nothing", "metadata": map[string]string{"fermata": markOwned},
	}, nil)
}

func (c *client) thread(ctx context.Context, id string) (t threadInfo, err error) {
	err = c.call(ctx, "reading the thread", http.MethodGet, "/threads/"+url.PathEscape(id), nil, &t)
	return t, err
}

func (c *client) state(ctx context.Context, id string) (s threadState, err error) {
	err = c.call(ctx, "reading the state", http.MethodGet, "/threads/"+url.PathEscape(id)+"/state?subgraphs=true", nil, &s)
	return s, err
}

// pageSize is the number of elements of a page of a list.
const pageSize = 100

// eachPage calls page with increasing offsets until it returns fewer elements than a page has.
func eachPage(op string, page func(offset int) (elements int, err error)) error {
	for n := range maxPages {
		if elements, err := page(n * pageSize); err != nil || elements < pageSize {
			return err
		}
	}
	return &connError{op, errPages}
}

// runs returns all runs of a thread.
func (c *client) runs(ctx context.Context, thread string) (all []runInfo, err error) {
	const op = "listing the runs"
	err = eachPage(op, func(offset int) (int, error) {
		var more list[runInfo]
		path := fmt.Sprintf("/threads/%s/runs?limit=%d&offset=%d", url.PathEscape(thread), pageSize, offset)
		err := c.call(ctx, op, http.MethodGet, path, nil, &more)
		all = append(all, more...)
		return len(more), err
	})
	return all, err
}

func (c *client) run(ctx context.Context, thread, run string) (r runInfo, err error) {
	err = c.call(ctx, "reading the run", http.MethodGet, "/threads/"+url.PathEscape(thread)+"/runs/"+url.PathEscape(run), nil, &r)
	return r, err
}

const opSearch = "searching paused threads"

// search returns a page of the paused threads, the oldest first.
func (c *client) search(ctx context.Context, offset int) (page list[threadInfo], err error) {
	err = c.call(ctx, opSearch, http.MethodPost, "/threads/search", map[string]any{
		"status": "interrupted", "limit": pageSize, "offset": offset, "sort_by": "created_at", "sort_order": "asc",
	}, &page)
	return page, err
}

// graphs returns the names of the graphs, sorted. Each graph has at least one assistant.
func (c *client) graphs(ctx context.Context) (names []string, err error) {
	const op = "listing assistants"
	err = eachPage(op, func(offset int) (int, error) {
		var page list[struct {
			Graph string `json:"graph_id"`
		}]
		err := c.call(ctx, op, http.MethodPost, "/assistants/search", map[string]any{"limit": pageSize, "offset": offset}, &page)
		for _, a := range page {
			names = append(names, a.Graph)
		}
		return len(page), err
	})
	slices.Sort(names)
	return slices.Compact(names), err
}

// updateState changes the values of a paused thread. asNode "" is the node that ran last.
func (c *client) updateState(ctx context.Context, thread string, values json.RawMessage, asNode string) error {
	body := map[string]any{"values": values}
	if asNode != "" {
		body["as_node"] = asNode
	}
	return c.call(ctx, "updating the state", http.MethodPost, "/threads/"+url.PathEscape(thread)+"/state", body, nil)
}

// cancelRun stops a run that is in progress.
func (c *client) cancelRun(ctx context.Context, thread, run string) error {
	return c.call(ctx, "cancelling the run", http.MethodPost, "/threads/"+url.PathEscape(thread)+"/runs/"+url.PathEscape(run)+"/cancel?wait=0&action=interrupt", map[string]any{}, nil)
}

func (c *client) deleteThread(ctx context.Context, thread string) error {
	return c.call(ctx, "deleting the thread", http.MethodDelete, "/threads/"+url.PathEscape(thread), nil, nil)
}
