package tool

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
)

// Response is the kind of the interrupts of tools wrapped with [Respond].
var Response = fermata.NewKind[ResponseRequest, HumanResponse]("tool-response")

// ResponseRequest is the question to a person who answers instead of a tool.
type ResponseRequest struct {
	Tool        string          `json:"tool"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args"`
}

// HumanResponse is the answer of a person instead of a tool.
type HumanResponse struct {
	Text string `json:"text,omitempty"`
	// Declined reports that the person does not answer. It is reported to the model with the
	// reason.
	Declined bool   `json:"declined,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty" attest:"by"`
}

// Validate rejects an empty answer.
func (r HumanResponse) Validate() error {
	switch {
	case r.Declined && r.Text != "":
		return errors.New("declined and text are both set")
	case !r.Declined && r.Text == "": //mutate:empty-response
		return errors.New("text is missing; set declined to give no answer")
	}
	return nil
}

// Respond lets a person answer instead of the tool: the tool itself is never called. The interrupt
// is of kind [Response].
func Respond(t *Tool) *Tool {
	checkWrapped(t, "Respond")
	return t.with(func(w *Tool) {
		w.retry = retryFreely
		w.call = func(ctx context.Context, args json.RawMessage) (string, error) {
			response, err := Response.Ask(ctx, ResponseRequest{Tool: t.name, Description: t.description, Args: args})
			if err != nil {
				return "", ofTool(t.name, err)
			}
			if response.Declined {
				return "", &declinedError{response.By, response.Reason}
			}
			return response.Text, nil
		}
	})
}
