package executor

import (
	"context"
	"iter"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/await"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/view"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// RunView is a run as its account may see it.
type RunView = view.RunView

// RequestView is a request as its account may see it.
type RequestView = docs.RequestView

// SettledRequest is a request that was answered, has expired, or was withdrawn.
type SettledRequest = view.SettledRequest

// Reads are the methods of an [Executor] that read runs, requests, events and graphs. They change
// nothing.
type Reads struct {
	views     *view.Reader
	requests  *requests.Service
	personal  *requests.Personal
	providers *providers.Set
	waiter    *await.Waiter
}

// ListRuns returns runs of an account, the newest first.
func (r Reads) ListRuns(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return r.views.ListRuns(ctx, account, filter)
}

// GetRun returns the newest run of a state key, with its outcome and its requests.
func (r Reads) GetRun(ctx context.Context, account, stateKey string) (RunView, error) {
	return r.views.GetRun(ctx, account, stateKey)
}

// HasExpired reports whether a run failed because its request expired.
func (r Reads) HasExpired(ctx context.Context, run store.Run) (bool, error) {
	return r.views.HasExpired(ctx, run)
}

// RunOutcome returns the outcome of a run by its id, also if another run has its state key now.
func (r Reads) RunOutcome(ctx context.Context, account, run string) (fermata.Outcome, error) {
	return r.waiter.RunOutcome(ctx, account, run)
}

// ListRequests returns the requests of an account, the oldest first.
func (r Reads) ListRequests(ctx context.Context, account string, filter store.InboxFilter) ([]RequestView, error) {
	return r.views.ListRequests(ctx, account, filter)
}

// GetRequest returns one request, or store.ErrNotFound.
func (r Reads) GetRequest(ctx context.Context, account, id string) (RequestView, error) {
	return r.views.GetRequest(ctx, account, id)
}

// RequestDocument returns the votes, comments and state of a request, or store.ErrNotFound.
func (r Reads) RequestDocument(ctx context.Context, account, id string) (desk.Request, error) {
	return r.requests.RequestDocument(ctx, account, id)
}

// CountOpenRequests counts the open requests of an account, up to limit. Questions of kinds for end
// users are not counted.
func (r Reads) CountOpenRequests(ctx context.Context, account string, limit int) (int, error) {
	return r.views.CountOpenRequests(ctx, account, limit)
}

// ListSettled returns the requests of an account that were settled after a cursor, in order and
// each once, and the cursor for the next call; "" is the beginning. Clients that cannot be called
// poll it. A page may be empty although there are more requests: there are no more when the cursor
// stays the same. An answer that cannot be decrypted is marked.
func (r Reads) ListSettled(ctx context.Context, account, after string, limit int) ([]SettledRequest, string, error) {
	return r.views.ListSettled(ctx, account, after, limit)
}

// Deadlines returns the deadlines of a run's requests, by id. Requests without a deadline are left
// out.
func (r Reads) Deadlines(ctx context.Context, account, run string) (map[string]time.Time, error) {
	return r.views.Deadlines(ctx, account, run)
}

// EndUser returns whom the agent of a run talks to, in a conversation; "" if there is none.
func (r Reads) EndUser(ctx context.Context, account, run string) (string, error) {
	return r.views.EndUser(ctx, account, run)
}

// RunRequests returns the graph id of a run and the ids of its requests, or [ErrRunNotFound].
func (r Reads) RunRequests(ctx context.Context, account, run string) (graph string, ids []string, err error) {
	return r.views.RunRequests(ctx, account, run)
}

// Events returns the events of a run after a number, or [ErrRunNotFound].
func (r Reads) Events(ctx context.Context, account, run string, after int64) ([]store.Event, error) {
	return r.views.Events(ctx, account, run, after)
}

// FollowEvents returns the events of a run as they happen, after the event last; the zero event is
// before the first one, and so is an event of an earlier run with the same state key. It ends after
// the run has ended, and when ctx ends.
func (r Reads) FollowEvents(ctx context.Context, account, stateKey string, last store.Event) iter.Seq2[store.Event, error] {
	return r.views.FollowEvents(ctx, account, stateKey, last)
}

// WatchRun returns hints that there may be new events of a run, here or in another process. A hint
// may be lost, so callers must also poll. stop has to be called.
func (r Reads) WatchRun(account, run string) (changed <-chan struct{}, stop func()) {
	return r.views.WatchRun(account, run)
}

// RequestChange is a change of a request that its viewers should see.
type RequestChange = view.RequestChange

// RequestChanges returns changes of the requests of an account after a number, in order, and the
// number for the next call. There are no more when the number stays the same.
func (r Reads) RequestChanges(ctx context.Context, account string, after int64) (changes []RequestChange, next int64, err error) {
	return r.views.RequestChanges(ctx, account, after)
}

// LastChange returns the number of the newest change of an account, for [Reads.RequestChanges].
func (r Reads) LastChange(ctx context.Context, account string) (int64, error) {
	return r.views.LastChange(ctx, account)
}

// WatchRequests returns hints that requests of an account may have changed, here or in another
// process. A hint may be lost, so callers must also poll. stop has to be called.
func (r Reads) WatchRequests(account string) (changed <-chan struct{}, stop func()) {
	return r.views.WatchRequests(account)
}

// Done is closed when the executor has stopped.
func (r Reads) Done() <-chan struct{} { return r.views.Done() }

// Graphs returns the graphs that can be run, by graph id.
func (r Reads) Graphs() map[string]provider.Graph { return r.providers.Graphs() }

// Graph returns a graph by its id.
func (r Reads) Graph(id string) (provider.Graph, error) { return r.providers.Graph(id) }

// Capabilities returns the capabilities of the provider of a graph; none if there is no such graph.
func (r Reads) Capabilities(graphID string) provider.Capabilities {
	p, _, err := r.providers.Find(graphID)
	if err != nil {
		return provider.Capabilities{}
	}
	return p.Capabilities()
}

// RunGraph returns the graph of the newest run of a state key, as this program has it, with marks
// at the nodes where the run waits for requests that shown accepts.
func (r Reads) RunGraph(ctx context.Context, account, stateKey string, shown func(request string) (bool, error)) (id string, g provider.Graph, err error) {
	return r.views.RunGraph(ctx, account, stateKey, shown)
}

// Routes returns the routes of requests by name. The one named "default" always exists.
func (r Reads) Routes() map[string]desk.Route { return r.requests.Routes() }

// MaySee reports whether a caller may see a request: see [desk.Request.VisibleTo].
func (r Reads) MaySee(doc desk.Request, viewer desk.Viewer) (bool, error) {
	return r.requests.MaySee(doc, viewer)
}

// MayDecide returns nil if a person's decision on a request would count, or an error that desk.Code
// knows.
func (r Reads) MayDecide(doc desk.Request, person string) error {
	return r.requests.MayDecide(doc, person)
}

// SavedView is a search that a person has saved.
type SavedView = requests.SavedView

// Passkeys returns what WritePasskeys has stored for a member, and its revision; 0 if there is
// nothing.
func (r Reads) Passkeys(ctx context.Context, account, member string) (data []byte, revision int64, err error) {
	return r.personal.Passkeys(ctx, account, member)
}

// SavedViews returns the saved views of a person.
func (r Reads) SavedViews(ctx context.Context, account, person string) ([]SavedView, error) {
	return r.personal.SavedViews(ctx, account, person)
}

// GroupsOf returns the required groups of a request that a person belongs to.
func (r Reads) GroupsOf(doc desk.Request, person string) ([]string, error) {
	return r.requests.GroupsOf(doc, person)
}

// AllowedVerbs returns the verbs of a request that a person may use, or an error that desk.Code
// knows if none of their decisions would count.
func (r Reads) AllowedVerbs(doc desk.Request, person string) ([]requirement.Verb, error) {
	return r.requests.AllowedVerbs(doc, person)
}

// Delegates returns the people to whom a person can delegate a request. all is false if there may
// be others whom the directory does not list.
func (r Reads) Delegates(ctx context.Context, doc desk.Request, person string) (people []string, all bool, err error) {
	return r.requests.Delegates(ctx, doc, person)
}

// Preview returns what the decisions of a person on an open request would cause now.
func (r Reads) Preview(ctx context.Context, q RequestView, person desk.Actor) ([]desk.Consequence, error) {
	return r.requests.Preview(ctx, q, person)
}

// ParseGraphID splits a graph id: "inproc:review" is the graph review of the provider inproc.
func ParseGraphID(id string) (provider, graph string, err error) { return providers.ParseGraphID(id) }
