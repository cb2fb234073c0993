package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Completion is the kind of the interrupts of tools wrapped with [FollowUp].
var Completion = fermata.NewKind[CompletionRequest, CompletedArgs]("tool-follow-up")

// CompletionRequest asks a person for arguments that a model did not know.
type CompletionRequest struct {
	Tool string `json:"tool"`
	// Args are the arguments so far; Missing are the requested ones.
	Args    json.RawMessage `json:"args"`
	Missing []Missing       `json:"missing"`
	// ArgsSchema is the JSON Schema of the completed arguments.
	ArgsSchema json.RawMessage `json:"argsSchema"`
}

// Missing is a requested argument.
type Missing struct {
	// Field is its JSON name.
	Field    string `json:"field"`
	Question string `json:"question"`
}

// CompletedArgs is the answer to a [CompletionRequest].
type CompletedArgs struct {
	// Fields are arguments by name. They may include arguments that were not requested.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	// Declined reports that the person does not answer. It is reported to the model with the
	// reason.
	Declined bool   `json:"declined,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty" attest:"by"`
}

// ValidateFor merges the answer into the arguments and validates them.
func (c CompletedArgs) ValidateFor(question CompletionRequest) error {
	switch {
	case c.Declined && len(c.Fields) > 0:
		return errors.New("declined and fields are both set")
	case c.Declined:
		return nil
	case len(c.Fields) == 0:
		return errors.New("fields are missing; set declined to give none")
	}
	args, err := mergeFields(question.Args, c.Fields)
	if err != nil {
		return err
	}
	//mutate:completion-matches-schema
	return schema.CheckData("the completed arguments", question.ArgsSchema, args)
}

// FollowUp asks a person for missing arguments until there are none: missing returns the arguments
// that are still needed; when it returns none, the tool is called. It must depend only on the
// arguments. The interrupts are of kind [Completion].
func FollowUp[In any](t *Tool, missing func(In) []Missing) *Tool {
	checkWrapped(t, "FollowUp")
	return t.with(func(w *Tool) {
		w.completers = append(slices.Clip(t.completers), func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
			for {
				var in In
				if err := strictjson.Decode(args, &in); err != nil {
					return nil, &argsError{t.name, err}
				}
				open := missing(in)
				if len(open) == 0 {
					return args, nil
				}
				var err error
				if args, err = t.ask(ctx, args, open); err != nil {
					return nil, err
				}
			}
		})
	})
}

func (t *Tool) ask(ctx context.Context, args json.RawMessage, open []Missing) (json.RawMessage, error) {
	completed, err := Completion.Ask(ctx, CompletionRequest{Tool: t.name, Args: args, Missing: open, ArgsSchema: t.args.Text})
	if err != nil {
		return nil, ofTool(t.name, err)
	}
	if completed.Declined {
		return nil, &declinedError{completed.By, completed.Reason}
	}
	return mergeFields(args, completed.Fields)
}

// Needs returns a function for [FollowUp] that requires each of these arguments to be present and
// not empty.
func Needs[In any](fields ...Missing) func(In) []Missing {
	return func(in In) []Missing {
		var open []Missing
		data, err := json.Marshal(&in)
		var values map[string]any
		if err == nil {
			err = json.Unmarshal(data, &values)
		}
		for _, field := range fields {
			if err != nil || empty(values[field.Field]) {
				open = append(open, field)
			}
		}
		return open
	}
}

func empty(v any) bool {
	if v == nil || reflect.ValueOf(v).IsZero() {
		return true
	}
	switch v := v.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// mergeFields merges fields into a JSON object. The keys are sorted, so that equal fields have
// equal bytes.
func mergeFields(args json.RawMessage, fields map[string]json.RawMessage) (json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, fmt.Errorf("the arguments so far are not a JSON object: %w", err)
	}
	maps.Copy(all, fields)
	return json.Marshal(all)
}
