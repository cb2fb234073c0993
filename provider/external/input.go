package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Sizes of a request.
const (
	maxKind    = 128                       // bytes
	maxSchema  = 64 << 10                  // bytes
	maxTimeout = 366 * 24 * 3600           // seconds
	maxInput   = fermata.MaxDataBytes << 1 // bytes, of the whole
)

// request is what a run begins with.
type request struct {
	Kind         string          `json:"kind" jsonschema:"names the sort of question; the inbox chooses the form by it"`
	Data         json.RawMessage `json:"data" jsonschema:"what people see"`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty" jsonschema:"the JSON Schema that an answer must fit; references only within it, and never in a circle"`
	Callback     *callback       `json:"callback,omitempty" jsonschema:"where the answer is sent; without it the agent pulls"`
	Timeout      int64           `json:"timeout,omitempty" jsonschema:"how long the question may be open, in seconds"`
}

type callback struct {
	URL string `json:"url" jsonschema:"https, on port 443 of a public address"`
}

// InputError says what is wrong with a request. Nobody was asked.
type InputError struct {
	// Field is the member that is wrong, as "callback.url"; "" is the whole.
	Field, Problem string
}

func (e *InputError) Error() string {
	if e.Field == "" {
		return "external: the input: " + e.Problem
	}
	return fmt.Sprintf("external: %s: %s", e.Field, e.Problem)
}

// decodeRequest reads a request. What it says does not depend on this process, so that what was accepted once can be read for ever.
func decodeRequest(input json.RawMessage) (request, error) {
	var r request
	if len(input) > maxInput {
		return r, &InputError{"", fmt.Sprintf("it has %d bytes; %d are allowed", len(input), maxInput)}
	}
	if err := strictjson.Decode(input, &r); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its text would show a value
			return r, &InputError{wrong.Field, "it is of the wrong type"}
		}
		return r, &InputError{"", err.Error()}
	}
	if isNull(r.AnswerSchema) {
		r.AnswerSchema = nil
	}
	switch {
	case r.Kind == "":
		return r, &InputError{"kind", "it is missing"}
	case len(r.Kind) > maxKind || strings.ContainsFunc(r.Kind, unicode.IsControl):
		return r, &InputError{"kind", fmt.Sprintf("a kind is a name of at most %d bytes", maxKind)}
	case len(r.Data) == 0 || isNull(r.Data):
		return r, &InputError{"data", "it is missing"}
	case len(r.Data) > fermata.MaxDataBytes:
		return r, &InputError{"data", fmt.Sprintf("it has %d bytes; %d are allowed", len(r.Data), fermata.MaxDataBytes)}
	case r.Timeout < 0 || r.Timeout > maxTimeout:
		return r, &InputError{"timeout", fmt.Sprintf("it is 1 to %d seconds", maxTimeout)}
	case r.Callback != nil && r.Callback.URL == "":
		return r, &InputError{"callback.url", "it is missing"}
	}
	return r, nil
}

func isNull(data json.RawMessage) bool { return bytes.Equal(data, []byte("null")) }

// check looks at a new request with everything that this process knows, and completes it.
func (p *Provider) check(ctx context.Context, account string, r *request) error {
	if err := checkSchema("answerSchema", r.AnswerSchema); err != nil {
		return err
	}
	if err := r.checkKind(); err != nil {
		return err
	}
	if r.Callback == nil {
		return nil
	}
	if _, err := p.guard.parse(r.Callback.URL); err != nil {
		return &InputError{"callback.url", err.Error()}
	}
	keys, err := p.keys(ctx, account)
	if err == nil && len(keys) == 0 { // or a person would decide, and nobody would hear of it
		return &InputError{"callback", "this account has no secret to sign with"}
	}
	return err
}

func checkSchema(field string, text json.RawMessage) error {
	if text == nil {
		return nil
	}
	if len(text) > maxSchema {
		return &InputError{field, fmt.Sprintf("it has %d bytes; %d are allowed", len(text), maxSchema)}
	}
	if err := checkSafeSchema(text); err != nil {
		return &InputError{field, err.Error()}
	}
	if _, err := schema.Parse(text); err != nil {
		return &InputError{field, "it is not a JSON Schema"}
	}
	if err := schema.CheckTypes(text); err != nil {
		return &InputError{field, err.Error()}
	}
	return nil
}

// checkKind sees to it that a question of a kind that this program knows is one, as those who answer rely on it.
func (r *request) checkKind() error {
	switch r.Kind {
	case fermata.EffectInDoubt.Name():
		return &InputError{"kind", "only Fermata itself asks about effects in doubt"}
	case fermata.Approval.Name():
		if err := r.completeApproval(); err != nil {
			return err
		}
	}
	kind, ok := fermata.LookupKind(r.Kind)
	if !ok {
		return nil
	}
	if err := schema.CheckData("data", kind.QuestionSchema(), r.Data); err != nil { // its text would show the data
		return &InputError{"data", "it is not a question of kind " + r.Kind}
	}
	if r.AnswerSchema == nil {
		r.AnswerSchema = kind.HumanAnswerSchema()
	}
	return nil
}

// completeApproval makes sure that the digest is that of the action which people see: it is what they approve. An agent need not give one, and
// one that does not say what edited arguments must fit cannot have them edited.
func (r *request) completeApproval() error {
	var asked fermata.ApprovalRequest
	if err := strictjson.Decode(r.Data, &asked); err != nil || asked.Action == "" || asked.Args == nil {
		return &InputError{"data", "an approval needs an action and its args"}
	}
	if isNull(asked.ArgsSchema) {
		asked.ArgsSchema = nil
	}
	if err := checkSchema("data.argsSchema", asked.ArgsSchema); err != nil {
		return err
	}
	digest, err := asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args})
	if err != nil {
		return &InputError{"data", "an approval needs an action and its args"}
	}
	if asked.Digest != "" && asked.Digest != digest {
		return &InputError{"data.digest", "it is not that of this action with these args"}
	}
	asked.Digest = digest
	asked.Fixed = asked.Fixed || asked.ArgsSchema == nil
	data, err := json.Marshal(asked)
	r.Data = data
	return err
}

// fits returns the answer as it will be delivered.
func (r *request) fits(answer json.RawMessage) (json.RawMessage, error) {
	if err := schema.CheckData("answer", r.AnswerSchema, answer); err != nil {
		return nil, err
	}
	kind, ok := fermata.LookupKind(r.Kind)
	if !ok {
		return bytes.Clone(answer), nil
	}
	checked, err := kind.Check(r.Data, answer)
	if err != nil || r.Kind != fermata.Approval.Name() {
		return checked, err
	}
	var decision fermata.Decision
	if err := json.Unmarshal(checked, &decision); err != nil {
		return nil, err
	}
	if decision.Verb == fermata.VerbExpire {
		return nil, fmt.Errorf("%q is the word of the clock", fermata.VerbExpire)
	}
	return checked, nil
}
