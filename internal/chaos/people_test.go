//go:build unix

package chaos

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// task is an order that people work on.
type task struct {
	account string
	key     string
	amount  int

	mu   sync.Mutex
	said []decision // so far
}

// decision is a submission that can be repeated.
type decision struct {
	request
	aims []intendedVote
}

func (e *task) remember(d decision) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, d)
}

// old returns some earlier decision.
func (e *task) old(rng *rand.Rand) (decision, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.said) == 0 {
		return decision{}, false
	}
	return e.said[rng.IntN(len(e.said))], true
}

// person is a simulated person.
type person struct {
	*world
	name    string
	rng     *rand.Rand
	ids     int
	against []intendedVote // what they contradict
}

// percent returns true with a probability of n percent.
func (p *person) percent(n int) bool { return p.rng.IntN(100) < n }

// another returns a person who acts at the same time, with their own random choices.
func (p *person) another(name string) *person {
	return &person{world: p.world, name: name, rng: rand.New(rand.NewPCG(p.rng.Uint64(), 0))}
}

// work works on tasks until there are none.
func (p *person) work() {
	for {
		e, todo := p.board.take(p.rng)
		switch todo {
		case toBegin:
			p.begin(e)
		case toAttend:
			p.attend(e)
		case toWait:
		case toLeave:
			return
		}
		select {
		case <-p.over.Done():
			return
		case <-time.After(time.Duration(p.rng.IntN(30)) * time.Millisecond):
		}
	}
}

// begin starts an order, sometimes twice at the same time.
func (p *person) begin(e *task) {
	r := request{Account: account, Key: e.key, Amount: e.amount, Actor: p.name}
	p.twice(20, func(p *person) { p.askUntilAnswered(p.rng, doStart, r, nil) })
	p.board.begun(e)
}

// twice does something, and with a probability of percent does it again at the same time.
func (p *person) twice(percent int, do func(*person)) {
	var wg sync.WaitGroup
	if p.percent(percent) {
		twin := p.another(p.name)
		wg.Go(func() { do(twin) })
	}
	do(p)
	wg.Wait()
}

// attend views an order and acts on it.
func (p *person) attend(e *task) {
	r := request{Account: account, Key: e.key, Actor: p.name}
	reply := p.askUntilAnswered(p.rng, doLook, r, nil)
	if reply.View == nil {
		return
	}
	if !reply.View.Status.Active() {
		p.board.finished(e)
		return
	}
	open := reply.View.open()
	p.deadlines(open)
	switch {
	case p.percent(15):
		p.repeat(e)
	case p.percent(3):
		p.trespass(e, open)
	case p.percent(2) && !p.board.draining():
		p.askUntilAnswered(p.rng, doCancel, r, nil)
	case len(open) > 0:
		p.decide(e, open)
	case reply.View.Status == store.StatusParked:
		p.askUntilAnswered(p.rng, doRetry, r, nil)
	}
}

// repeat repeats an old submission: the same, or another one under the same id.
func (p *person) repeat(e *task) {
	d, ok := e.old(p.rng)
	if !ok {
		return
	}
	if p.percent(20) {
		d.Targets = maps.Clone(d.Targets)
		d.Targets["something else"] = json.RawMessage(`true`)
		d.aims = nil
	}
	p.askUntilAnswered(p.rng, doDecide, d.request, d.aims)
}

// trespass decides under an account that has no such order.
func (p *person) trespass(e *task, open []question) {
	r := request{Account: "other", Key: e.key, Actor: p.name, ResumeID: p.nextID(), Targets: map[string]json.RawMessage{}}
	for _, q := range open {
		r.Targets[q.ID] = json.RawMessage(`{"verb":"approve"}`)
	}
	if len(open) > 0 {
		p.askUntilAnswered(p.rng, doDecide, r, nil)
	}
}

func (p *person) nextID() string {
	p.ids++
	return fmt.Sprintf("%s-%d-%08x", p.name, p.ids, p.rng.Uint32())
}

// decide answers some of the open questions, perhaps twice, perhaps against another person.
func (p *person) decide(e *task, open []question) {
	if len(open) > 1 && p.percent(50) {
		open = []question{open[p.rng.IntN(len(open))]}
	}
	mine, ok := p.answerTo(e, open)
	if !ok {
		return
	}
	e.remember(mine)
	var wg sync.WaitGroup
	if p.percent(20) {
		rival := p.another(p.name + "'s rival")
		rival.against = mine.aims
		if theirs, ok := rival.answerTo(e, open); ok {
			e.remember(theirs)
			wg.Go(func() { rival.askUntilAnswered(rival.rng, doDecide, theirs.request, theirs.aims) })
		}
	}
	p.twice(25, func(p *person) { p.askUntilAnswered(p.rng, doDecide, mine.request, mine.aims) })
	wg.Wait()
}

// answerTo creates a decision; false if nothing can be answered yet.
func (p *person) answerTo(e *task, open []question) (decision, bool) {
	d := decision{request: request{Account: account, Key: e.key, Actor: p.name, ResumeID: p.nextID(), Targets: make(map[string]json.RawMessage)}}
	for _, q := range open {
		if value, meant, ok := p.say(q); ok {
			d.Targets[q.ID] = value
			d.aims = append(d.aims, meant)
		}
	}
	return d, len(d.aims) > 0
}

// say creates an answer to one question, and its meaning.
func (p *person) say(q question) (json.RawMessage, intendedVote, bool) {
	if p.percent(5) {
		list := nonsense[q.Kind]
		return json.RawMessage(list[p.rng.IntN(len(list))]), intendedVote{Interrupt: q.ID, Kind: q.Kind, Nonsense: true}, true
	}
	switch q.Kind {
	case fermata.Approval.Name():
		return p.sayApproval(q)
	case fermata.EffectInDoubt.Name():
		return p.sayWhatHappened(q)
	case picks.Name():
		word := []string{"red", "blue", "red", "blue", "again"}[p.rng.IntN(5)]
		if theirs := p.opposed(q); theirs != nil && theirs.Word == word {
			word = map[string]string{"red": "blue", "blue": "again", "again": "red"}[word]
		}
		return json.RawMessage(fmt.Sprintf("%q", word)), intendedVote{Interrupt: q.ID, Kind: q.Kind, Gate: pick, Word: word}, true
	}
	return nil, intendedVote{}, false
}

// opposed returns the vote that this person contradicts, if any.
func (p *person) opposed(q question) *intendedVote {
	n := slices.IndexFunc(p.against, func(theirs intendedVote) bool { return theirs.Interrupt == q.ID })
	if n < 0 {
		return nil
	}
	return &p.against[n]
}

// nonsense has invalid answers by kind.
var nonsense = map[string][]string{
	fermata.Approval.Name(): {
		`"approve"`, `{}`, `{"verb":"maybe"}`, `{"verb":"expire"}`, `{"verb":"approve","admin":true}`, `{"verb":"reject","Verb":"approve"}`,
		`{"verb":"approve","args":{"order":7}}`, `{"verb":"approve","verb":"reject"}`, `null`,
	},
	fermata.EffectInDoubt.Name(): {`"yes"`, `{}`, `{"happened":"no"}`, `{"happened":true,"receipt":7}`, `{"happened":false,"receipt":"r"}`},
	picks.Name():                 {`"green"`, `7`, `{"pick":"red"}`, `""`, `["red"]`},
}

func (p *person) sayApproval(q question) (json.RawMessage, intendedVote, bool) {
	var asked fermata.ApprovalRequest
	var args action
	if json.Unmarshal(q.Data, &asked) != nil || json.Unmarshal(asked.Args, &args) != nil {
		p.fault("invalid question %s: %s", q.ID, q.Data)
		return nil, intendedVote{}, false
	}
	meant := intendedVote{Interrupt: q.ID, Kind: q.Kind, Gate: args.Gate}
	reject := p.percent(25)
	if theirs := p.opposed(q); theirs != nil {
		reject = theirs.Approve != nil
	}
	if reject {
		meant.Word = "reject"
		return json.RawMessage(`{"verb":"reject","reason":"no"}`), meant, true
	}
	meant.Approve = &args
	if !p.percent(15) {
		return json.RawMessage(`{"verb":"approve"}`), meant, true
	}
	args.Amount += 1 + p.rng.IntN(100)
	edited, err := json.Marshal(struct {
		Verb string `json:"verb"`
		Args action `json:"args"`
	}{"approve", args})
	return edited, meant, err == nil
}

// sayWhatHappened answers truthfully. That an effect happened is visible at the target. That it did
// not happen can be said only when every process that might execute it is gone, and the target
// refuses calls in transit. Before that there is no answer.
func (p *person) sayWhatHappened(q question) (json.RawMessage, intendedVote, bool) {
	var asked fermata.InDoubtRequest
	var args action
	if json.Unmarshal(q.Data, &asked) != nil || json.Unmarshal(asked.Args, &args) != nil {
		p.fault("invalid question %s: %s", q.ID, q.Data)
		return nil, intendedVote{}, false
	}
	suspects := p.doubts.suspects(q.ID, p.fleet.latest)
	receipt, happened := p.sink.target.Receipt(asked.Key)
	if !happened && (!p.fleet.gone(suspects) || !p.sink.target.Block(asked.Key, suspects)) {
		return nil, intendedVote{}, false
	}
	meant := intendedVote{Interrupt: q.ID, Kind: q.Kind, Gate: args.Gate, Happened: &happened}
	if !happened {
		return json.RawMessage(`{"happened":false,"reason":"it is not there, and they will not do it"}`), meant, true
	}
	return json.RawMessage(fmt.Sprintf(`{"happened":true,"receipt":%q}`, receipt)), meant, true
}

// doubts has the effects in doubt, and the last replica that may still act on each.
type doubts struct {
	mu   sync.Mutex
	upTo map[string]int64
}

func (d *doubts) suspects(id string, latest func() int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.upTo[id]; !known {
		d.upTo[id] = latest()
	}
	return d.upTo[id]
}

// taskBoard has the tasks of all people.
type taskBoard struct {
	mu       sync.Mutex
	accounts []string // used in turn; defaults to account

	wanted  int // the number of parallel tasks; 0 if there are to be no more
	made    int
	busy    map[*task]bool // false while a person starts it
	settled int
	seen    map[desk.Outcome]int // the outcomes that were seen
}

// todo is what to do next.
type todo int

const (
	toBegin todo = iota
	toAttend
	toWait  // another person is about to start a task
	toLeave // everything is settled, and no more is wanted
)

// take returns a task and what to do.
func (b *taskBoard) take(rng *rand.Rand) (*task, todo) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.busy) < b.wanted {
		b.made++
		e := &task{account: account, key: fmt.Sprintf("order-%d", b.made), amount: 1 + rng.IntN(1000)}
		if len(b.accounts) > 0 {
			e.account = b.accounts[b.made%len(b.accounts)]
		}
		b.busy[e] = false
		return e, toBegin
	}
	var ready []*task
	for e, begun := range b.busy {
		if begun {
			ready = append(ready, e)
		}
	}
	switch {
	case len(b.busy) == 0:
		return nil, toLeave
	case len(ready) == 0:
		return nil, toWait
	}
	return ready[rng.IntN(len(ready))], toAttend
}

func (b *taskBoard) begun(e *task) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy[e] = true
}

// finished marks a task as settled, and reports whether it was the first to do so.
func (b *taskBoard) finished(e *task) (first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, first = b.busy[e]; first {
		delete(b.busy, e)
		b.settled++
	}
	return first
}

// saw records the outcome of a task.
func (b *taskBoard) saw(outcome desk.Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[outcome]++
}

// hasSeen reports whether each of these outcomes was seen so often.
func (b *taskBoard) hasSeen(least int, outcomes ...desk.Outcome) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !slices.ContainsFunc(outcomes, func(o desk.Outcome) bool { return b.seen[o] < least })
}

// close stops creating tasks. Existing ones continue.
func (b *taskBoard) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wanted = 0
}

func (b *taskBoard) draining() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wanted == 0
}

// left returns the number of tasks that are not settled, and some of their keys.
func (b *taskBoard) left() (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := range b.busy {
		keys = append(keys, e.key)
	}
	slices.Sort(keys)
	return keys
}
