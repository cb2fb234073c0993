package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/gate"
)

// submit starts the pipeline on a server and returns its state key. It does not wait for the gates.
func submit(ctx context.Context, c *client.Client, idea string) (string, error) {
	input, err := json.Marshal(map[string]string{"idea": idea})
	if err != nil {
		return "", err
	}
	pending, err := c.ChatAsync(ctx, api.Chat{GraphID: "inproc:dev-pipeline", StateKey: client.NewID(), Input: input})
	return pending.StateKey, err
}

// follow shows each gate to the reviewer when the server announces it, until the pipeline ends. The
// events come through one open connection: nothing is polled.
func follow(ctx context.Context, c *client.Client, stateKey string, r reviewer, out io.Writer) error {
	for event, err := range c.Events(ctx, stateKey, "") {
		if err != nil {
			return err
		}
		switch event.Type {
		case "asked": // an approval is required
			err = decide(ctx, c, event.Request, r, out)
		case api.EventOutcome:
			err = finish(event.Outcome, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// decide lets the reviewer decide on one request. The server adds who decided, and when.
func decide(ctx context.Context, c *client.Client, id string, r reviewer, out io.Writer) error {
	request, err := c.Request(ctx, id)
	if err != nil || request.State != "pending" { // decided before this consumer connected
		return err
	}
	var question gate.Question
	if err := json.Unmarshal(request.Data, &question); err != nil {
		return err
	}
	show(out, question)
	signal, err := r.decide(question)
	if err != nil {
		return err
	}
	answer, err := json.Marshal(gate.Signal{Approved: signal.Approved, Feedback: signal.Feedback})
	if err != nil {
		return err
	}
	_, err = c.Decide(ctx, id, api.Decide{Answer: answer, Shown: request.Shown})
	if problem, ok := errors.AsType[*api.Problem](err); ok && problem.Code == "already_decided" {
		fmt.Fprintln(out, "  another reviewer was faster:", problem.Detail)
		return nil
	}
	return err
}

func finish(outcome fermata.Outcome, out io.Writer) error {
	switch end := outcome.(type) {
	case fermata.NeedsInput: // the event of its request follows, or was handled
		return nil
	case fermata.Completed:
		var state State
		if err := json.Unmarshal(end.Output, &state); err != nil {
			return err
		}
		report(out, state)
		return nil
	default:
		return fmt.Errorf("the pipeline ended: %+v", end)
	}
}
