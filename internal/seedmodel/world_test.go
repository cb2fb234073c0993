package seedmodel

import "fmt"

// The bounds of the model. A question is a gate of one generation of the run: when a run is started again under its state
// key, its gates ask anew.
const (
	maxRequests  = 3
	maxGates     = 3
	maxQuestions = 2 * maxGates
	noQuestion   = maxQuestions
)

// world is one state of the row, the provider, the requests and the outside. Two of the same value are the same state.
type world struct {
	row      row
	provider provider
	requests [maxRequests]request
	left     faultBudget
	outside  externalWorld
}

// row is what the design keeps of a run in its table.
type row struct {
	status    status
	lock      string // a resume id, "" if nobody has it
	stale     bool   // it was taken more than 30 seconds ago
	last      string // the last resume id
	lastError bool   // what is cached for it is an error

	holder party // took the lock; nobody, if it died. The design does not know it; the promises do.
}

// party names one of the requests, or nobody.
type party int

const nobody party = 0

func partyOf(request int) party { return party(request + 1) }

type status int

const (
	active status = iota
	completed
	expired
)

// provider is the graph's own state: gates that are passed one after the other, until the last or a no.
type provider struct {
	gates      int
	gate       int // at which it waits; gates if it is through
	stopped    bool
	generation int
}

func (p provider) waits() bool { return !p.stopped && p.gate < p.gates }

// question is the one that is open, or noQuestion.
func (p provider) question() int {
	if !p.waits() {
		return noQuestion
	}
	return p.generation*maxGates + p.gate
}

// request is a call with a person's word in it. The zero value is none.
type request struct {
	person, id string
	decision   decision
	question   int   // what the person saw when they decided
	after      party // the request that was answered before this one is sent; nobody: it need not wait
	persistent bool  // sends it again until it is answered with 200

	stage  stage
	loaded int // the question that the provider took the word for
}

type decision int

const (
	approve decision = 1 << iota
	reject
	expire // the clock's
)

func (w decision) String() string {
	return map[decision]string{approve: "approve", reject: "reject", expire: "expire"}[w]
}

func (r request) String() string {
	return fmt.Sprintf("%s (resume %s, %s gate %s)", r.person, r.id, r.decision, name(r.question))
}

// name is how people call a question.
func name(question int) string {
	if question >= maxGates {
		return fmt.Sprintf("%d of the new run", question-maxGates+1)
	}
	return fmt.Sprintf("%d", question+1)
}

// stage is how far a request has come.
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

// inside reports whether the request believes that it alone works on the run.
func (r request) inside() bool { return r.person != "" && r.stage >= locked && r.stage <= saved }

// faultBudget bound what can happen besides requests.
type faultBudget struct {
	crashes  int  // a process dies
	lapses   int  // 30 seconds pass under a holder who is alive
	errors   int  // the provider fails for a moment
	sweeps   int  // the deadline passes and the sweep comes
	restarts int  // a run that is over is started again under its state key
	atOnce   bool // all gates are shown at once, as parallel interrupts are
}

// externalWorld is what people were told and what happened, which no table knows.
type externalWorld struct {
	happened [maxQuestions]int
	decided  [maxQuestions]decision
	told     [maxQuestions]decision
	robbed   bool // somebody freed the lock of another
	revived  bool // a run that was over became something else
}
