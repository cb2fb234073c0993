package crashpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
)

const account = "acme"

// op is a submission and its replies. It is repeated until there is a reply.
type op struct {
	request executor.RunRequest
	// The content, if it answers an interrupt.
	interrupt string
	verb      fermata.Verb
	paid      payment // what an approval approves
	sent      time.Time
	under     int      // calls in progress
	told      []string // each reply; empty if unknown
	heard     []string // the results, for callers that waited
}

// people are the people of a simulation.
type people struct {
	sim    *sim
	ops    []*op
	looker *executor.Executor // for observers
}

// act does one random thing.
func (c *people) act() {
	s := c.sim
	dice := s.rng.IntN(100)
	again := c.unanswered()
	switch {
	case len(again) > 0 && dice < 60:
		c.send(again[s.rng.IntN(len(again))])
	case len(c.ops) == 0, dice < 8 && len(s.runs()) < 3:
		c.start()
	case dice < 11:
		c.cancel()
	case dice < 20:
		c.send(c.ops[s.rng.IntN(len(c.ops))]) // again, much later
	default:
		c.answer()
	}
}

// start starts an order, perhaps one that supersedes another.
func (c *people) start() {
	s := c.sim
	o := order{Key: fmt.Sprint("order-", len(c.ops)), Cents: 100 * (1 + s.rng.IntN(5))}
	input, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	request := executor.RunRequest{
		Account: account, StateKey: fmt.Sprint("key-", s.rng.IntN(2)), Graph: "inproc:" + string(kinds[s.rng.IntN(len(kinds))]), Input: input,
		Actor: "req", Supersede: s.rng.IntN(2) == 0,
	}
	c.sendLater(&op{request: request})
}

// cancel ends a run.
func (c *people) cancel() {
	s := c.sim
	alive, runs := s.alive(), s.runs()
	if len(alive) == 0 || len(runs) == 0 || s.rng.IntN(2) == 0 {
		return
	}
	e, key := alive[s.rng.IntN(len(alive))].exec, runs[s.rng.IntN(len(runs))].StateKey
	s.note("cancel", key)
	go func() { _ = e.Cancel(s.t.Context(), account, key, desk.From{Actor: desk.PersonActor("eve", "")}) }()
}

// asked returns the interrupts of all runs, open ones first.
func (c *people) asked() (open, all []store.InboxItem) {
	all, err := c.sim.store.InboxItems(c.sim.t.Context(), account, store.InboxFilter{Limit: 1000})
	if err != nil {
		c.sim.t.Fatal(err)
	}
	for _, i := range all {
		if i.State == store.InterruptPending {
			open = append(open, i)
		}
	}
	return open, all
}

// answer answers an interrupt, mostly an open one; perhaps twice at the same time, perhaps with
// another answer under an old id.
func (c *people) answer() {
	s := c.sim
	open, all := c.asked()
	if s.rng.IntN(6) == 0 {
		open = all
	}
	if len(open) == 0 {
		return
	}
	o := c.newSubmission(open[s.rng.IntN(len(open))])
	if s.rng.IntN(25) == 0 && len(c.ops) > 0 {
		// another person's, or used before
		o.request.ResumeID = cmp.Or(c.ops[s.rng.IntN(len(c.ops))].request.ResumeID, o.request.ResumeID)
	}
	c.sendLater(o)
	if s.rng.IntN(4) == 0 {
		c.send(o)
	}
}

// answerOne repeats a submission without a reply, or else answers the oldest open interrupt.
func (c *people) answerOne() {
	if again := c.unanswered(); len(again) > 0 {
		c.send(again[0])
	} else if open, _ := c.asked(); len(open) > 0 {
		c.sendLater(c.newSubmission(open[0]))
	}
}

// newSubmission returns an answer to an interrupt.
func (c *people) newSubmission(i store.InboxItem) *op {
	s := c.sim
	o := &op{interrupt: i.ID, request: executor.RunRequest{
		Account: account, StateKey: i.StateKey, ResumeID: fmt.Sprint("resume-", len(c.ops)), Actor: []string{"ann", "bob", "eve"}[s.rng.IntN(3)],
	}}
	view, err := s.reader().GetRequest(s.t.Context(), account, i.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	value := ""
	switch i.Kind {
	case fermata.EffectInDoubt.Name():
		value = c.truth(view.Data, i.State == store.InterruptPending)
	default:
		value = c.decision(o, view.Data)
	}
	o.request.Targets = map[string]executor.Answer{i.ID: {Value: json.RawMessage(value)}}
	return o
}

// decision is an approval, a rejection, or an edited approval.
func (c *people) decision(o *op, question json.RawMessage) string {
	s := c.sim
	var asked struct {
		Args payment `json:"args"`
	}
	if err := json.Unmarshal(question, &asked); err != nil {
		s.t.Fatal(err)
	}
	o.verb, o.paid = fermata.VerbApprove, asked.Args
	switch s.rng.IntN(5) {
	case 0:
		o.verb = fermata.VerbReject
		return `{"verb":"reject","reason":"no"}`
	case 1:
		o.paid.Cents++
		args, err := json.Marshal(o.paid)
		if err != nil {
			s.t.Fatal(err)
		}
		return `{"verb":"approve","args":` + string(args) + `}`
	}
	return `{"verb":"approve"}`
}

// truth returns whether an effect happened, for a person who has checked the target. If it did not
// happen, they have made sure that a late call does not arrive. That does not apply after an
// answer: then the call in transit is the next attempt, which that answer allows.
func (c *people) truth(question json.RawMessage, open bool) string {
	s := c.sim
	var asked fermata.InDoubtRequest
	if err := json.Unmarshal(question, &asked); err != nil {
		s.t.Fatal(err)
	}
	if receipt, happened := s.outside.Receipt(asked.Key); happened {
		said, err := json.Marshal(fermata.EffectResolution{Happened: true, Receipt: mustJSON(s.t, receipt)})
		if err != nil {
			s.t.Fatal(err)
		}
		return string(said)
	}
	if open {
		s.block(asked.Key)
	}
	return `{"happened":false}`
}

// reader returns an executor for observers.
func (c *people) reader() *executor.Executor {
	if c.looker == nil {
		e, err := executor.New(config(c.sim.t, c.sim.store, (&effectClient{}).flows(c.sim.t)))
		if err != nil {
			c.sim.t.Fatal(err)
		}
		c.looker = e
	}
	return c.looker
}

// sendLater sends a submission for the first time.
func (c *people) sendLater(o *op) {
	c.ops = append(c.ops, o)
	c.send(o)
}

// send sends a submission to one of the replicas.
func (c *people) send(o *op) {
	s := c.sim
	alive := s.alive()
	if len(alive) == 0 {
		return
	}
	o.sent = time.Now()
	e := alive[s.rng.IntN(len(alive))].exec
	s.note("send", o.request.ResumeID, o.interrupt, string(o.verb))
	o.under++
	request := o.request
	request.Wait = []time.Duration{-1, 15 * time.Second, 5 * time.Minute}[s.rng.IntN(3)]
	go func() {
		outcome, err := e.Run(s.t.Context(), request)
		s.mu.Lock()
		defer s.mu.Unlock()
		o.under--
		o.recordReply(s.t, outcome, err)
	}()
}

// recordReply records a reply.
func (o *op) recordReply(t *testing.T, outcome fermata.Outcome, err error) {
	if text := summarize(outcome, err); text != "" {
		o.told = append(o.told, text)
	}
	if err == nil && outcome != nil {
		o.heard = append(o.heard, string(mustJSON(t, outcome)))
	}
}

// The replies, as far as they must stay the same.
const (
	taken  = "taken"
	reused = "reused"
	inUse  = "in use"
)

// summarize returns a reply in one word, or "" if the result is unknown.
func summarize(outcome fermata.Outcome, err error) string {
	refused, isRefused := errors.AsType[*executor.RefusedError](err)
	switch {
	case err == nil && outcome != nil, errors.Is(err, executor.ErrPending):
		return taken
	case errors.Is(err, errDead), errors.Is(err, errConnectionLost), errors.Is(err, executor.ErrClosed):
		return ""
	case isRefused:
		return string(refused.Result)
	case errors.Is(err, executor.ErrResumeIDReused):
		return reused
	case errors.Is(err, executor.ErrStateKeyInUse):
		return inUse
	}
	return "" // the result is unknown after any other error
}

// unanswered returns the submissions without a reply and without a call in progress.
func (c *people) unanswered() (all []*op) {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	for _, o := range c.ops {
		if len(o.told) == 0 && o.under == 0 {
			all = append(all, o)
		}
	}
	return all
}

// underWay reports whether a call is in progress.
func (c *people) underWay() bool {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return slices.ContainsFunc(c.ops, func(o *op) bool { return o.under > 0 })
}

// allAnswered reports whether every submission has a reply.
func (c *people) allAnswered() bool {
	c.sim.mu.Lock()
	defer c.sim.mu.Unlock()
	return !slices.ContainsFunc(c.ops, func(o *op) bool { return len(o.told) == 0 || o.under > 0 })
}
