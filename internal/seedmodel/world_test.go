package seedmodel

import "fmt"

// The bounds of the model. A question is a gate of one generation of the run: if a run is restarted
// under its state key, its gates ask again.
const (
	maxRequests  = 3
	maxGates     = 3
	maxQuestions = 2 * maxGates
	noQuestion   = maxQuestions
)

// world is one state of the row, the provider, the requests and the outside world. Equal values are
// equal states.
type world struct {
	row      row
	provider provider
	requests [maxRequests]request
	left     faultBudget
	outside  externalWorld
}

// row is what the design stores of a run.
type row struct {
	status    status
	lock      string // a resume id, or "" if it is free
	stale     bool   // it was taken more than 30 seconds ago
	last      string // the last resume id
	lastError bool   // the cached result is an error

	// the holder of the lock, or nobody if it died; the design does not store it, but the
	// invariants use it
	holder party
}

// party is one of the requests, or nobody.
type party int

const nobody party = 0

func partyOf(request int) party { return party(request + 1) }

type status int

const (
	active status = iota
	completed
	expired
)

// provider is the graph's own state: gates that are passed one after the other, until the last one
// or a rejection.
type provider struct {
	gates      int
	gate       int // the gate at which it waits; gates if it has passed all
	stopped    bool
	generation int
}

func (p provider) waits() bool { return !p.stopped && p.gate < p.gates }

// question returns the open question, or noQuestion.
func (p provider) question() int {
	if !p.waits() {
		return noQuestion
	}
	return p.generation*maxGates + p.gate
}

// request is a call with a person's decision. The zero value is not a request.
type request struct {
	person, id string
	decision   decision
	question   int   // what the person saw
	after      party // the request that must be answered before this one is sent, or nobody
	persistent bool  // it is sent again until it is answered with 200

	stage  stage
	loaded int // the question for which the provider used the decision
}

type decision int

const (
	approve decision = 1 << iota
	reject
	expire // by the clock
)

func (w decision) String() string {
	return map[decision]string{approve: "approve", reject: "reject", expire: "expire"}[w]
}

func (r request) String() string {
	return fmt.Sprintf("%s (resume %s, %s gate %s)", r.person, r.id, r.decision, name(r.question))
}

// name returns the display name of a question.
func name(question int) string {
	if question >= maxGates {
		return fmt.Sprintf("%d of the new run", question-maxGates+1)
	}
	return fmt.Sprintf("%d", question+1)
}

// stage is the progress of a request.
type stage int

const (
	received stage = iota
	checked
	locked
	loaded
	acted
	saved
	released
	failing // the provider returned an error
	answered
	conflicted
	failed
	dead
)

// inside reports whether the request assumes that it alone works on the run.
func (r request) inside() bool { return r.person != "" && r.stage >= locked && r.stage <= saved }

// faultBudget limits the faults and events.
type faultBudget struct {
	crashes  int  // a process dies
	lapses   int  // 30 seconds pass although the holder is alive
	errors   int  // the provider fails temporarily
	sweeps   int  // the deadline passes and the sweep runs
	restarts int  // an ended run is restarted under its state key
	atOnce   bool // all gates are shown at once, like parallel interrupts
}

// externalWorld is what people were told and what happened, which is not stored.
type externalWorld struct {
	happened [maxQuestions]int
	decided  [maxQuestions]decision
	told     [maxQuestions]decision
	robbed   bool // a request freed the lock of another
	revived  bool // an ended run changed its status
}
