package langgraph

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// partRun is the part of the run's state that this provider stores.
const partRun = "langgraph"

// saved is the state of a run. It has what was asked and answered; everything else is in the
// thread.
type saved struct {
	Version int `json:"version"` // of the format
	// Adopted reports that the thread was not created for this run.
	Adopted bool `json:"adopted,omitempty"`
	// Open are the questions of the newest pause. Those with an answer wait for the other answers
	// of the same interrupt.
	Open []question `json:"open,omitempty"`
	// Checkpoint is the checkpoint at which the run paused.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Answered counts the answers by interrupt: successive interrupts of one task have one id.
	Answered map[string]int `json:"answered,omitempty"`
	// Applied are the questions whose answers led to the newest result.
	Applied []string `json:"applied,omitempty"`
	// Failed is the run of the thread that failed; "" if the last one did not.
	Failed string `json:"failed,omitempty"`
	// Completed is the result of the run.
	Completed *completed `json:"completed,omitempty"`
}

type completed struct {
	Content string          `json:"content,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// question is one question to people: an interrupt, or one action of an interrupt with several.
type question struct {
	ID        string          `json:"id"`
	Interrupt string          `json:"interrupt,omitempty"` // the id of LangGraph; "" at a breakpoint
	Index     int             `json:"index,omitempty"`     // the position of the action
	Digest    string          `json:"digest"`              // of the value of the interrupt
	Dialect   dialect         `json:"dialect,omitempty"`
	Nodes     []string        `json:"nodes,omitempty"`
	Kind      string          `json:"kind"`
	Data      json.RawMessage `json:"data"`
	Schema    json.RawMessage `json:"schema,omitempty"`
	Verdicts  verdicts        `json:"verdicts,omitzero"`
	Answer    json.RawMessage `json:"answer,omitempty"`
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:12])
}

func stateKey(run provider.Run) store.Key { return store.Key{Account: run.Account, Run: run.ID} }

func load(ctx context.Context, run provider.Run) (s saved, version int64, err error) {
	checkpoint, err := run.State.Load(ctx, stateKey(run))
	if errors.Is(err, store.ErrNotFound) {
		return saved{Version: 1}, 0, nil
	}
	if err == nil {
		if json.Unmarshal(checkpoint.Parts[partRun], &s) != nil || s.Version != 1 {
			err = errors.New("langgraph: the state of the run does not belong to this provider")
		}
	}
	return s, checkpoint.Version, err
}

func (s *saved) save(ctx context.Context, run provider.Run, base int64) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false) // the data of questions stays as it is
	if err := encoder.Encode(s); err != nil {
		return err
	}
	_, err := run.State.Save(ctx, stateKey(run), base, store.Delta{Put: []store.Part{{Name: partRun, Data: data.Bytes()}}})
	return err
}

// address returns the place of a question: the assistant, its nodes, and the call.
func (q *question) address(graph string) fermata.Address {
	address := fermata.Address{{Type: fermata.SegmentRunnable, ID: graph}}
	for _, name := range q.Nodes {
		address = append(address, fermata.Segment{Type: fermata.SegmentNode, ID: name})
	}
	if q.Kind == fermata.Approval.Name() {
		var asked fermata.ApprovalRequest
		if json.Unmarshal(q.Data, &asked) == nil {
			address = append(address, fermata.Segment{Type: fermata.SegmentTool, ID: asked.Action, SubID: q.ID[len(q.ID)-6:]})
		}
	}
	return address
}

// open returns the questions without an answer, as the executor publishes them.
func (s *saved) open(graph string) []provider.Interrupt {
	var list []provider.Interrupt
	for _, q := range s.Open {
		if q.Answer == nil {
			list = append(list, provider.Interrupt{ID: q.ID, Address: q.address(graph), Envelope: fermata.Envelope{Kind: q.Kind, Data: q.Data}, AnswerSchema: q.Schema})
		}
	}
	return list
}

// raise replaces the open questions by those of new interrupts. A question that is still open keeps
// its id and, if it has one, its answer. It returns false if there are too many questions.
func (s *saved) raise(run provider.Run, state *threadState, raised []rawInterrupt) bool {
	before := s.Open
	s.Open, s.Checkpoint = nil, state.Checkpoint.ID
	for _, each := range raised {
		round := s.Answered[each.ID]
		questions, err := questionsOf(each)
		if err != nil || len(s.Open)+len(questions) > maxQuestions {
			return false
		}
		nodes := nodeOf(state.Tasks, each.ID)
		for _, q := range questions {
			q.Nodes = nodes
			q.ID = questionID(run, q, round)
			if n := slices.IndexFunc(before, func(known question) bool { return known.ID == q.ID }); n >= 0 {
				q = before[n]
			}
			s.Open = append(s.Open, q)
		}
	}
	return true
}

func questionID(run provider.Run, q question, round int) string {
	text, _ := json.Marshal([]any{q.Interrupt, q.Index, q.Digest, round})
	return ident.Derive("int", run.Account, run.ID, Name, string(text))
}

// groups returns the interrupts all of whose questions have an answer.
func (s *saved) groups() []group {
	var list []group
	for _, q := range s.Open {
		n := slices.IndexFunc(list, func(g group) bool { return g.interrupt == q.Interrupt })
		if n < 0 {
			n, list = len(list), append(list, group{interrupt: q.Interrupt, complete: true})
		}
		g := &list[n]
		g.questions = append(g.questions, q)
		g.complete = g.complete && q.Answer != nil
	}
	return slices.DeleteFunc(list, func(g group) bool { return !g.complete })
}

// group is an interrupt with its answers.
type group struct {
	interrupt string
	questions []question
	complete  bool
}

// key identifies the step that delivers the answers of the group. The run of LangGraph that does it
// has the key in its metadata.
func (g *group) key(run provider.Run) string {
	return ident.Derive("step", run.Account, run.ID, "resume", g.questions[0].ID)
}
