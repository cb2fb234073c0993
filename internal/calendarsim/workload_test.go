package calendarsim

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/simtest"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// order has the arguments of an action. Its id is the task.
type order struct {
	ID     string `json:"id"`
	Action string `json:"action"`
	Cents  int64  `json:"cents"`
	To     string `json:"to"`
	Note   string `json:"note"`
}

// task is one thing that a run wants: an action, or an answer if it has no action.
type task struct {
	Order order `json:"order"`
}

func (t task) question() bool { return t.Order.Action == "" }

// taskList is the state of a run: two parallel lanes of sequential tasks.
type taskList struct {
	Left      []task   `json:"left"`
	Right     []task   `json:"right"`
	LeftSaid  []string `json:"leftSaid"`
	RightSaid []string `json:"rightSaid"`
}

type inquiry struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type reply struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

var inquiries = fermata.NewKind[inquiry, reply]("calendarsim-inquiry")

// agent returns the provider of all executors.
func agent(t *testing.T, s *sink) provider.Provider {
	t.Helper()
	g := graph.New[taskList]("errand")
	g.Node("left", func(ctx context.Context, e taskList) (taskList, error) {
		said, err := s.work(ctx, e.Left)
		e.LeftSaid = said
		return e, err
	})
	g.Node("right", func(ctx context.Context, e taskList) (taskList, error) {
		said, err := s.work(ctx, e.Right)
		e.RightSaid = said
		return e, err
	})
	for _, lane := range []string{"left", "right"} {
		g.Edge(graph.Start, lane)
		g.Edge(lane, graph.End)
	}
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[taskList]{}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The results of tasks in a run. An answer is its own result.
const (
	saidDone     = string(simtest.Executed)
	saidRejected = string(simtest.Rejected)
	saidExpired  = string(simtest.Expired)
)

func (s *sink) work(ctx context.Context, tasks []task) (said []string, err error) {
	for _, t := range tasks {
		word, err := s.do(ctx, t)
		if err != nil {
			return nil, err
		}
		said = append(said, word)
	}
	return said, nil
}

func (s *sink) do(ctx context.Context, t task) (string, error) {
	if t.question() {
		answer, err := inquiries.Ask(ctx, inquiry{ID: t.Order.ID, Text: "what about " + t.Order.ID + "?"})
		return "answer " + answer.ID + " " + answer.Text, err
	}
	action := fermata.Action[order]{Name: t.Order.Action, Args: t.Order, Summary: t.Order.Action + " " + t.Order.ID}
	result, _, err := simtest.Gate(ctx, action, func(ctx context.Context, args order, key string) (string, error) {
		return saidDone, s.recordEffect(ctx, t.Order.ID, args, key)
	}, fermata.Idempotent())
	if result == simtest.Rejected {
		s.refuse(t.Order.ID)
	}
	return string(result), err
}

// effectCall is an executed call.
type effectCall struct {
	args order
	key  string
	at   time.Time
	cut  bool // its process was killed before it could record the result
}

// sink is the outside world. It records everything and ignores a second call with the same key,
// like an idempotent target.
type sink struct {
	mu      sync.Mutex
	deeds   map[string][]effectCall // by task
	refused map[string]time.Time    // by task: when the agent was told first
}

func (s *sink) refuse(task string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.refused[task]; !known {
		s.refused[task] = time.Now()
	}
}

// recordEffect takes some time, so that its process can be killed during the call.
func (s *sink) recordEffect(ctx context.Context, task string, args order, key string) error {
	s.mu.Lock()
	s.deeds[task] = append(s.deeds[task], effectCall{args: args, key: key, at: time.Now()})
	n := len(s.deeds[task]) - 1
	s.mu.Unlock()
	sum := fnv.New32a()
	fmt.Fprint(sum, task)
	while := time.NewTimer(time.Duration(sum.Sum32()%5) * time.Second)
	defer while.Stop()
	select {
	case <-while.C:
		return nil
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deeds[task][n].cut = true
		return ctx.Err()
	}
}
