package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/fermata-go/fermata/graph"
)

// jsonLines is a program that answers: it reads an outcome per line and writes a verdict per line.
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

// Ask hands the answer on as it is: checking it is the runtime's business.
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

// write is a line on standard output: if nobody reads it there is nobody to tell.
func (j *jsonLines) write(o outcome) {
	encoder := json.NewEncoder(j.out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(o)
}
