package requests

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
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
)

// DeskEnv returns what package desk needs to apply a command.
func (s *Service) DeskEnv(now time.Time) desk.Env {
	return desk.Env{Now: now, Directory: cmp.Or[desk.Directory](s.config.Directory, desk.StaticDirectory{})}
}

// SetTime sets the time of a unit of work, unless it is set. Many do not need it, and reading it
// costs a call to the store.
func (s *Service) SetTime(ctx context.Context, c *txn.Tx) (err error) {
	if c.Now.IsZero() {
		c.Now, err = s.store.Now(ctx)
	}
	return err
}

// AddChange adds a change of a request: the request, new votes, notices, clarifications, and audit
// lines.
func (s *Service) AddChange(c *txn.Tx, change desk.Change, base int64) error {
	doc := change.Request
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	paper := store.DocumentChange{Kind: store.RequestDocument, ID: doc.ID, Run: c.Run.ID, BaseRevision: base, Body: body, DueAt: change.NextDue}
	if doc.State == desk.StateOpen && doc.Deadline.Before(NoDeadline(doc.Created)) {
		paper.InterruptDeadline = interruptDeadline(doc)
	}
	if err := c.AddIndexed(paper, docs.RequestIndex(c.Run, doc)); err != nil {
		return err
	}
	for _, vote := range doc.Votes {
		if vote.Rev != doc.Rev {
			continue // it was filed when it was cast
		}
		paper := store.DocumentChange{Kind: docs.VoteKind, ID: doc.ID + "/" + ident.Derive("v", vote.By, vote.At.String()), Run: c.Run.ID}
		if err := c.AddIndexed(paper, docs.VoteIndex(c.Run, doc, vote)); err != nil {
			return err
		}
	}
	if err := s.AddNotices(c, change.Notices, base); err != nil {
		return err
	}
	if err := s.addClarifications(c, change); err != nil {
		return err
	}
	return auditrec.AddAuditLines(c, change)
}

// pendingGrace is the least time between the end of an undo window and the deadline of the
// interrupt, so that a decision at the deadline of the request still counts.
const pendingGrace = time.Hour

// interruptDeadline returns when the store may expire the interrupt of a request. A pending
// decision does not expire.
func interruptDeadline(doc desk.Request) time.Time {
	if doc.Pending != nil && doc.Deadline.Before(doc.Pending.EffectiveAt.Add(pendingGrace)) {
		return doc.Pending.EffectiveAt.Add(pendingGrace)
	}
	return doc.Deadline
}

// AddChanges adds several changes of a request. Each is based on the one before, so the request is
// written once.
func (s *Service) AddChanges(c *txn.Tx, changes []desk.Change, base int64) error {
	last := len(changes) - 1
	for _, change := range changes[:last] {
		if err := errors.Join(s.AddNotices(c, change.Notices, base), auditrec.AddAuditLines(c, change)); err != nil {
			return err
		}
	}
	return s.AddChange(c, changes[last], base)
}

// AddNotices adds notices to be sent, if notices are sent at all.
func (s *Service) AddNotices(c *txn.Tx, notices []desk.Notice, base int64) error {
	if !s.config.Notify {
		return nil
	}
	for _, n := range notices {
		n.Key = NoticeKey(n, base)
		body, err := json.Marshal(n)
		if err != nil {
			return err
		}
		c.Documents = append(c.Documents, store.DocumentChange{Kind: docs.NoticeKind, ID: n.Key, Run: c.Run.ID, Body: body, DueAt: c.Now})
	}
	return nil
}

// NoticeKey returns the key of a notice that is added with a change of a request. A request that is
// asked again starts its route again.
func NoticeKey(n desk.Notice, base int64) string { return fmt.Sprintf("%s@%d", n.Key, base) }

// NoDeadline is so far in the future that it means no deadline.
func NoDeadline(from time.Time) time.Time { return from.AddDate(90, 0, 0) }

// OpenRequest creates the request of an interrupt: requirement, route and deadline. It returns the
// deadline.
func (s *Service) OpenRequest(ctx context.Context, session *govern.Session, q provider.Interrupt, shown store.NewInterrupt, base int64) (deadline time.Time, err error) {
	c := session.Tx
	ask := desk.RequestSpec{ID: shown.ID, Subject: desk.Subject{Kind: q.Kind, ShownDigest: shown.ShownDigest, Requester: c.Meta.Requester, StatedRequester: c.Meta.Origin.Requester, StatedEnvironment: c.Meta.Origin.Environment, WordCount: len(bytes.Fields(q.Data))}, DefaultAnswer: q.DefaultAnswer}
	ask.Subject.Supersedes, ask.Subject.Changed, ask.Subject.Refused = q.Supersedes, q.Changed, q.Refused
	ask.Requirement = requirement.OnePerson()
	routes, err := s.setRequirement(ctx, session, &ask, q)
	if err != nil {
		return time.Time{}, err
	}
	if kind, known := fermata.LookupKind(q.Kind); known && kind.IsForEndUser() && c.Meta.EndUser != "" {
		addressEndUser(&ask, c.Meta.EndUser, c.Now)
	}
	if len(ask.Route.Steps) == 0 {
		ask.Route = capAtOwnTimeout(s.routeFor(routes, s.RequestTimeout(q.Timeout)), q.Timeout)
	}
	change, err := desk.New(ask, s.DeskEnv(c.Now))
	if err != nil {
		return time.Time{}, err
	}
	return change.Request.Deadline, s.AddChange(c, change, base)
}

// addressEndUser has the end user of the run answer, instead of the people of the policy, who are
// neither told nor see it. The conversation ends the question, so the request has no deadline.
func addressEndUser(ask *desk.RequestSpec, user string, now time.Time) {
	ask.Subject.EndUser = user
	person := []string{"user:" + user}
	ask.Requirement = requirement.Requirement{Groups: []requirement.Group{{From: person}}, VisibleTo: [][]string{person}}
	ask.Route = desk.Route{Name: "end-user", Steps: []desk.Step{{At: timespan.Duration(NoDeadline(now).Sub(now)), Expire: "stale"}}}
}

// setRequirement sets the subject of a request and what the policy requires for it. It returns the
// routes that the policy names.
func (s *Service) setRequirement(ctx context.Context, session *govern.Session, ask *desk.RequestSpec, q provider.Interrupt) (routes []string, err error) {
	switch q.Kind {
	case fermata.Approval.Name():
		var asked fermata.ApprovalRequest
		if err := json.Unmarshal(q.Data, &asked); err != nil {
			return nil, err
		}
		ask.Subject.Action, ask.Subject.ActionDigest, ask.Args = asked.Action, asked.Digest, asked.Args
		ask.Subject.Rules, ask.Subject.Reason = withoutEmpty(asked.Rule), asked.Reason
		if asked.Fixed {
			ask.Requirement.Editable = nil
		}
		routes, err = session.RequirementFor(ctx, ask, q.Address)
	case fermata.EffectInDoubt.Name():
		var inherited bool
		if inherited, err = inheritRequirement(ctx, ask, session.History, q.Data); err == nil {
			routes, err = session.InterruptRequirement(ctx, ask, q, inherited)
		}
		return routes, err
	default:
		routes, err = session.InterruptRequirement(ctx, ask, q, false) //mutate:policy-for-every-kind
	}
	if err != nil {
		return nil, err
	}
	return routes, s.addInvolved(ctx, ask, session, q.Address)
}

// addInvolved adds to a request the actors who were involved in the run before, besides the
// requester: the authors of its input and, if they are excluded from deciding, the prior approvers.
// Authors are added whenever there is a policy, because the policy for edited arguments may exclude
// them.
func (s *Service) addInvolved(ctx context.Context, ask *desk.RequestSpec, session *govern.Session, address fermata.Address) error {
	prior := slices.Contains(ask.Requirement.Exclude, requirement.DutyPriorApprover)
	if !s.config.Policy && !prior {
		return nil
	}
	docs, err := session.History.AllRequests(ctx)
	if err != nil {
		return err
	}
	same, err := session.History.RequestsForAction(ctx, address, ask.ID, ask.Subject)
	ask.Subject.Authors = authors(docs, ask.Subject.Requester, ask.Subject.StatedRequester)
	for _, doc := range docs {
		if prior && approved(doc) && !slices.Contains(same, doc.ID) {
			ask.Subject.PriorApprovers = append(ask.Subject.PriorApprovers, doc.Decision.By...)
		}
	}
	return err
}

// approved reports whether people let something happen: they approved it, or edited a held run.
func approved(doc desk.Request) bool {
	return doc.Decision != nil && (doc.Decision.Outcome == desk.OutcomeApproved || doc.Decision.Outcome == desk.OutcomeAnswered && doc.Subject.Kind == docs.HoldKind)
}

// authors returns the actors whose input a run has used: see [desk.Subject].
func authors(docs []desk.Request, requesters ...string) []string {
	all := withoutEmpty(requesters...)
	for _, doc := range docs {
		if doc.Decision == nil {
			continue
		}
		switch outcome := doc.Decision.Outcome; {
		case outcome == desk.OutcomeAnswered, outcome == desk.OutcomeReturned, outcome == desk.OutcomeRejected && doc.Decision.Reason != "":
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
