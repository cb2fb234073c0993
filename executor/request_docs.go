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

// DeskConfig says how people decide on what runs ask. The zero value asks any one person, for as long as [Config.RequestTimeout].
type DeskConfig struct {
	// Directory knows who is in which group. Without one, all groups are empty.
	Directory desk.Directory
	// Routes say by name whom to notify, remind and page, and when. The one named "default" is for requests for which no rule names one.
	Routes map[string]desk.Route
	// Rules, if given, say which actions are allowed, denied or asked about, and of whom.
	Policy policy.Source
	// Environment, as "prod", and Zone are what the rules know of this installation. Without a zone theirs counts, and UTC if they have none.
	Environment string
	Zone        *time.Location
	// ForgetRulings does not store what the rules said of actions. Rulings hold the arguments of actions, and live as long as their runs; without them
	// [Executor.Replay] has nothing to look at.
	DiscardRulings bool
	// Notify, if given, sends a notice to people. It is called again after an error, and may be called again for a notice that it has sent.
	Notify func(ctx context.Context, account string, notice desk.Notice) error
}

// The kinds of papers that an executor keeps, beside requests.
const (
	runMetaKind store.DocumentKind = "run"    // what is known of a run beyond its row
	voteKind    store.DocumentKind = "vote"   // one person's vote, for analytics
	noticeKind  store.DocumentKind = "notice" // a notice that has to be sent, or was
	// approversKind is changed with every approval in a run where one who approved something must not approve anything else: of two approvals at the same
	// moment, one is weighed again.
	approversKind store.DocumentKind = "approvers"
	resumeKind    store.DocumentKind = "resume" // what a resume id was answered with; see resumed.go
)

// requestDoc is a request as it is kept.
type requestDoc struct {
	desk.Request
	revision int64 // of the paper
}

// requestOf returns the request of an interrupt, or nil if it has none.
func (e *Executor) requestDoc(ctx context.Context, account, id string) (*requestDoc, error) {
	paper, err := e.store.Document(ctx, account, store.RequestDocument, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return e.decodeRequest(paper)
}

func (e *Executor) decodeRequest(paper store.Document) (*requestDoc, error) {
	data, err := e.store.Body(paper)
	if err != nil {
		return nil, err
	}
	doc, err := desk.Decode(data)
	return &requestDoc{doc, paper.Revision}, err
}

// env is what package desk needs to know to apply an act.
func (e *Executor) deskEnv(now time.Time) desk.Env {
	return desk.Env{Now: now, Directory: cmp.Or[desk.Directory](e.config.Desk.Directory, desk.StaticDirectory{})}
}

// tellTime sets the time of a filing, unless it is set. Many filings do not need it, and asking the store for it costs a call.
func (e *Executor) setTime(ctx context.Context, c *unitOfWork) (err error) {
	if c.now.IsZero() {
		c.now, err = e.store.Now(ctx)
	}
	return err
}

// file adds a change of a request to a filing: the request, new votes, notices, questions to the run, and audit lines.
func (e *Executor) addChange(c *unitOfWork, change desk.Change, base int64) error {
	doc := change.Request
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	paper := store.DocumentChange{Kind: store.RequestDocument, ID: doc.ID, Run: c.run.ID, BaseRevision: base, Body: body, DueAt: change.NextDue}
	if doc.State == desk.StateOpen && doc.Deadline.Before(noDeadline(doc.Created)) {
		paper.InterruptDeadline = doc.Deadline
	}
	if err := c.addIndexed(paper, requestIndex(c.run, doc)); err != nil {
		return err
	}
	for _, vote := range doc.Votes {
		if vote.Rev != doc.Rev {
			continue // it was filed when it was cast
		}
		paper := store.DocumentChange{Kind: voteKind, ID: doc.ID + "/" + ident.Derive("v", vote.By, vote.At.String()), Run: c.run.ID}
		if err := c.addIndexed(paper, voteIndex(c.run, doc, vote)); err != nil {
			return err
		}
	}
	if err := e.addNotices(c, change.Notices, base); err != nil {
		return err
	}
	if err := e.addClarifications(c, change); err != nil {
		return err
	}
	return addAuditLines(c, change)
}

// fileAll files several changes of a request, each of which was made on the one before: the request is written once.
func (e *Executor) addChanges(c *unitOfWork, changes []desk.Change, base int64) error {
	last := len(changes) - 1
	for _, change := range changes[:last] {
		if err := errors.Join(e.addNotices(c, change.Notices, base), addAuditLines(c, change)); err != nil {
			return err
		}
	}
	return e.addChange(c, changes[last], base)
}

// post files notices that have to be sent, if there is a Notify.
func (e *Executor) addNotices(c *unitOfWork, notices []desk.Notice, base int64) error {
	if e.config.Desk.Notify == nil {
		return nil
	}
	for _, n := range notices {
		n.Key = noticeKey(n, base)
		body, err := json.Marshal(n)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, store.DocumentChange{Kind: noticeKind, ID: n.Key, Run: c.run.ID, Body: body, DueAt: c.now})
	}
	return nil
}

// noticeKey is the key of a notice that is filed with a change of a request: a question that is asked again begins its route anew.
func noticeKey(n desk.Notice, base int64) string { return fmt.Sprintf("%s@%d", n.Key, base) }

// noDeadline is so far away that it stands for no deadline.
func noDeadline(from time.Time) time.Time { return from.AddDate(90, 0, 0) }

// openRequest makes the request of a question: who has to decide, by which route, until when. It returns the deadline.
func (e *Executor) openRequest(ctx context.Context, session *policySession, q provider.Interrupt, shown store.NewInterrupt, base int64) (deadline time.Time, err error) {
	c := session.tx
	ask := desk.RequestSpec{ID: shown.ID, Subject: desk.Subject{Kind: q.Kind, ShownDigest: shown.ShownDigest, Requester: c.meta.Requester, WordCount: len(bytes.Fields(q.Data))}}
	ask.Requirement = desk.OnePerson()
	var routes []string
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return time.Time{}, err
		}
		ask.Subject.Action, ask.Subject.ActionDigest, ask.Args = asked.Action, asked.Digest, asked.Args
		ask.Subject.Rules, ask.Subject.Reason = withoutEmpty(asked.Rule), asked.Reason
		if asked.Fixed {
			ask.Requirement.Editable = nil
		}
		if routes, err = session.requirementFor(ctx, &ask, q.Address); err != nil {
			return time.Time{}, err
		}
		if err := e.addInvolved(ctx, &ask, session, q.Address); err != nil {
			return time.Time{}, err
		}
	}
	if q.Kind == fermata.EffectInDoubt.Name() {
		if err := inheritRequirement(ctx, &ask, session.history, q.Data); err != nil {
			return time.Time{}, err
		}
	}
	if len(ask.Route.Steps) == 0 {
		ask.Route = capAtOwnTimeout(e.routeFor(routes, e.requestTimeout(q.Timeout)), q.Timeout)
	}
	change, err := desk.New(ask, e.deskEnv(c.now))
	if err != nil {
		return time.Time{}, err
	}
	return change.Request.Deadline, e.addChange(c, change, base)
}

// parts adds to a request who was involved in the run before, beside the requester: the authors of what is asked about and, if they are excluded from
// deciding, those who approved something else. Authors are added wherever there are rules, because the rules for edited arguments may exclude them.
func (e *Executor) addInvolved(ctx context.Context, ask *desk.RequestSpec, session *policySession, address fermata.Address) error {
	prior := slices.Contains(ask.Requirement.Exclude, desk.DutyPriorApprover)
	if e.config.Desk.Policy == nil && !prior {
		return nil
	}
	docs, err := session.history.allRequests(ctx)
	if err != nil {
		return err
	}
	same, err := session.history.requestsForAction(ctx, address, ask.ID, ask.Subject)
	ask.Subject.Authors = authors(session.tx.meta.Requester, docs)
	for _, doc := range docs {
		if prior && doc.Decision != nil && doc.Decision.Outcome == desk.OutcomeApproved && !slices.Contains(same, doc.ID) {
			ask.Subject.PriorApprovers = append(ask.Subject.PriorApprovers, doc.Decision.By...)
		}
	}
	return err
}

// authors is everybody whose input a run has used: see [desk.Subject].
func authors(requester string, docs []desk.Request) []string {
	all := withoutEmpty(requester)
	for _, doc := range docs {
		if doc.Decision == nil {
			continue
		}
		switch outcome := doc.Decision.Outcome; {
		case outcome == desk.OutcomeAnswered, outcome == desk.OutcomeRejected && doc.Decision.Reason != "":
			all = append(all, doc.Decision.By...)
		case outcome == desk.OutcomeApproved && doc.Edit != nil:
			all = append(all, doc.Edit.By)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func withoutEmpty(words ...string) []string {
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}

// defaultRouteName is the name of the route for what no rule has one for.
const defaultRouteName = "default"

// route is the route of a request: those that rules name, joined; or the configured default; or the built-in one, which ends with the timeout.
func (e *Executor) routeFor(names []string, timeout time.Duration) desk.Route {
	if len(names) == 0 {
		if route, ok := e.config.Desk.Routes[defaultRouteName]; ok {
			return capRoute(route, timeout)
		}
		return defaultRouteFor(timeout)
	}
	var routes []desk.Route
	for _, name := range names {
		route, ok := e.config.Desk.Routes[name]
		if !ok {
			e.config.Log.Error("a rule names a route that is not there; the default one is used", "route", name)
			route = defaultRouteFor(timeout)
		}
		routes = append(routes, route)
	}
	joined, err := desk.Join(routes...)
	if err != nil { // it is better to ask by one of the routes than not to ask
		e.config.Log.Error("routes that cannot be joined; the first one is used", "err", err)
		joined = routes[0]
	}
	return capRoute(joined, timeout)
}

// capRoute shortens a route that is longer than the timeout of the question.
func capRoute(route desk.Route, timeout time.Duration) desk.Route {
	last := route.Steps[len(route.Steps)-1]
	if timeout <= 0 || time.Duration(last.At) <= timeout {
		return route
	}
	route = route.WithDeadline(timeout)
	if route.Clock != desk.BusinessClock { // there the timeout is one of business hours, and a cap never is
		route.Cap = min(route.Cap, desk.Duration(timeout))
	}
	return route
}

// capAtOwnTimeout has a route end when the time is over that the question asked for itself, also on the business clock or if nobody could be told: whoever asked
// does not wait for Monday, nor for a channel. The time that an installation gives to every question is that of the route's clock.
func capAtOwnTimeout(route desk.Route, own time.Duration) desk.Route {
	later := route.Clock == desk.BusinessClock || route.DeadlineFrom == desk.DeadlineFromDelivered
	if limit := desk.Duration(own); own > 0 && later && (route.Cap == 0 || route.Cap > limit) {
		route.Cap = limit
	}
	return route
}

// defaultRouteFor is the default route of package desk, stretched or shortened to the timeout.
func defaultRouteFor(timeout time.Duration) desk.Route {
	if timeout <= 0 {
		timeout = 100 * 365 * 24 * time.Hour
	}
	return desk.DefaultRoute().WithDeadline(timeout)
}
