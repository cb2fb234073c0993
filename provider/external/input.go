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
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/origin"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/provider"
)

// Limits of a request.
const (
	maxKind    = 128                      // bytes
	maxSchema  = 64 << 10                 // bytes
	maxTimeout = 366 * 24 * 3600          // seconds
	maxName    = 256                      // bytes, of a requester and an environment
	maxFacts   = 16 << 10                 // bytes
	maxInput   = limits.MaxDataBytes << 1 // bytes, in total
)

// request is the input of a run.
type request struct {
	Kind         string          `json:"kind" jsonschema:"name of the request kind; the inbox uses it to choose the form"`
	Data         json.RawMessage `json:"data" jsonschema:"data shown to people"`
	AnswerSchema json.RawMessage `json:"answerSchema,omitempty" jsonschema:"JSON Schema of the answer; references must be internal and not circular"`
	Callback     *callback       `json:"callback,omitempty" jsonschema:"where the answer is sent; without it the agent polls"`
	Timeout      int64           `json:"timeout,omitempty" jsonschema:"maximum time that the request may be open, in seconds"`
	// used only if a rule says so
	DefaultAnswer json.RawMessage `json:"defaultAnswer,omitempty" jsonschema:"answer at the deadline, if the rules use it; never for approvals and gates"`
	Receipt       bool            `json:"receipt,omitempty" jsonschema:"the agent will send a receipt; an approval without one is reported"`
	Requester     string          `json:"requester,omitempty" jsonschema:"the person for whom the agent works; separation of duties excludes them too"`
	Environment   string          `json:"environment,omitempty" jsonschema:"the environment of the request; rules see it as req.stated.environment"`
	Facts         json.RawMessage `json:"facts,omitempty" jsonschema:"a JSON object that only the rules of the server see"`
}

type callback struct {
	URL string `json:"url" jsonschema:"https, on port 443 of a public address"`
}

// InputError reports what is wrong with a request. No request was created.
type InputError struct {
	// Field is the invalid member, for example "callback.url"; "" is the whole input.
	Field, Problem string
}

func (e *InputError) Error() string {
	if e.Field == "" {
		return "external: input: " + e.Problem
	}
	return fmt.Sprintf("external: %s: %s", e.Field, e.Problem)
}

// fieldData is the field that people see.
const fieldData = "data"

// CheckInput validates a request before its run exists; see [provider.InputChecker].
func (p *Provider) CheckInput(ctx context.Context, account, graph string, input json.RawMessage) error {
	if err := checkGraph(graph); err != nil {
		return err
	}
	r, err := decodeRequest(input)
	if err == nil {
		err = p.check(ctx, account, &r)
	}
	wrong, ok := errors.AsType[*InputError](err)
	if !ok {
		return err
	}
	code := provider.CodeInvalidInput
	if wrong.Field == fieldData && len(r.Data) > limits.MaxDataBytes {
		code = provider.CodeDataTooLarge
	}
	return &provider.InputError{Code: code, Field: wrong.Field, Problem: wrong.Problem}
}

// decodeRequest decodes a request. It does not depend on settings of this process, so that a stored
// request can always be decoded.
func decodeRequest(input json.RawMessage) (request, error) {
	var r request
	if len(input) > maxInput {
		return r, &InputError{"", fmt.Sprintf("it has %d bytes; %d are allowed", len(input), maxInput)}
	}
	if err := strictjson.Decode(input, &r); err != nil {
		// the error text would contain a value
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return r, &InputError{wrong.Field, "it has the wrong type"}
		}
		return r, &InputError{"", err.Error()}
	}
	if isNull(r.AnswerSchema) {
		r.AnswerSchema = nil
	}
	if isNull(r.DefaultAnswer) {
		r.DefaultAnswer = nil
	}
	if isNull(r.Facts) {
		r.Facts = nil
	}
	switch {
	case r.Kind == "":
		return r, &InputError{"kind", "it is missing"}
	case len(r.Kind) > maxKind || strings.ContainsFunc(r.Kind, unicode.IsControl):
		return r, &InputError{"kind", fmt.Sprintf("it must be a name of at most %d bytes", maxKind)}
	case len(r.Data) == 0 || isNull(r.Data):
		return r, &InputError{"data", "it is missing"}
	case len(r.Data) > limits.MaxDataBytes:
		return r, &InputError{fieldData, fmt.Sprintf("it has %d bytes; %d are allowed", len(r.Data), limits.MaxDataBytes)}
	case r.Timeout < 0 || r.Timeout > maxTimeout:
		return r, &InputError{"timeout", fmt.Sprintf("it must be 1 to %d seconds", maxTimeout)}
	case r.Callback != nil && r.Callback.URL == "":
		return r, &InputError{"callback.url", "it is missing"}
	}
	return r, nil
}

func isNull(data json.RawMessage) bool { return bytes.Equal(data, []byte("null")) }

// check validates a new request with the settings of this process, and completes it.
func (p *Provider) check(ctx context.Context, account string, r *request) error {
	if err := checkSchema("answerSchema", r.AnswerSchema); err != nil {
		return err
	}
	if err := r.checkKind(); err != nil {
		return err
	}
	if err := r.checkDefault(); err != nil {
		return err
	}
	if err := r.checkOrigin(); err != nil {
		return err
	}
	if r.Callback == nil {
		return nil
	}
	if _, err := p.client.ParseURL(r.Callback.URL); err != nil {
		return &InputError{"callback.url", err.Error()}
	}
	keys, err := p.keys(ctx, account)
	if err == nil && len(keys) == 0 { // otherwise the decision could not be delivered
		return &InputError{"callback", "this account has no signing secret"}
	}
	return err
}

// checkOrigin validates what the agent states about its run.
func (r *request) checkOrigin() error {
	if problem := nameProblem(r.Requester); problem != "" {
		return &InputError{"requester", problem}
	}
	if problem := nameProblem(r.Environment); problem != "" {
		return &InputError{"environment", problem}
	}
	switch {
	case len(r.Facts) > maxFacts:
		return &InputError{"facts", fmt.Sprintf("it has %d bytes; %d are allowed", len(r.Facts), maxFacts)}
	case len(r.Facts) > 0 && r.Facts[0] != '{':
		return &InputError{"facts", "it is not a JSON object"}
	}
	return nil
}

// nameProblem returns what is wrong with an optional name; "" if nothing is.
func nameProblem(name string) string {
	if len(name) > maxName {
		return fmt.Sprintf("it has %d bytes; %d are allowed", len(name), maxName)
	}
	if strings.TrimSpace(name) != name || safehtml.Flags(name) > 0 {
		return "it has spaces at an end, or characters that are invisible or change the direction of text"
	}
	return ""
}

// Origin returns what the agent states about its run; see [origin.Reader].
func (p *Provider) Origin(input json.RawMessage) origin.Origin {
	r, err := decodeRequest(input)
	if err != nil { // the run fails with it
		return origin.Origin{}
	}
	return origin.Origin{Stated: origin.Stated{Requester: r.Requester, Environment: r.Environment}, Facts: r.Facts}
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

// checkDefault validates the default answer.
func (r *request) checkDefault() error {
	if r.DefaultAnswer == nil {
		return nil
	}
	if r.Kind == fermata.Approval.Name() || r.Kind == "approval-gate" {
		return &InputError{"defaultAnswer", "an approval has no default answer"}
	}
	if len(r.DefaultAnswer) > limits.MaxAnswerBytes {
		return &InputError{"defaultAnswer", fmt.Sprintf("it has %d bytes; %d are allowed", len(r.DefaultAnswer), limits.MaxAnswerBytes)}
	}
	if _, err := r.fits(r.DefaultAnswer); err != nil { // the error text would contain the answer
		return &InputError{"defaultAnswer", "it does not match the answer schema"}
	}
	return nil
}

// checkKind validates the kind, and the data of a known kind, because approvers rely on it.
func (r *request) checkKind() error {
	if err := checkKindName(r.Kind); err != nil {
		return err
	}
	if r.Kind == fermata.Approval.Name() {
		if err := r.completeApproval(); err != nil {
			return err
		}
	}
	kind, ok := fermata.LookupKind(r.Kind)
	if !ok {
		return nil
	}
	// the error text would contain the data
	if err := schema.CheckData("data", kind.QuestionSchema(), r.Data); err != nil {
		return &InputError{"data", "it is not a question of kind " + r.Kind}
	}
	if r.AnswerSchema == nil {
		r.AnswerSchema = kind.HumanAnswerSchema()
	}
	return nil
}

// completeApproval checks that the digest matches the action that people see, because that is what
// they approve. The digest is optional. Without a schema for edited arguments, editing is not
// allowed.
func (r *request) completeApproval() error {
	var question fermata.ApprovalRequest
	if err := strictjson.Decode(r.Data, &question); err != nil || question.Action == "" || question.Args == nil {
		return &InputError{"data", "an approval needs an action and its args"}
	}
	if isNull(question.ArgsSchema) {
		question.ArgsSchema = nil
	}
	if err := checkSchema("data.argsSchema", question.ArgsSchema); err != nil {
		return err
	}
	digest, err := question.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: question.Args})
	if err != nil {
		return &InputError{"data", "an approval needs an action and its args"}
	}
	if question.Digest != "" && question.Digest != digest {
		return &InputError{"data.digest", "it does not match the action and its args"}
	}
	question.Digest = digest
	question.Fixed = question.Fixed || question.ArgsSchema == nil
	data, err := json.Marshal(question)
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
		return nil, fmt.Errorf("%q is reserved for expiry", fermata.VerbExpire)
	}
	return checked, nil
}

// approvedDigest returns the digest of the action that an answer approves; "" if it approves none.
func (r *request) approvedDigest(answer json.RawMessage) string {
	if r.Kind != fermata.Approval.Name() {
		return ""
	}
	var question fermata.ApprovalRequest
	var decision fermata.Decision
	if json.Unmarshal(r.Data, &question) != nil || json.Unmarshal(answer, &decision) != nil {
		return ""
	}
	if decision.Args == nil {
		decision.Args = question.Args
	}
	digest, err := question.ApprovedDigest(decision)
	if err != nil {
		return ""
	}
	return digest
}
