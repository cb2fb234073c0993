package providertest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/providertest"
)

// toy is the smallest provider that passes the suite: a state of a few fields, saved after each
// step. The suite must find each of its named defects.
type toy struct {
	world  *providertest.World
	raw    store.Store // only a broken one has this
	broken string
	memory map[string]toyState
	gone   map[string]bool
}

// toyState is the progress of a run.
type toyState struct {
	version int64
	Round   int      `json:"round"`
	Done    []string `json:"done,omitempty"`
	Over    bool     `json:"over,omitempty"`
}

func (p *toy) is(way string) bool { return p.broken == way }

func (p *toy) Name() string {
	if p.is("a name with a colon") {
		return "to:y"
	}
	return "toy"
}

func (p *toy) Graphs() []provider.Graph {
	return []provider.Graph{{Name: "content-review"}, {Name: "pair"}, {Name: "drop"}}
}

func (p *toy) Capabilities() provider.Capabilities {
	return provider.Capabilities{Parallel: true, PartialResume: true, Effects: true, Policy: true}
}

func (p *toy) Delete(_ context.Context, run provider.Run) error {
	if p.is("deletes once") && p.gone[run.ID] {
		return errors.New("it is gone")
	}
	p.gone[run.ID] = true
	return nil
}

func (p *toy) key(run provider.Run) store.Key {
	if p.is("one account for all") {
		return store.Key{Account: "acme", Run: run.ID}
	}
	return store.Key{Account: run.Account, Run: run.ID}
}

func (p *toy) load(ctx context.Context, run provider.Run) (s toyState, err error) {
	if p.is("keeps it in memory") {
		return p.memory[run.ID], nil
	}
	checkpoint, err := run.State.Load(ctx, p.key(run))
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(checkpoint.Parts["toy"], &s)
	s.version = checkpoint.Version
	return s, err
}

func (p *toy) save(ctx context.Context, run provider.Run, s *toyState) error {
	if p.is("keeps it in memory") {
		p.memory[run.ID] = *s
		return nil
	}
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	delta := store.Delta{Put: []store.Part{{Name: "toy", Data: data}}}
	version, err := run.State.Save(ctx, p.key(run), s.version, delta)
	if p.is("writes without the right to") && (errors.Is(err, store.ErrFenced) || errors.Is(err, store.ErrStale)) {
		now, _ := p.raw.Load(ctx, p.key(run))
		version, err = p.raw.Save(ctx, p.key(run), now.Version, delta)
	}
	s.version = version
	return err
}

// step does a piece of work once, as far as possible.
func (p *toy) step(ctx context.Context, run provider.Run, s *toyState, name string) error {
	if slices.Contains(s.Done, name) && !p.is("does it again") {
		return nil
	}
	if err := p.world.Work(ctx, name); err != nil {
		return err
	}
	s.Done = append(s.Done, name)
	return p.save(ctx, run, s)
}

var errInput = errors.New("the input is invalid")

func (p *toy) Execute(ctx context.Context, e provider.Execution) (provider.Result, error) {
	if p.is("leaves goroutines behind") {
		go func() { select {} }()
	}
	var result provider.Result
	for _, answer := range e.Answers {
		result.Applied = append(result.Applied, answer.InterruptID)
	}
	var err error
	result.Outcome, err = p.rest(ctx, e)
	switch {
	case errors.Is(err, errInput) && !p.is("bad input is an error"):
		result.Outcome = provider.Failed{Code: "invalid_input", Message: "the input is invalid"}
		if p.is("the input is in the message") {
			result.Outcome = provider.Failed{Code: "invalid_input", Message: string(e.Input)}
		}
		return result, nil
	case err != nil && (p.is("an error is a failure") || errors.Is(err, context.Canceled) && p.is("cancelled is failed")):
		return provider.Result{Outcome: provider.Failed{Code: "failed"}}, nil
	case err != nil && p.is("the ref is in an error"):
		return provider.Result{}, fmt.Errorf("%s: %w", e.Run.Ref, err)
	case err != nil:
		return provider.Result{}, err
	case p.is("takes no answer"):
		result.Applied = nil
	}
	return result, nil
}

func (p *toy) rest(ctx context.Context, e provider.Execution) (provider.Outcome, error) {
	s, err := p.load(ctx, e.Run)
	if errors.Is(err, store.ErrNotFound) || err == nil && s.Round == 0 {
		if s, err = p.begin(ctx, e); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	switch e.Run.Graph {
	case "content-review":
		return p.review(ctx, e, s)
	case "pair":
		return p.pair(ctx, e, s)
	case "drop":
		return p.drop(ctx, e, s)
	}
	return nil, errors.New("no such graph")
}

func (p *toy) begin(ctx context.Context, e provider.Execution) (toyState, error) {
	s := toyState{Round: 1}
	var input struct {
		Topic string `json:"topic,omitempty"`
		Table string `json:"table,omitempty"`
	}
	known := slices.ContainsFunc(p.Graphs(), func(g provider.Graph) bool { return g.Name == e.Run.Graph })
	switch {
	case !known && p.is("an unknown graph fails"):
		return s, errInput
	case !known:
		return s, errors.New("no such graph")
	case strictjson.Decode(e.Input, &input) != nil:
		return s, errInput
	case ctx.Err() != nil:
		return s, ctx.Err()
	}
	if err := e.Owner.SetRef(ctx, ident.Random("ref")); err != nil {
		return s, err
	}
	if e.Run.Graph == "content-review" {
		return s, p.step(ctx, e.Run, &s, "draft")
	}
	return s, p.save(ctx, e.Run, &s)
}

// question returns an interrupt whose id describes it.
func (p *toy) question(run provider.Run, about, kind string, data any) (provider.Interrupt, error) {
	text, err := json.Marshal(data)
	id := ident.Derive("int", run.ID, about)
	if p.is("one id for all runs") {
		id = ident.Derive("int", about)
	}
	return provider.Interrupt{ID: id, Address: fermata.Address{{Type: fermata.SegmentNode, ID: about}}, Envelope: fermata.Envelope{Kind: kind, Data: text}}, err
}

func answerTo(e provider.Execution, q provider.Interrupt) *provider.Answer {
	for i := range e.Answers {
		if e.Answers[i].InterruptID == q.ID {
			return &e.Answers[i]
		}
	}
	return nil
}

func (p *toy) roundQuestion(run provider.Run, s toyState) (provider.Interrupt, error) {
	round := s.Round
	if p.is("one id for all rounds") {
		round = 1
	}
	data := fmt.Sprint("round ", s.Round)
	if p.is("the ref is in a question") {
		data += run.Ref
	}
	return p.question(run, fmt.Sprint("review ", round), "toy-review", data)
}

func (p *toy) review(ctx context.Context, e provider.Execution, s toyState) (provider.Outcome, error) {
	for !s.Over {
		if p.is("does it again") {
			if err := p.step(ctx, e.Run, &s, "draft"); err != nil {
				return nil, err
			}
		}
		q, err := p.roundQuestion(e.Run, s)
		if err != nil {
			return nil, err
		}
		answer := answerTo(e, q)
		switch {
		case answer == nil:
			return provider.Waiting{Interrupts: []provider.Interrupt{q}}, nil
		case answer.Expired && !p.is("a lapse is a yes"):
			return provider.Failed{Code: "expired"}, nil
		case answer.Expired || said(answer.Data).Action == "approve":
			if err := p.step(ctx, e.Run, &s, "publish"); err != nil {
				return nil, err
			}
			s.Over = true
		}
		s.Round++
		if err := p.save(ctx, e.Run, &s); err != nil {
			return nil, err
		}
		if p.is("one id for all rounds") && !s.Over {
			e.Answers = nil
		}
	}
	return provider.Completed{Output: json.RawMessage(`{}`)}, nil
}

type toyAnswer struct {
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
}

func said(data json.RawMessage) (answer toyAnswer) {
	_ = json.Unmarshal(data, &answer) // CheckAnswer has accepted it
	return answer
}

func (p *toy) pair(ctx context.Context, e provider.Execution, s toyState) (provider.Outcome, error) {
	var open []provider.Interrupt
	answered := false
	for _, side := range []string{"left", "right"} {
		q, err := p.question(e.Run, side, "toy-review", side)
		switch {
		case err != nil:
			return nil, err
		case answerTo(e, q) != nil || answered && p.is("one answer for both"):
			answered = true
			if err := p.step(ctx, e.Run, &s, side); err != nil {
				return nil, err
			}
		case !slices.Contains(s.Done, side):
			if p.is("what is open gets another id") && len(s.Done) > 0 {
				q.ID += "x"
			}
			open = append(open, q)
		}
	}
	if p.is("asks one after the other") && len(open) > 0 {
		open = open[:1]
	}
	if len(open) > 0 {
		return provider.Waiting{Interrupts: open}, nil
	}
	return provider.Completed{}, nil
}

// The questions of the effect: whether it may happen, and whether it did.
func (p *toy) approval(run provider.Run) (fermata.ApprovalRequest, provider.Interrupt, error) {
	asked := fermata.ApprovalRequest{Action: "drop", Args: json.RawMessage(`"users"`), Fixed: true}
	var err error
	if asked.Digest, err = asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args}); err != nil {
		return asked, provider.Interrupt{}, err
	}
	q, err := p.question(run, "approval", fermata.Approval.Name(), asked)
	return asked, q, err
}

func (p *toy) doubt(run provider.Run, asked fermata.ApprovalRequest, try int) (provider.Interrupt, error) {
	return p.question(run, fmt.Sprint("doubt ", try), fermata.EffectInDoubt.Name(), fermata.InDoubtRequest{Action: asked.Action, Args: asked.Args, Digest: asked.Digest, Attempt: try})
}

func (p *toy) drop(ctx context.Context, e provider.Execution, s toyState) (provider.Outcome, error) {
	asked, q, err := p.approval(e.Run)
	if err != nil {
		return nil, err
	}
	if answer := answerTo(e, q); answer != nil && s.Round == 1 {
		var decision fermata.Decision
		if err := json.Unmarshal(answer.Data, &decision); err != nil {
			return nil, err
		}
		if decision.Verb != fermata.VerbApprove && !p.is("a no is a yes") {
			return provider.Failed{Code: "rejected"}, nil
		}
		s.Round = 2
	}
	if s.Round == 1 {
		return provider.Waiting{Interrupts: []provider.Interrupt{q}}, nil
	}
	for try := s.Round - 1; !s.Over; try++ {
		s.Round = try + 1
		if err := p.save(ctx, e.Run, &s); err != nil {
			return nil, err
		}
		intent := fermata.Intent{InterruptID: q.ID, Attempt: try, Action: asked.Action, Digest: asked.Digest, Key: q.ID}
		waiting, err := p.effect(ctx, e, &s, intent, asked)
		if err != nil || waiting != nil {
			return waiting, err
		}
	}
	return provider.Completed{}, p.save(ctx, e.Run, &s)
}

// effect performs the effect if it was not begun, and asks if it is in doubt. It returns nil if the
// next attempt may begin, or it is done.
func (p *toy) effect(ctx context.Context, e provider.Execution, s *toyState, intent fermata.Intent, asked fermata.ApprovalRequest) (provider.Outcome, error) {
	ledger := e.Owner.Ledger()
	line, begun, err := fermata.LedgerEntry{}, true, error(nil)
	if !p.is("does without the ledger") && !p.is("a no is a yes") {
		if line, begun, err = ledger.Begin(ctx, intent); err != nil {
			return nil, err
		}
	}
	switch {
	case begun || line.State != fermata.EffectSucceeded && p.is("tries again blindly"):
		if err := p.world.Work(ctx, "drop"); err != nil {
			return nil, err
		}
		s.Over = true
		if p.is("does without the ledger") || p.is("a no is a yes") {
			return nil, nil
		}
		return nil, ledger.End(ctx, intent, fermata.LedgerEntry{State: fermata.EffectSucceeded, Receipt: json.RawMessage(`"dropped"`)})
	case line.State == fermata.EffectSucceeded:
		s.Over = true
		return nil, nil
	}
	q, err := p.doubt(e.Run, asked, intent.Attempt)
	if err != nil {
		return nil, err
	}
	answer := answerTo(e, q)
	if answer == nil {
		return provider.Waiting{Interrupts: []provider.Interrupt{q}}, nil
	}
	var happened fermata.EffectResolution
	if err := json.Unmarshal(answer.Data, &happened); err != nil {
		return nil, err
	}
	s.Over = happened.Happened
	return nil, nil
}

func (p *toy) CheckAnswer(ctx context.Context, run provider.Run, interrupt string, answer json.RawMessage) (json.RawMessage, error) {
	s, err := p.load(ctx, run)
	if err != nil {
		return nil, err
	}
	open, err := p.open(run, s)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(open, func(q provider.Interrupt) bool { return q.ID == interrupt })
	if i < 0 {
		return nil, errors.New("unknown interrupt")
	}
	if p.is("a look writes") {
		_, err := p.raw.Save(ctx, p.key(run), s.version, store.Delta{Put: []store.Part{{Name: "looked", Data: []byte("1")}}})
		return answer, err
	}
	if p.is("anything fits") {
		return answer, nil
	}
	if kind, ok := fermata.LookupKind(open[i].Kind); ok {
		return kind.Check(open[i].Data, answer)
	}
	var said toyAnswer
	err = strictjson.Decode(answer, &said)
	if err == nil && said.Action != "approve" && said.Action != "revise" {
		err = errors.New("no such action")
	}
	switch {
	case err != nil && p.is("does not say that an answer is wrong"):
		return nil, err
	case err != nil:
		return nil, &fermata.AnswerError{ID: interrupt, Err: err}
	}
	return answer, nil
}

// open lists the possible interrupts of a run.
func (p *toy) open(run provider.Run, s toyState) ([]provider.Interrupt, error) {
	review, err1 := p.roundQuestion(run, s)
	left, err2 := p.question(run, "left", "toy-review", "left")
	right, err3 := p.question(run, "right", "toy-review", "right")
	asked, drop, err4 := p.approval(run)
	doubt, err5 := p.doubt(run, asked, max(s.Round-1, 1))
	err := cmp.Or(err1, err2, err3, err4, err5)
	switch run.Graph {
	case "content-review":
		return []provider.Interrupt{review}, err
	case "drop":
		return []provider.Interrupt{drop, doubt}, err
	}
	var open []provider.Interrupt
	for _, q := range []provider.Interrupt{left, right} {
		if !slices.Contains(s.Done, q.Address[0].ID) {
			open = append(open, q)
		}
	}
	return open, err
}
