package main

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
)

// The agents of both sides are the same, too: level0 has a tool that a person must approve, level1
// has level0 as its tool, and so on. Their models are scripted in this file.

// agentTask is the work of one engine: nested agents; the innermost one sends a letter.
type agentTask struct {
	// depth is the number of agents around the innermost one.
	depth int
	// text is the body of the letter: the arguments of the waiting call are the state of the
	// innermost agent.
	text  string
	calls []call // by level

	modelCalls, sent atomic.Int64
}

const (
	taskRequest     = "Write to Ada."
	taskInstruction = "You run the errands of the office."
	taskDescription = "runs errands"
	sendName        = "send_letter"
	sendDescription = "Sends a letter by post."
)

// letter is the argument of the tool.
type letter struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// call is a tool call as a model writes it.
type call struct{ id, tool, args string }

func newAgentTask(depth int, text string) (*agentTask, error) {
	e := &agentTask{depth: depth, text: text}
	for level := range depth + 1 {
		c := call{
			id:   fmt.Sprintf("call_Zq7Rw4tXb9Lc1Vn0Ds8fKm%d", level), // as long as OpenAI's ids
			tool: sendName,
		}
		var args any = letter{To: "Ada", Text: text}
		if level > 0 {
			c.tool, args = levelName(level-1), map[string]string{"request": taskRequest}
		}
		data, err := json.Marshal(args)
		if err != nil {
			return nil, err
		}
		c.args = string(data)
		e.calls = append(e.calls, c)
	}
	return e, nil
}

func levelName(level int) string { return fmt.Sprintf("level%d", level) }

// answer is the output of a level's model after its tool has returned a result.
func (*agentTask) answer(level int, result string) string { return levelName(level) + ": " + result }

// The token usage that a model reports.
const (
	tokensRead    = 40
	tokensWritten = 10
)

// send is the tool.
func (e *agentTask) send(l letter) (string, error) {
	if l.To != "Ada" || l.Text != e.text {
		return "", fmt.Errorf("a letter of %d bytes to %q, want %d bytes to Ada", len(l.Text), l.To, len(e.text))
	}
	e.sent.Add(1)
	return receipt(len(l.Text)), nil
}

func receipt(size int) string { return fmt.Sprintf("%d bytes went to Ada", size) }

// reset prepares the task for another run.
func (e *agentTask) reset() {
	e.modelCalls.Store(0)
	e.sent.Store(0)
}

// checkNotSent checks that nothing was sent before the approval.
func (e *agentTask) checkNotSent() error {
	if n := e.sent.Load(); n != 0 {
		return fmt.Errorf("%d letters were sent without approval", n)
	}
	return nil
}

// taskResult is the result of a task.
type taskResult struct {
	text             string
	modelCalls, sent int64
}

func (e *agentTask) result(text string) taskResult {
	return taskResult{text: text, modelCalls: e.modelCalls.Load(), sent: e.sent.Load()}
}

// check checks that the letter was sent once, that every level got the result, and that no model
// was called more often than necessary.
func (e *agentTask) check(got taskResult) error {
	want := taskResult{text: receipt(len(e.text)), modelCalls: 2 * int64(e.depth+1), sent: 1}
	for level := range e.depth + 1 {
		want.text = e.answer(level, want.text)
	}
	if got != want {
		return fmt.Errorf("the task ended as %+v, want %+v", got, want)
	}
	return nil
}
