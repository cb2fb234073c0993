package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/fermata-go/fermata/graph"
)

// jsonLines is for programs that answer: it writes an outcome per line and reads a verdict per
// line.
type jsonLines struct {
	in  <-chan string
	out io.Writer
}

var _ reviewer = (*jsonLines)(nil)

// outcome is one line.
type outcome struct {
	Status    string    `json:"status"`
	Run       string    `json:"run,omitempty"`
	Interrupt *envelope `json:"interrupt,omitempty"`
	Output    *State    `json:"output,omitempty"`
	Message   string    `json:"message,omitempty"`
}

type envelope struct {
	ID   string          `json:"id"`
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

// Ask returns the answer unchanged: the runtime validates it.
func (j *jsonLines) Ask(ctx context.Context, saved *graph.Snapshot[State]) (any, error) {
	open := saved.Interrupts[0]
	j.write(outcome{Status: "needs_input", Run: saved.Run, Interrupt: &envelope{ID: open.ID, Kind: open.Kind, Data: open.Data}})
	line, err := next(ctx, j.in)
	return json.RawMessage(line), err
}

func (j *jsonLines) Refused(err error) { j.write(outcome{Status: "error", Message: err.Error()}) }

func (j *jsonLines) Done(saved *graph.Snapshot[State]) {
	j.write(outcome{Status: "completed", Run: saved.Run, Output: &saved.State})
}

func (j *jsonLines) Left(string) {}

// write writes a line to standard output. Errors are ignored: there is no other place to report
// them.
func (j *jsonLines) write(o outcome) {
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(o)
}
