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

// Response is the kind of question that a tool wrapped with [Respond] asks.
var Response = fermata.NewKind[ResponseRequest, HumanResponse]("tool-response")

// ResponseRequest is what a person sees who answers in the place of a tool.
type ResponseRequest struct {
	Tool        string          `json:"tool"`
	Description string          `json:"description,omitempty"`
	Args        json.RawMessage `json:"args"`
}

// HumanResponse is what a person says in the place of a tool.
type HumanResponse struct {
	Text string `json:"text,omitempty"`
	// Declined says that the person does not answer; the model is told, with the reason.
	Declined bool   `json:"declined,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

// Validate makes an empty answer none.
func (r HumanResponse) Validate() error {
	switch {
	case r.Declined && r.Text != "":
		return errors.New("it is declined and has a text: which one counts?")
	case !r.Declined && r.Text == "": //mutate:empty-response
		return errors.New("it has no text; say declined if there is none")
	}
	return nil
}

// Respond lets a person answer in the place of the tool: the tool itself is never called. The question is of kind [Response].
func Respond(t *Tool) *Tool {
	return t.with(func(w *Tool) {
		w.retry = retryFreely
		w.call = func(ctx context.Context, args json.RawMessage) (string, error) {
			said, err := Response.Ask(ctx, ResponseRequest{Tool: t.name, Description: t.description, Args: args})
			if err != nil {
				return "", err
			}
			if said.Declined {
				return "", &declinedError{said.By, said.Reason}
			}
			return said.Text, nil
		}
	})
}

// Completion is the kind of question that a tool wrapped with [FollowUp] asks.
var Completion = fermata.NewKind[CompletionRequest, CompletedArgs]("tool-follow-up")

// CompletionRequest is what a person sees who is asked for arguments that a model did not know.
type CompletionRequest struct {
	Tool string `json:"tool"`
	// Args are the arguments so far, Missing what is asked for.
	Args    json.RawMessage `json:"args"`
	Missing []Missing       `json:"missing"`
	// ArgsSchema is what the arguments must fit when the answer is put into them.
	ArgsSchema json.RawMessage `json:"argsSchema"`
}

// Missing is an argument that a person has to give.
type Missing struct {
	// Field is its name in JSON.
	Field    string `json:"field"`
	Question string `json:"question"`
}

// CompletedArgs is a person's answer to a [CompletionRequest].
type CompletedArgs struct {
	// Fields are arguments by name; ones that were not asked for may be among them.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
	// Declined says that the person does not answer; the model is told, with the reason.
	Declined bool   `json:"declined,omitempty"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

// ValidateFor puts the answer into the arguments and checks them.
func (c CompletedArgs) ValidateFor(question CompletionRequest) error {
	switch {
	case c.Declined && len(c.Fields) > 0:
		return errors.New("it is declined and has fields: which counts?")
	case c.Declined:
		return nil
	case len(c.Fields) == 0:
		return errors.New("it has no fields; say declined if there are none")
	}
	args, err := mergeFields(question.Args, c.Fields)
	if err != nil {
		return err
	}
	//mutate:completion-matches-schema
	return schema.CheckData("the completed arguments", question.ArgsSchema, args)
}

// FollowUp asks a person for what the model did not know, as often as it takes: missing looks at the arguments and says what
// is still to be asked; when it says nothing, the tool is called. It must go by the arguments alone. The questions are of
// kind [Completion].
func FollowUp[In any](t *Tool, missing func(In) []Missing) *Tool {
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
	said, err := Completion.Ask(ctx, CompletionRequest{Tool: t.name, Args: args, Missing: open, ArgsSchema: t.args.Text})
	if err != nil {
		return nil, err
	}
	if said.Declined {
		return nil, &declinedError{said.By, said.Reason}
	}
	return mergeFields(args, said.Fields)
}

// Needs says, for [FollowUp], that each of these arguments has to be there and not be empty: its JSON name and the question
// to ask for it.
func Needs[In any](fields ...Missing) func(In) []Missing {
	return func(in In) []Missing {
		var open []Missing
		data, err := json.Marshal(&in)
		var given map[string]any
		if err == nil {
			err = json.Unmarshal(data, &given)
		}
		for _, field := range fields {
			if err != nil || empty(given[field.Field]) {
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

// mergeFields puts fields into a JSON object. The keys come out sorted: the same fields make the same bytes.
func mergeFields(args json.RawMessage, fields map[string]json.RawMessage) (json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, fmt.Errorf("the arguments so far are no JSON object: %w", err)
	}
	maps.Copy(all, fields)
	return json.Marshal(all)
}
