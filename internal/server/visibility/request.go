package visibility

import (
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

func (c Checker) Request(q executor.RequestView) api.Request {
	r := api.Request{
		ID: q.ID, StateKey: q.StateKey, GraphID: q.Provider + ":" + q.Graph, Address: q.Address, Kind: q.Kind, Data: q.Data, Shown: q.ShownDigest,
		AnswerSchema: q.AnswerSchema, State: string(q.State), CreatedAt: q.Created, Unreadable: q.Unreadable,
	}
	if !q.Deadline.IsZero() {
		r.Deadline = &q.Deadline
	}
	if q.Request != nil {
		subject := q.Request.Subject
		r.Supersedes, r.Changed, r.Refused = subject.Supersedes, subject.Changed, subject.Refused
	}
	switch q.State {
	case store.InterruptPending:
		r.Next = c.nextNodes(q)
	case store.InterruptDecided:
		r.Decision = &api.Decision{Verdict: verdictOf(q), Answer: q.Answer, By: q.DecidedBy, Via: q.DecidedVia, Source: string(q.Source), At: q.DecidedAt, ApprovedDigest: q.ApprovedDigest}
		decidedByClock(r.Decision, q)
		if q.Request != nil && q.Request.Decision != nil {
			r.Decision.Conditions = Conditions(q.Request.Decision.Conditions)
		}
	}
	return r
}

// verdictOf returns the verdict of a decided request. The store has one verdict for rejections and
// for returns; the answer tells them apart.
func verdictOf(q executor.RequestView) string {
	var answer struct {
		Verb fermata.Verb `json:"verb"`
	}
	if q.Verdict == store.VerdictReject && json.Unmarshal(q.Answer, &answer) == nil && answer.Verb == fermata.VerbReturn {
		return string(fermata.VerbReturn)
	}
	return string(q.Verdict)
}

// decidedByClock shows what a rule decided at the deadline: a rejection, or the default answer. The
// store says only that the request expired.
func decidedByClock(d *api.Decision, q executor.RequestView) {
	if q.Verdict != store.VerdictExpire || q.Request == nil || q.Request.Decision == nil {
		return
	}
	switch final := q.Request.Decision; final.Outcome {
	case desk.OutcomeRejected:
		d.Verdict = string(store.VerdictReject)
		d.Answer, _ = json.Marshal(fermata.Decision{Verb: fermata.VerbReject, Reason: final.Reason, By: desk.ClockName, At: final.At}) // strings and a time
	case desk.OutcomeAnswered:
		d.Verdict, d.Answer = string(store.VerdictAnswer), final.Value
	}
}

// nextNodes returns where the run can continue after the answer, if this program knows its graph.
func (c Checker) nextNodes(q executor.RequestView) [][]string {
	g, err := c.Executor.Graph(q.Provider + ":" + q.Graph)
	if err != nil || g.Drawing == nil {
		return nil
	}
	at, err := fermata.ParseAddress(q.Address)
	if err != nil {
		return nil
	}
	return g.Drawing.Next(at)
}

// Conditions returns the conditions of an approval, or nil if there are none.
func Conditions(c fermata.Conditions) *fermata.Conditions {
	if c.IsZero() {
		return nil
	}
	return &c
}
