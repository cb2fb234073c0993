//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// faultlessRequest is the record of a payment without faults: dee commented on it, ann and bob
// approved it after a page, and cid was told that he was too late.
type faultlessRequest struct {
	*requestRecord
	faultLog
	t        *testing.T
	revision int64
}

var askedAmount = action{Order: "order-1", Gate: pay, Amount: 3}

func newFaultlessRequest(t *testing.T) *faultlessRequest {
	t.Helper()
	args, err := json.Marshal(askedAmount)
	if err != nil {
		t.Fatal(err)
	}
	q := &faultlessRequest{t: t, faultLog: faultLog{ends: map[int64]exitState{1: {0, noon.Add(time.Hour)}}, rest: 3, failed: func(int64, string) bool { return false }}, requestRecord: &requestRecord{
		account: account, world: noon,
		run: store.History{Run: store.Run{Account: account, ID: "run", StateKey: "order-1", Status: store.StatusCompleted}},
		interrupt: store.Interrupt{
			Account: account, Run: "run", NewInterrupt: store.NewInterrupt{ID: "int"}, Deadline: noon.Add(time.Second), State: store.InterruptDecided, Verdict: store.VerdictApprove,
			Source: store.SourcePerson, DecidedBy: "bob", DecidedAt: noon.Add(300 * time.Millisecond), ApprovedDigest: digestOf(pay, askedAmount),
		},
	}}
	change, err := desk.New(desk.RequestSpec{
		ID: "int", Args: args, Route: quickRoutes[0], Subject: desk.Subject{Kind: "approval", ShownDigest: "shown", Action: pay, ActionDigest: digestOf(pay, askedAmount), Requester: requesters + "1"},
		Requirement: requirement.Requirement{Groups: []requirement.Group{{From: []string{"group:payers"}, Count: quorum}}, Exclude: []requirement.Duty{requirement.DutyRequester}},
	}, q.env(0))
	q.take(change, err)
	q.apply(80, desk.Tick{})
	q.comment(90, "dee")
	q.vote(100, "ann")
	q.apply(200, desk.Tick{})
	q.vote(300, "bob")
	q.said("cid", answer{Kind: saidRefused, Result: store.ResultAlreadyDecided, Interrupt: "int", By: "bob", Verdict: store.VerdictApprove})
	q.deeds = []effectCall{{call: call{Key: "key", Action: askedAmount}}}
	q.run.Events = []store.Event{{Kind: store.EventDecided, Interrupt: "int"}}
	q.result(wasDone + "receipt")
	return q
}

func (q *faultlessRequest) env(at int) desk.Env {
	return desk.Env{Now: noon.Add(time.Duration(at) * time.Millisecond), Directory: payers{}}
}

func (q *faultlessRequest) result(result string) {
	output, err := json.Marshal(payment{Key: "order-1", Result: result})
	if err != nil {
		q.t.Fatal(err)
	}
	outcome, err := json.Marshal(fermata.Completed{Run: "run", Output: output})
	if err != nil {
		q.t.Fatal(err)
	}
	q.run.Run.Outcome = boxed(string(outcome))
}

// take applies a change and delivers its notices.
func (q *faultlessRequest) take(change desk.Change, err error) {
	q.t.Helper()
	if err != nil {
		q.t.Fatal(err)
	}
	for _, n := range change.Notices {
		q.notices = append(q.notices, noticeRecord{n, store.Document{ID: fmt.Sprintf("%s@%d", n.Key, q.revision), Index: []byte(`{"result":"expanded"}`)}})
		for _, target := range n.Targets {
			sent := deliveryRecord{Notice: n, Target: target, paper: store.Document{ID: n.Key + "#" + target, Index: []byte(`{"state":"sent"}`)}}
			q.sent = append(q.sent, sent)
			at := time.Second + time.Duration(len(q.tellings))*time.Millisecond
			message := n
			message.Key, message.Targets = sent.paper.ID, []string{target}
			q.tellings = append(q.tellings, receivedNotice{Account: account, Notice: message, Life: 1, came: at, at: at})
		}
	}
	q.doc = change.Request
	q.revision++
}

func (q *faultlessRequest) apply(at int, act desk.Command) desk.Change {
	q.t.Helper()
	change, err := desk.Apply(q.doc, act, q.env(at))
	q.take(change, err)
	return change
}

// said is a decision and its reply.
func (q *faultlessRequest) said(by string, reply answer) {
	q.attempts = append(q.attempts, &attempt{
		verb: doDecide, request: request{Account: account, Key: "order-1", Actor: by, ResumeID: "id of " + by, Targets: map[string]json.RawMessage{"int": nil}},
		aims: []intendedVote{{Interrupt: "int", Gate: pay, Approve: &askedAmount}}, sent: time.Second, got: time.Second + 1, answer: reply,
	})
}

func (q *faultlessRequest) vote(at int, by string) {
	q.t.Helper()
	change := q.apply(at, desk.Approve{From: desk.From{Actor: desk.PersonActor(by, "")}})
	q.said(by, answer{Kind: saidPending})
	q.line(by, audit.RequestDecided{Verb: audit.VerbApprove, ResumeID: "id of " + by, Settles: change.Decision != nil, Timing: audit.Timing{Decided: audit.TimestampOf(q.env(at).Now)}})
}

func (q *faultlessRequest) line(by string, body audit.Body) {
	q.lines = append(q.lines, audit.Record{Seq: int64(len(q.lines) + 1), Actor: audit.Actor{Principal: by}, Body: body})
}

func (q *faultlessRequest) comment(at int, by string) {
	q.t.Helper()
	q.apply(at, desk.Comment{From: desk.From{Actor: desk.PersonActor(by, "")}, Text: "hm"})
	q.attempts = append(q.attempts, &attempt{
		verb: doAct, request: request{Account: account, Actor: by, Act: &commandBody{Request: "int", Name: desk.CommandComment, Text: "hm"}}, got: 1, answer: answer{Kind: saidDone},
	})
}

// of returns the attempt of a person.
func (q *faultlessRequest) of(by string) *attempt {
	return q.attempts[slices.IndexFunc(q.attempts, func(a *attempt) bool { return a.Actor == by })]
}

// decided changes an audit record.
func (q *faultlessRequest) decided(line int, change func(*audit.RequestDecided)) {
	body := q.lines[line].Body.(audit.RequestDecided)
	change(&body)
	q.lines[line].Body = body
}

func (q *faultlessRequest) check() []violation {
	_, again := q.twice([]*requestRecord{q.requestRecord})
	return append(q.requestRecord.check(), again...)
}

func (q *faultlessRequest) notice(kind desk.NoticeKind) int {
	return slices.IndexFunc(q.notices, func(n noticeRecord) bool { return n.Kind == kind })
}

// message returns the index of a message of a kind.
func (q *faultlessRequest) message(kind desk.NoticeKind) int {
	return slices.IndexFunc(q.tellings, func(t receivedNotice) bool { return t.Notice.Kind == kind })
}

func TestDeskChecks_FaultlessRequestHasNoViolations(t *testing.T) {
	for _, v := range newFaultlessRequest(t).check() {
		t.Error(v)
	}
}

func TestDeskChecks_DetectViolations(t *testing.T) {
	early := time.Millisecond
	for name, test := range map[string]struct {
		spoil func(q *faultlessRequest)
		want  invariant
	}{
		"the run continues":                              {func(q *faultlessRequest) { q.run.Run.Status = store.StatusWaiting }, settles},
		"the request is open":                            {func(q *faultlessRequest) { q.doc.State, q.doc.Decision = desk.StateOpen, nil }, oneEnd},
		"the store says that it expired":                 {func(q *faultlessRequest) { q.interrupt.Verdict = store.VerdictExpire }, oneEnd},
		"two events end it":                              {func(q *faultlessRequest) { q.run.Events = append(q.run.Events, q.run.Events[0]) }, oneEnd},
		"the audit log does not decide it":               {func(q *faultlessRequest) { q.decided(1, func(d *audit.RequestDecided) { d.Settles = false }) }, chained},
		"the audit log decides it twice":                 {func(q *faultlessRequest) { q.line("system:clock", audit.RequestExpired{}) }, chained},
		"the audit log counts a vote after the decision": {func(q *faultlessRequest) { q.lines = append(q.lines, q.lines[0]) }, oneEnd},
		"the run says that it was rejected":              {func(q *faultlessRequest) { q.result(wasRejected) }, noBypass},
		"a decision after the deadline":                  {func(q *faultlessRequest) { q.interrupt.DecidedAt = q.interrupt.Deadline }, oneTimer},
		"the desk decides after the deadline":            {func(q *faultlessRequest) { q.doc.Decision.At = q.doc.Deadline }, oneTimer},
		"there are two deadlines":                        {func(q *faultlessRequest) { q.interrupt.Deadline = q.interrupt.Deadline.Add(early) }, oneTimer},
		"an expiry before the deadline":                  {func(q *faultlessRequest) { q.doc.Decision.Outcome = desk.OutcomeExpired }, oneTimer},
		"a counted vote is not in the audit log":         {func(q *faultlessRequest) { q.lines = q.lines[1:] }, wordCounts},
		"a vote is counted twice":                        {func(q *faultlessRequest) { q.lines = append(q.lines[:1:1], q.lines...) }, wordCounts},
		"a refused vote is in the audit log":             {func(q *faultlessRequest) { q.of("ann").answer = q.of("cid").answer }, wordCounts},
		"no person made a recorded vote":                 {func(q *faultlessRequest) { q.lines[0].Actor.Principal = "eve" }, wordCounts},
		"an invalid vote is in the audit log":            {func(q *faultlessRequest) { q.of("ann").aims[0].Nonsense = true }, wordCounts},
		"an approval is recorded as a rejection":         {func(q *faultlessRequest) { q.decided(0, func(d *audit.RequestDecided) { d.Verb = audit.VerbReject }) }, asMeant},
		"a vote is not in the request":                   {func(q *faultlessRequest) { q.doc.Votes = q.doc.Votes[1:] }, wordCounts},
		"a vote of the request is not in the audit log": {func(q *faultlessRequest) {
			q.doc.Votes = append(q.doc.Votes, desk.Vote{By: "eve", Verb: requirement.VerbApprove})
		}, wordCounts},
		"the first of two votes is sufficient": {func(q *faultlessRequest) { q.lines = q.lines[1:] }, twoPayers},
		"two votes are not sufficient": {func(q *faultlessRequest) {
			q.lines = append(q.lines[:1:1], q.lines...)
			q.lines[1].Actor.Principal = "cid"
		}, wordCounts},
		"the requester counts":   {func(q *faultlessRequest) { q.doc.Subject.Requester = "ann" }, twoPayers},
		"a former member counts": {func(q *faultlessRequest) { q.lines[0].Actor.Principal = tempUntil(noon.Add(250 * time.Millisecond)) }, twoPayers},
		"one person approves":    {func(q *faultlessRequest) { q.doc.Decision.By = []string{"bob", "bob"} }, twoPayers},
		"a voter approved something else": {func(q *faultlessRequest) {
			q.of("ann").aims[0].Approve = &action{Order: "order-1", Gate: pay, Amount: 6}
		}, asMeant},
		"the store approves something else":          {func(q *faultlessRequest) { q.interrupt.ApprovedDigest = "another" }, asMeant},
		"something else is executed":                 {func(q *faultlessRequest) { q.deeds[0].Action.Amount = 6 }, asMeant},
		"it is executed twice":                       {func(q *faultlessRequest) { q.deeds = append(q.deeds, q.deeds[0]) }, onceOnly},
		"it is not done":                             {func(q *faultlessRequest) { q.deeds = nil }, decisionCounts},
		"it is executed although rejected":           {func(q *faultlessRequest) { q.interrupt.Verdict = store.VerdictReject }, approvedOnly},
		"the refusal names another winner":           {func(q *faultlessRequest) { q.of("cid").answer.By = "eve" }, wordCounts},
		"the refusal has no reason":                  {func(q *faultlessRequest) { q.of("cid").answer.Result = store.ResultExpired }, wordCounts},
		"a payer is told that they are not eligible": {func(q *faultlessRequest) { q.of("cid").answer.Result = "forbidden" }, wordCounts},
		"an editor is told that there was no edit":   {func(q *faultlessRequest) { q.of("cid").answer.Result = store.ResultDigestMismatch }, wordCounts},
		"a repeated id is refused": {func(q *faultlessRequest) {
			again := *q.of("ann")
			again.answer, again.got = q.of("cid").answer, again.got+1
			q.attempts = append(q.attempts, &again)
		}, oneAnswer},
		"an acknowledged comment is lost":             {func(q *faultlessRequest) { q.doc.Comments = nil }, durable},
		"a duplicate comment":                         {func(q *faultlessRequest) { q.doc.Comments = append(q.doc.Comments, q.doc.Comments[0]) }, durable},
		"a step fires twice":                          {func(q *faultlessRequest) { q.doc.Log = append(q.doc.Log[:2:2], q.doc.Log[1:]...) }, oneTimer},
		"a step fires after the decision":             {func(q *faultlessRequest) { q.doc.Log = append(q.doc.Log, q.doc.Log[2]) }, oneTimer},
		"a step fires too early":                      {func(q *faultlessRequest) { q.doc.Log[2].At = noon.Add(79 * early) }, oneTimer},
		"a step has no notice":                        {func(q *faultlessRequest) { q.notices = q.notices[1:] }, oneTimer},
		"a step has two notices":                      {func(q *faultlessRequest) { q.notices = append(q.notices, q.notices[0]) }, oneTimer},
		"a notice without a step":                     {func(q *faultlessRequest) { q.notices[0].Epoch = 2 }, oneTimer},
		"the outbox has a duplicate notice":           {func(q *faultlessRequest) { q.notices = append(q.notices, q.notices[0]) }, toldOnce},
		"a notice is not delivered":                   {func(q *faultlessRequest) { q.tellings = q.tellings[1:] }, toldOnce},
		"a notice is never completed":                 {func(q *faultlessRequest) { q.notices[0].paper.DueAt = noon }, toldOnce},
		"a delivered notice is not in the outbox":     {func(q *faultlessRequest) { q.tellings[0].Notice.Targets = nil }, durable},
		"a message without a delivery":                {func(q *faultlessRequest) { q.tellings[0].Notice.Key += "x" }, durable},
		"a target has no delivery":                    {func(q *faultlessRequest) { q.sent, q.tellings = q.sent[1:], q.tellings[1:] }, toldOnce},
		"a delivery is never completed":               {func(q *faultlessRequest) { q.sent[0].paper.DueAt = noon }, toldOnce},
		"a notice is delivered twice without a fault": {func(q *faultlessRequest) { q.tellings = append(q.tellings, q.tellings[0]) }, toldOnce},
		"no resolve notice": {func(q *faultlessRequest) {
			n := q.notice(desk.NoticeResolve)
			q.notices = slices.Delete(q.notices, n, n+1)
		}, allClear},
		"two resolve notices":                     {func(q *faultlessRequest) { q.notices = append(q.notices, q.notices[q.notice(desk.NoticeResolve)]) }, allClear},
		"another target gets the resolve notice":  {func(q *faultlessRequest) { q.notices[q.notice(desk.NoticeResolve)].Targets = []string{"oncall:boss"} }, allClear},
		"the last delivery is a page":             {func(q *faultlessRequest) { q.tellings[q.message(desk.NoticePage)].at = time.Hour }, allClear},
		"the resolve notice has another incident": {func(q *faultlessRequest) { q.notices[q.notice(desk.NoticeResolve)].Incident = "another" }, allClear},
		"a skipped notice is a resolve notice": {func(q *faultlessRequest) {
			key := q.tellings[q.message(desk.NoticeResolve)].Notice.Key
			q.tellings = slices.DeleteFunc(q.tellings, func(t receivedNotice) bool { return t.Notice.Key == key })
			q.sent[slices.IndexFunc(q.sent, func(d deliveryRecord) bool { return d.paper.ID == key })].paper.Index = []byte(`{"state":"obsolete"}`)
		}, toldOnce},
		"a page is not recorded": {func(q *faultlessRequest) { q.doc.RouteProgress.Paged = nil }, allClear},
	} {
		t.Run(name, func(t *testing.T) {
			q := newFaultlessRequest(t)
			test.spoil(q)
			found := q.check()
			if !slices.ContainsFunc(found, func(v violation) bool { return v.broken == test.want }) {
				t.Errorf("found %v, want %s", found, test.want)
			}
		})
	}
}

// A duplicate delivery is excused by a crash or a cut between the two, and by nothing that comes
// later.
func TestDeskChecks_ExcuseKilledReplicasAndCutConnections(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(q *faultlessRequest)
		want  string
	}{
		"no fault":                               {func(q *faultlessRequest) {}, ""},
		"it died":                                {func(q *faultlessRequest) { q.ends[1] = exitState{0, noon.Add(2 * time.Second)} }, "died"},
		"it crashed afterwards":                  {func(q *faultlessRequest) { q.ends[1] = exitState{0, noon.Add(4 * time.Second)} }, ""},
		"it was cut off":                         {func(q *faultlessRequest) { q.cuts = []cut{{0, 0, 2 * time.Second}} }, "cut off"},
		"it logged a failure":                    {func(q *faultlessRequest) { q.failed = func(int64, string) bool { return true } }, ""},
		"it logged a failure, and others follow": {func(q *faultlessRequest) { q.rest, q.failed = 2, func(int64, string) bool { return true } }, "could not note it"},
		"it crashed in between":                  {func(q *faultlessRequest) { q.ends[1] = exitState{0, noon.Add(time.Second - 1)} }, "died"},
		"it was cut off long before":             {func(q *faultlessRequest) { q.cuts = []cut{{0, -time.Minute, -2 * time.Second}} }, ""},
		"another one was cut off":                {func(q *faultlessRequest) { q.cuts = []cut{{1, 0, 2 * time.Second}} }, ""},
		"the database was down":                  {func(q *faultlessRequest) { q.cuts = []cut{{everywhere, 0, 2 * time.Second}} }, "cut off"},
		"it was cut off too late":                {func(q *faultlessRequest) { q.cuts = []cut{{0, 4 * time.Second, 5 * time.Second}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			q := newFaultlessRequest(t)
			again := q.tellings[0]
			again.came, again.at, again.Life = 3*time.Second, 3*time.Second, 2
			q.tellings = append(q.tellings, again)
			test.fault(q)
			excused, found := q.twice([]*requestRecord{q.requestRecord})
			if excused[test.want] != 1 || (len(found) == 0) != (test.want != "") {
				t.Errorf("%v, %v; want %q", excused, found, test.want)
			}
		})
	}
}

// The checks detect a different reply under the same id, and a page that is delivered last.
func TestDeskChecks_CheckEveryField(t *testing.T) {
	q := newFaultlessRequest(t)
	q.of("ann").answer = q.of("cid").answer
	q.run.Resumes = []store.Resume{{Actor: "ann", ID: "id of ann"}}
	q.run.Documents = []store.Document{{Kind: "resume", ID: ident.Derive("res", "ann", "id of ann")}}
	if len(q.check()) == 0 {
		t.Error("two replies are recorded")
	}
	q = newFaultlessRequest(t)
	q.tellings[q.message(desk.NoticePage)].at = time.Hour
	q.notices[q.notice(desk.NoticePage)].paper.Index = []byte(`{"tries":2,"result":"obsolete"}`)
	if len(q.check()) == 0 {
		t.Error("a page that is delivered last is not detected")
	}
}
