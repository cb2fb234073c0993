package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

// Desk says how people decide on what runs ask. The zero value asks any one person, for as long as [Config.Timeout].
type Desk struct {
	// Directory knows who is in which group. Without one, all groups are empty.
	Directory desk.Directory
	// Routes say by name whom to notify, remind and page, and when. The one named "default" is for requests for which no rule names one.
	Routes map[string]desk.Route
	// Rules, if given, say which actions are allowed, denied or asked about, and of whom.
	Rules policy.Source
	// Environment, as "prod", and Zone are what the rules know of this installation. Without a zone theirs counts, and UTC if they have none.
	Environment string
	Zone        *time.Location
	// ForgetRulings does not store what the rules said of actions. Rulings hold the arguments of actions, and live as long as their runs; without them
	// [Executor.Replay] has nothing to look at.
	ForgetRulings bool
	// Notify, if given, sends a notice to people. It is called again after an error, and may be called again for a notice that it has sent.
	Notify func(ctx context.Context, account string, notice desk.Notice) error
}

// The kinds of papers that an executor keeps, beside requests.
const (
	dossierPaper store.PaperKind = "run"    // what is known of a run beyond its row
	votePaper    store.PaperKind = "vote"   // one person's vote, for analytics
	noticePaper  store.PaperKind = "notice" // a notice that has to be sent, or was
	// approversPaper is changed with every approval in a run where one who approved something must not approve anything else: of two approvals at the same
	// moment, one is weighed again.
	approversPaper store.PaperKind = "approvers"
	resumePaper    store.PaperKind = "resume" // what a resume id was answered with; see resumed.go
)

// requested is a request as it is kept.
type requested struct {
	desk.Request
	revision int64 // of the paper
}

// requestOf returns the request of an interrupt, or nil if it has none.
func (e *Executor) requestOf(ctx context.Context, account, id string) (*requested, error) {
	paper, err := e.store.Paper(ctx, account, store.RequestPaper, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.readRequest(paper)
}

func (e *Executor) readRequest(paper store.Paper) (*requested, error) {
	data, err := e.openPaper(paper)
	if err != nil {
		return nil, err
	}
	doc, err := desk.Decode(data)
	return &requested{doc, paper.Revision}, err
}

// requestsOf are all requests of the run that a filing is about. They are read once: a filing may be about thousands of questions.
func (e *Executor) requestsOf(ctx context.Context, c *filing) ([]desk.Request, error) {
	if c.requests != nil {
		return c.requests, nil
	}
	docs := []desk.Request{}
	for paper, err := range e.papers(ctx, c.run.Account, store.RequestPaper, store.PaperFilter{Run: c.run.ID, Limit: papersAtOnce}) {
		if err != nil {
			return nil, err
		}
		known, err := e.readRequest(paper)
		if err != nil {
			return nil, err
		}
		docs = append(docs, known.Request)
	}
	c.requests = docs //mutate:requests-read-once
	return docs, nil
}

// env is what package desk needs to know to apply an act.
func (e *Executor) env(now time.Time) desk.Env {
	return desk.Env{Now: now, Directory: cmp.Or[desk.Directory](e.config.Desk.Directory, desk.Members{})}
}

// tellTime sets the time of a filing, unless it is set. Many filings do not need it, and asking the store for it costs a call.
func (e *Executor) tellTime(ctx context.Context, c *filing) (err error) {
	if c.now.IsZero() {
		c.now, err = e.store.Now(ctx)
	}
	return err
}

// file adds a change of a request to a filing: the request, new votes, notices, questions to the run, and audit lines.
func (e *Executor) file(c *filing, change desk.Change, base int64) error {
	doc := change.Request
	body, err := e.sealPaper(c.run.Account, store.RequestPaper, doc.ID, doc)
	if err != nil {
		return err
	}
	paper := store.PaperChange{Kind: store.RequestPaper, ID: doc.ID, Run: c.run.ID, Base: base, Body: body, Next: change.Next}
	if doc.State == desk.Open && doc.Deadline.Before(forever(doc.Created)) {
		paper.Deadline = doc.Deadline
	}
	if err := c.fileFacts(paper, requestFacts(c.run, doc)); err != nil {
		return err
	}
	for _, vote := range doc.Votes {
		if vote.Rev != doc.Rev {
			continue // it was filed when it was cast
		}
		paper := store.PaperChange{Kind: votePaper, ID: doc.ID + "/" + ident.Derive("v", vote.By, vote.At.String()), Run: c.run.ID}
		if err := c.fileFacts(paper, voteFacts(c.run, doc, vote)); err != nil {
			return err
		}
	}
	if err := e.post(c, change.Notices, base); err != nil {
		return err
	}
	if err := e.askBack(c, change); err != nil {
		return err
	}
	return c.record(change)
}

// fileAll files several changes of a request, each of which was made on the one before: the request is written once.
func (e *Executor) fileAll(c *filing, changes []desk.Change, base int64) error {
	last := len(changes) - 1
	for _, change := range changes[:last] {
		if err := errors.Join(e.post(c, change.Notices, base), c.record(change)); err != nil {
			return err
		}
	}
	return e.file(c, changes[last], base)
}

// post files notices that have to be sent, if there is a Notify.
func (e *Executor) post(c *filing, notices []desk.Notice, base int64) error {
	if e.config.Desk.Notify == nil {
		return nil
	}
	for _, n := range notices {
		n.Key = noticeKey(n, base)
		body, err := e.sealPaper(c.run.Account, noticePaper, n.Key, n)
		if err != nil {
			return err
		}
		c.Papers = append(c.Papers, store.PaperChange{Kind: noticePaper, ID: n.Key, Run: c.run.ID, Body: body, Next: c.now})
	}
	return nil
}

// noticeKey is the key of a notice that is filed with a change of a request: a question that is asked again begins its route anew.
func noticeKey(n desk.Notice, base int64) string { return fmt.Sprintf("%s@%d", n.Key, base) }

// forever is so far away that it stands for no deadline.
func forever(from time.Time) time.Time { return from.AddDate(90, 0, 0) }

// openRequest makes the request of a question: who has to decide, by which route, until when. It returns the deadline.
func (e *Executor) openRequest(ctx context.Context, c *filing, q provider.Question, shown store.NewInterrupt, base int64) (deadline time.Time, err error) {
	ask := desk.Ask{ID: shown.ID, Asked: desk.Asked{Kind: q.Kind, Shown: shown.Shown, Requester: c.dossier.Requester, Words: len(bytes.Fields(q.Data))}}
	ask.Need = desk.OnePerson()
	var routes []string
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return time.Time{}, err
		}
		ask.Asked.Action, ask.Asked.Digest, ask.Args = asked.Action, asked.Digest, asked.Args
		ask.Asked.Rules, ask.Asked.Reason = nonEmpty(asked.Rule), asked.Reason
		if asked.Fixed {
			ask.Need.Editable = nil
		}
		if routes, err = e.demand(ctx, &ask, c, q.Address); err != nil {
			return time.Time{}, err
		}
		if err := e.parts(ctx, &ask, c, q.Address); err != nil {
			return time.Time{}, err
		}
	}
	if q.Kind == fermata.InDoubt.Name() {
		if err := e.asStrong(ctx, &ask, c, q.Data); err != nil {
			return time.Time{}, err
		}
	}
	if len(ask.Route.Steps) == 0 {
		ask.Route = withinItsOwn(e.route(routes, e.timeout(q.Timeout)), q.Timeout)
	}
	change, err := desk.New(ask, e.env(c.now))
	if err != nil {
		return time.Time{}, err
	}
	return change.Request.Deadline, e.file(c, change, base)
}

// parts adds to a request who was involved in the run before, beside the requester: the authors of what is asked about and, if they are excluded from
// deciding, those who approved something else. Authors are added wherever there are rules, because the rules for edited arguments may exclude them.
func (e *Executor) parts(ctx context.Context, ask *desk.Ask, c *filing, address fermata.Address) error {
	prior := slices.Contains(ask.Need.Exclude, desk.PriorApprover)
	if e.config.Desk.Rules == nil && !prior {
		return nil
	}
	docs, err := e.requestsOf(ctx, c)
	if err != nil {
		return err
	}
	same, err := e.sameAction(ctx, c, address, ask.ID, ask.Asked)
	ask.Asked.Authors = authors(c.dossier.Requester, docs)
	for _, doc := range docs {
		if prior && doc.Final != nil && doc.Final.Outcome == desk.Approved && !slices.Contains(same, doc.ID) {
			ask.Asked.PriorApprovers = append(ask.Asked.PriorApprovers, doc.Final.By...)
		}
	}
	return err
}

// authors is everybody whose input a run has used: see [desk.Asked].
func authors(requester string, docs []desk.Request) []string {
	all := nonEmpty(requester)
	for _, doc := range docs {
		if doc.Final == nil {
			continue
		}
		switch outcome := doc.Final.Outcome; {
		case outcome == desk.Responded, outcome == desk.Rejected && doc.Final.Reason != "":
			all = append(all, doc.Final.By...)
		case outcome == desk.Approved && doc.Edit != nil:
			all = append(all, doc.Edit.By)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func nonEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// defaultRoute is the name of the route for what no rule has one for.
const defaultRoute = "default"

// route is the route of a request: those that rules name, joined; or the configured default; or the built-in one, which ends with the timeout.
func (e *Executor) route(names []string, timeout time.Duration) desk.Route {
	if len(names) == 0 {
		if route, ok := e.config.Desk.Routes[defaultRoute]; ok {
			return notAfter(route, timeout)
		}
		return builtInRoute(timeout)
	}
	var routes []desk.Route
	for _, name := range names {
		route, ok := e.config.Desk.Routes[name]
		if !ok {
			e.config.Log.Error("a rule names a route that is not there; the default one is used", "route", name)
			route = builtInRoute(timeout)
		}
		routes = append(routes, route)
	}
	joined, err := desk.Join(routes...)
	if err != nil { // it is better to ask by one of the routes than not to ask
		e.config.Log.Error("routes that cannot be joined; the first one is used", "err", err)
		joined = routes[0]
	}
	return notAfter(joined, timeout)
}

// notAfter shortens a route that is longer than the timeout of the question.
func notAfter(route desk.Route, timeout time.Duration) desk.Route {
	last := route.Steps[len(route.Steps)-1]
	if timeout <= 0 || time.Duration(last.At) <= timeout {
		return route
	}
	route = route.Within(timeout)
	if route.Clock != desk.BusinessClock { // there the timeout is one of business hours, and a cap never is
		route.Cap = min(route.Cap, desk.Duration(timeout))
	}
	return route
}

// withinItsOwn has a route end when the time is over that the question asked for itself, also on the business clock or if nobody could be told: whoever asked
// does not wait for Monday, nor for a channel. The time that an installation gives to every question is that of the route's clock.
func withinItsOwn(route desk.Route, own time.Duration) desk.Route {
	later := route.Clock == desk.BusinessClock || route.DeadlineFrom == desk.FromDelivered
	if limit := desk.Duration(own); own > 0 && later && (route.Cap == 0 || route.Cap > limit) {
		route.Cap = limit
	}
	return route
}

// builtInRoute is the default route of package desk, stretched or shortened to the timeout.
func builtInRoute(timeout time.Duration) desk.Route {
	if timeout <= 0 {
		timeout = 100 * 365 * 24 * time.Hour
	}
	return desk.DefaultRoute().Within(timeout)
}
