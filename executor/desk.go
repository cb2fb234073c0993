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
	// Directory knows who is in which group. Without one, nobody is in any.
	Directory desk.Directory
	// Routes are the ways on which people are told, by name. The one named "default" is for what no rule has a route for.
	Routes map[string]desk.Route
	// Rules, if given, say which actions are allowed, denied or asked about, and of whom.
	Rules policy.Source
	// Environment, as "prod", and Zone are what the rules know of this installation. The default zone is UTC.
	Environment string
	Zone        *time.Location
	// ForgetRulings keeps no rulings, which hold the arguments of actions for as long as their runs are kept. There is nothing to replay then.
	ForgetRulings bool
	// Notify, if given, is told what people have to be told. What it fails to tell comes again; what it has told may come once more.
	Notify func(ctx context.Context, account string, notice desk.Notice) error
}

// The kinds of papers that an executor keeps, beside requests.
const (
	dossierPaper store.PaperKind = "run"    // what is known of a run beyond its row
	votePaper    store.PaperKind = "vote"   // somebody's word, for those who count
	noticePaper  store.PaperKind = "notice" // what has to be told
	// approversPaper is changed by every yes in a run where people who approved before do not count again.
	approversPaper store.PaperKind = "approvers"
	resumePaper    store.PaperKind = "resume" // a resume id whose word counts but has decided nothing yet
)

// sealPaper and openPaper are for the bodies of papers.
func (e *Executor) sealPaper(account string, kind store.PaperKind, id string, v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return e.shut(label(account, store.SealedPaper, id, string(kind)), data), nil
}

func (e *Executor) openPaper(p store.Paper) ([]byte, error) {
	return e.openPart(p.Account, store.SealedPaper, p.ID, string(p.Kind), p.Body)
}

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

// env is the world as an act finds it.
func (e *Executor) env(now time.Time) desk.Env {
	return desk.Env{Now: now, Directory: cmp.Or[desk.Directory](e.config.Desk.Directory, desk.Members{})}
}

// tellTime asks the store for the time of a filing, unless that is known. Much of what is filed has no use for it.
func (e *Executor) tellTime(ctx context.Context, c *filing) (err error) {
	if c.now.IsZero() {
		c.now, err = e.store.Now(ctx)
	}
	return err
}

// file makes a change of a request what is written: the paper, the votes for those who count, what has to be told, and the audit.
func (e *Executor) file(c *filing, change desk.Change, base int64) error {
	doc := change.Request
	body, err := e.sealPaper(c.run.Account, store.RequestPaper, doc.ID, doc)
	if err != nil {
		return err
	}
	facts, err := json.Marshal(requestFacts(c.run, doc))
	if err != nil {
		return err
	}
	paper := store.PaperChange{Kind: store.RequestPaper, ID: doc.ID, Run: c.run.ID, Base: base, Body: body, Facts: facts, Next: change.Next}
	if doc.State == desk.Open && doc.Deadline.Before(forever(doc.Created)) {
		paper.Deadline = doc.Deadline
	}
	c.Papers = append(c.Papers, paper)
	for _, vote := range doc.Votes {
		if vote.Rev != doc.Rev {
			continue // it was filed when it was cast
		}
		facts, err := json.Marshal(voteFacts(c.run, doc, vote))
		if err != nil {
			return err
		}
		c.Papers = append(c.Papers, store.PaperChange{Kind: votePaper, ID: doc.ID + "/" + ident.Derive("v", vote.By, vote.At.String()), Run: c.run.ID, Facts: facts})
	}
	if err := e.post(c, change.Notices, base); err != nil {
		return err
	}
	if err := e.askBack(c, change); err != nil {
		return err
	}
	return c.record(change)
}

// fileAll makes several changes of a request, each made on the one before, one that is written.
func (e *Executor) fileAll(c *filing, changes []desk.Change, base int64) error {
	last := len(changes) - 1
	for _, change := range changes[:last] {
		if err := errors.Join(e.post(c, change.Notices, base), c.record(change)); err != nil {
			return err
		}
	}
	return e.file(c, changes[last], base)
}

// post puts notices into the outbox, if there is somebody to send them.
func (e *Executor) post(c *filing, notices []desk.Notice, base int64) error {
	if e.config.Desk.Notify == nil {
		return nil
	}
	for _, n := range notices {
		n.Key = fmt.Sprintf("%s@%d", n.Key, base) // a question that is asked again begins its route anew
		body, err := e.sealPaper(c.run.Account, noticePaper, n.Key, n)
		if err != nil {
			return err
		}
		c.Papers = append(c.Papers, store.PaperChange{Kind: noticePaper, ID: n.Key, Run: c.run.ID, Body: body, Next: c.now})
	}
	return nil
}

// forever is so far away that it stands for no deadline.
func forever(from time.Time) time.Time { return from.AddDate(90, 0, 0) }

// open makes a request of a question, with what it requires.
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
		if err := e.parts(ctx, &ask, c); err != nil {
			return time.Time{}, err
		}
	}
	if q.Kind == fermata.InDoubt.Name() {
		if err := e.asStrong(ctx, &ask, c, q.Data); err != nil {
			return time.Time{}, err
		}
	}
	if len(ask.Route.Steps) == 0 {
		if ask.Route, err = e.route(routes, e.timeout(q.Timeout)); err != nil {
			return time.Time{}, err
		}
	}
	change, err := desk.New(ask, e.env(c.now))
	if err != nil {
		return time.Time{}, err
	}
	return change.Request.Deadline, e.file(c, change, base)
}

// parts finds those who have a part in what is asked, beside the requester: who approved something before in the same run, if that keeps them from
// deciding, and who had a hand in what is to be done. The latter are noted wherever there are rules: those for other arguments may exclude them.
func (e *Executor) parts(ctx context.Context, ask *desk.Ask, c *filing) error {
	prior := slices.Contains(ask.Need.Exclude, desk.PriorApprover)
	if e.config.Desk.Rules == nil && !prior {
		return nil
	}
	docs, err := e.requestsOf(ctx, c.run)
	ask.Asked.Authors = authors(c.dossier.Requester, docs)
	for _, doc := range docs {
		if prior && doc.Final != nil && doc.Final.Outcome == desk.Approved {
			ask.Asked.PriorApprovers = append(ask.Asked.PriorApprovers, doc.Final.By...)
		}
	}
	return err
}

// authors is everybody whose words a run has: see [desk.Asked].
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

// route is the way on which people are told: those that rules name, joined; the default one; or the built-in one, which ends with the timeout.
func (e *Executor) route(names []string, timeout time.Duration) (desk.Route, error) {
	if len(names) == 0 {
		if route, ok := e.config.Desk.Routes[defaultRoute]; ok {
			return notAfter(route, timeout), nil
		}
		return builtInRoute(timeout), nil
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
	if err != nil { // a request that cannot be told as the rules want it is still asked
		e.config.Log.Error("routes that cannot be joined; the first one is used", "err", err)
		joined = routes[0]
	}
	return notAfter(joined, timeout), nil
}

// notAfter ends a route when the question ends, if that is earlier.
func notAfter(route desk.Route, timeout time.Duration) desk.Route {
	last := route.Steps[len(route.Steps)-1]
	if timeout <= 0 || time.Duration(last.At) <= timeout {
		return route
	}
	route = route.Within(timeout)
	route.Cap = min(route.Cap, desk.Duration(timeout))
	return route
}

// builtInRoute is that of package desk, with another end.
func builtInRoute(timeout time.Duration) desk.Route {
	if timeout <= 0 {
		timeout = 100 * 365 * 24 * time.Hour
	}
	return desk.DefaultRoute().Within(timeout)
}
