package executor

import (
	"context"
	"io"
	"iter"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/analytics"
	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/policy/replay"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Act does something with a request that decides nothing: claim it, say that one looks at it, comment, delegate, snooze, ask back. It
// returns the request as it is then, store.ErrNotFound if there is none, or an error of package desk.
func (e *Executor) Act(ctx context.Context, account, id string, act desk.Command) (desk.Request, error) {
	return e.requests.Act(ctx, account, id, act)
}

// RunRequest returns the request of a question: who has voted, commented and so on. It returns store.ErrNotFound if there is none.
func (e *Executor) RequestDocument(ctx context.Context, account, id string) (desk.Request, error) {
	return e.requests.RequestDocument(ctx, account, id)
}

// Escape gives up the task that a question is part of: the run is cancelled, and its other requests are withdrawn.
func (e *Executor) Abandon(ctx context.Context, account, id string, act desk.Abandon) error {
	return e.requests.Abandon(ctx, account, id, act)
}

// AuditLines returns lines of an account's audit log, exactly as they are stored.
func (e *Executor) AuditLines(ctx context.Context, account string, after int64, limit int) ([]store.AuditLine, error) {
	return e.admin.AuditLines(ctx, account, after, limit)
}

// Checkpoints returns the signed checkpoints of an account's log that cover more than so many records, the smallest first, and the public key of this
// installation; "" if it does not sign.
func (e *Executor) AuditCheckpoints(ctx context.Context, account string, after int64, limit int) (list []audit.Checkpoint, public string, err error) {
	return e.admin.AuditCheckpoints(ctx, account, after, limit)
}

// Overview looks at the whole store. It costs a count of the open questions: do not do it too often.
func (e *Executor) Overview(ctx context.Context) (o Overview, err error) {
	return e.admin.Overview(ctx)
}

// Past is what became of a run whose state key another run has by now, or none: it need not have been superseded.
func (e *Executor) RunOutcome(ctx context.Context, account, run string) (fermata.Outcome, error) {
	return e.waiter.RunOutcome(ctx, account, run)
}

// Events returns the events of a run after a number. It returns [ErrRunNotFound] if the run is not there, perhaps because it was erased meanwhile.
func (e *Executor) Events(ctx context.Context, account, run string, after int64) ([]store.Event, error) {
	return e.views.Events(ctx, account, run, after)
}

// Changes returns hints that there may be new events of a run, here or in another process. A hint may be lost: look now and then without one.
// stop has to be called.
func (e *Executor) WatchRun(account, run string) (changed <-chan struct{}, stop func()) {
	return e.views.WatchRun(account, run)
}

// Done is closed when the executor has stopped.
func (e *Executor) Done() <-chan struct{} {
	return e.views.Done()
}

// Deadlines says until when the questions of a run can be answered, by their id. A question without a deadline is not in it.
func (e *Executor) Deadlines(ctx context.Context, account, run string) (map[string]time.Time, error) {
	return e.views.Deadlines(ctx, account, run)
}

// Follow returns the events of a run as they happen, behind one of them; the zero event is before the first, and so is one of another run, which had the
// state key before. It ends after the run is over, and when ctx ends. It is for programs that embed the executor; whoever has other things to wait for
// meanwhile, as the server has, puts it together from Events and Changes.
func (e *Executor) FollowEvents(ctx context.Context, account, stateKey string, last store.Event) iter.Seq2[store.Event, error] {
	return e.views.FollowEvents(ctx, account, stateKey, last)
}

// Answers returns the questions of an account that were settled after a cursor, in order and each once, and the cursor for the next call; "" is the
// beginning. It is for agents that poll, because they cannot be called. A page may be empty although there are more: there are no more when the cursor stays
// the same. An answer that cannot be opened is marked, and nobody is kept from those behind it.
func (e *Executor) ListSettled(ctx context.Context, account, after string, limit int) ([]SettledRequest, string, error) {
	return e.views.ListSettled(ctx, account, after, limit)
}

// Rules returns the policy in force, or nil.
func (e *Executor) CurrentPolicy() *policy.Set {
	return e.governor.CurrentPolicy()
}

// Routes returns the routes of requests by name. The one named "default" is always there.
func (e *Executor) Routes() map[string]desk.Route {
	return e.requests.Routes()
}

// MayDecide returns nil if a person's decision on a request would count, or else an error that desk.Code knows.
func (e *Executor) MayDecide(doc desk.Request, person string) error {
	return e.requests.MayDecide(doc, person)
}

// MayDo returns the verbs of a request that are open to a person, or an error that desk.Code knows if no decision of theirs would count.
func (e *Executor) AllowedVerbs(doc desk.Request, person string) ([]desk.Verb, error) {
	return e.requests.AllowedVerbs(doc, person)
}

// ApprovedElsewhere reports whether a person's decision on an open question would not count because of a yes of theirs to something else that the run still
// asks: [Executor.AllowedVerbs] knows of those that stood when this was asked.
func (e *Executor) IsPriorApprover(ctx context.Context, q RequestView, person string) (bool, error) {
	return e.requests.IsPriorApprover(ctx, q, person)
}

// Suppose says what the rules would decide on an action, and why. It changes nothing.
func (e *Executor) ExplainAction(ctx context.Context, s HypotheticalAction) (policy.Decision, error) {
	return e.governor.ExplainAction(ctx, s)
}

// Export writes everything that is known of an account as JSON in the clear: one line for each run, and then lines with the grants and counters of the
// account, if it has any. It returns how many runs there were. What cannot be opened is left out, and named in its line; after everything else was written,
// ErrUnreadable says that there was something.
func (e *Executor) ExportAccount(ctx context.Context, account string, w io.Writer) (int, error) {
	return e.admin.ExportAccount(ctx, account, w)
}

// GrantRequest makes a grant of a request that was approved: the same action with the same arguments, at the same place and for the same requester,
// is allowed for a while without asking again. It returns ErrInvalid if the rules do not let it be remembered, or it was not approved by
// whoever wants it, and desk.ErrKeyReused if its key was used for something else.
func (e *Executor) CreateGrant(ctx context.Context, account, request string, r GrantRequest) (g Grant, err error) {
	return e.requests.CreateGrant(ctx, account, request, r)
}

// Grants lists what is remembered in an account, also what has ended.
func (e *Executor) ListGrants(ctx context.Context, account string) ([]Grant, error) {
	return e.governor.ListGrants(ctx, account)
}

// Revoke takes a grant back: the next time, people are asked again. It returns store.ErrNotFound if there is none.
func (e *Executor) RevokeGrant(ctx context.Context, account, id string, by desk.From) error {
	return e.governor.RevokeGrant(ctx, account, id, by)
}

// Graphs lists what can be run, by graph id.
func (e *Executor) Graphs() map[string]provider.Graph {
	return e.providers.Graphs()
}

// Graph returns one of them.
func (e *Executor) Graph(id string) (provider.Graph, error) {
	return e.providers.Graph(id)
}

// GraphOf returns the graph of the newest run of a state key and its id, as this program has it, with the nodes marked at which the run waits.
func (e *Executor) RunGraph(ctx context.Context, account, stateKey string) (id string, g provider.Graph, err error) {
	return e.views.RunGraph(ctx, account, stateKey)
}

// Analytics answers what came of the requests of an account. It reads all of them, page by page, and keeps what is counted of them.
func (e *Executor) Analytics(ctx context.Context, account string, query analytics.Query) (analytics.Report, error) {
	return e.admin.Analytics(ctx, account, query)
}

// Retry lets a parked run go on, on somebody's behalf; the zero From is the system. It returns ErrNotParked if the run is not parked.
func (e *Executor) Retry(ctx context.Context, account, stateKey string, by desk.From) error {
	return e.worker.Retry(ctx, account, stateKey, by)
}

// Reconcile compares what the audit log of an account says with what its runs know and which effects were begun, and returns where they do
// not agree, the worst first. Nothing is changed, and others may work meanwhile: what is told was true for as long as it took to look.
//
// It reads the log once, and each run. A run that is over is compared and forgotten where the log says so; so memory holds what the log says of runs
// that are not over, eight bytes for each of the others, and the ids of those that are gone until it says that they were erased. Where something does not agree, the log is
// read once more for each thousand of such runs.
func (e *Executor) Reconcile(ctx context.Context, account string) ([]audit.Finding, error) {
	return e.admin.Reconcile(ctx, account)
}

// NoteForbidden writes into the audit log that somebody wanted to do something with a request for which they do not have the role. There is no line if the account
// has no such request.
func (e *Executor) RecordForbidden(ctx context.Context, account, id string, name desk.CommandName, from desk.From) error {
	return e.requests.RecordForbidden(ctx, account, id, name, from)
}

// Replay applies other rules to the rulings of an account since a time, and says where they differ. Earlier rulings are read as far back as the limits of
// the rules look back. Rulings of runs that were deleted are gone.
func (e *Executor) Replay(ctx context.Context, account string, candidate *policy.Set, since time.Time) (replay.HistoryReport, error) {
	return e.governor.Replay(ctx, account, candidate, since)
}

// Check looks at every run that is not over, of all accounts, and says whether this program could go on with it, as far as that can be known
// without doing so; see [provider.Checker]. It runs and changes nothing, while others may.
func (e *Executor) CheckResumable(ctx context.Context) iter.Seq2[ResumableCheck, error] {
	return e.admin.CheckResumable(ctx)
}

// Erase ends all runs of an account and deletes everything that is known of them, and the grants and counters of the account. It returns how many runs it
// deleted, also after an error; it may be called again then. A run that cannot be deleted does not hold up the others. What cannot be opened goes as
// well, but for a run whose ref at its provider cannot. The audit log stays. It returns ErrAccountActive if the account goes on starting runs meanwhile.
func (e *Executor) EraseAccount(ctx context.Context, account string) (int, error) {
	return e.admin.EraseAccount(ctx, account)
}

// Policy returns the text of a policy by its digest: the one in force, or one by which an action of the account was judged. It returns
// store.ErrNotFound if there is none.
func (e *Executor) PolicyByDigest(ctx context.Context, account, digest string) (PolicyText, error) {
	return e.governor.PolicyByDigest(ctx, account, digest)
}

// List returns runs of an account, the newest first.
func (e *Executor) ListRuns(ctx context.Context, account string, filter store.RunFilter) ([]store.Run, error) {
	return e.views.ListRuns(ctx, account, filter)
}

// Look returns the newest run of a state key, with what it came to and what it asked.
func (e *Executor) GetRun(ctx context.Context, account, stateKey string) (RunView, error) {
	return e.views.GetRun(ctx, account, stateKey)
}

// Questions returns what the runs of an account ask, the oldest first.
func (e *Executor) ListRequests(ctx context.Context, account string, filter store.InboxFilter) ([]RequestView, error) {
	return e.views.ListRequests(ctx, account, filter)
}

// Question returns one question, or store.ErrNotFound.
func (e *Executor) GetRequest(ctx context.Context, account, id string) (RequestView, error) {
	return e.views.GetRequest(ctx, account, id)
}

// Pending counts the open questions of an account, but no further than to limit.
func (e *Executor) CountOpenRequests(ctx context.Context, account string, limit int) (int, error) {
	return e.views.CountOpenRequests(ctx, account, limit)
}
