package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Tool is something that a model can have done. It does not change; wrappers return new ones.
type Tool struct {
	name, description string
	args              schema.Schema
	// readable says whether Go can read what the schema lets through; nil if there is nothing to read it into.
	checkDecodable func(args json.RawMessage) error
	call           func(ctx context.Context, args json.RawMessage) (string, error)
	retry          retryPolicy
	final          bool
	// complete asks for what is missing in the arguments, before anybody approves them.
	completers []func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)
	approval   *approvalConfig // nil: nobody is asked
}

// retryPolicy says what may be done about a call of which nobody knows whether it happened.
type retryPolicy int

const (
	retryAskPerson retryPolicy = iota // nothing but asking a person
	retryWithKey                      // call again with the same key
	retryFreely                       // call again
)

// Result is what a call of a tool came to.
type Result struct {
	Text string `json:"text"`
	// Failed says that the tool was not called, or could not do what it was called for; Text says why, in words for the model.
	Failed bool `json:"failed,omitempty"`
}

// Option changes how a tool is treated.
type Option func(*Tool)

// Repeatable declares that calling the tool again does no harm, as for one that only reads. A call that a crash interrupted
// is then repeated. Otherwise an approved call is not: a person is asked what happened (see [fermata.Effect]).
func Repeatable() Option { return func(t *Tool) { t.retry = retryFreely } }

// Idempotent declares that the tool's target ignores a second call with the same [Key], so that an approved call which a
// crash interrupted may be repeated with it.
func Idempotent() Option { return func(t *Tool) { t.retry = retryWithKey } }

// Final declares that the tool's result is the agent's answer: the model is not asked again after it.
func Final() Option { return func(t *Tool) { t.final = true } }

// New makes a tool of a function. The schema of its arguments is derived from In, which has to be a struct or a map with
// string keys; field tags `json` and `jsonschema` (a description) shape it. A call with arguments that do not fit does not reach fn.
// The model gets Out as it is if it is a string, and as JSON otherwise.
//
// An error of fn fails the run, which can be resumed and then calls fn again. Return an [Error] for what the model should
// know and deal with.
//
// New is meant for package variables and set-up code. It panics if the name is not one that models accept (letters, digits,
// "_" and "-", at most 64) or In has no schema.
func New[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), options ...Option) *Tool {
	return typed[In](name, description, func(ctx context.Context, in In) (string, error) {
		out, err := fn(ctx, in)
		if err != nil {
			return "", err
		}
		return encodeResult(name, out)
	}, options)
}

// NewStream makes a tool of a function that gives its result in pieces. Who watches the run sees them as they come; the
// model gets them joined. What comes after the end of its context is no result: the call is made again by the resume.
func NewStream[In any](name, description string, fn func(ctx context.Context, in In) iter.Seq2[string, error], options ...Option) *Tool {
	return typed[In](name, description, func(ctx context.Context, in In) (string, error) {
		var whole strings.Builder
		pass := chunks(ctx)
		for chunk, err := range fn(ctx, in) {
			if err != nil {
				return "", err
			}
			whole.WriteString(chunk)
			pass(chunk)
		}
		if err := ctx.Err(); err != nil { // it may have stopped because of that, and half a result is none
			return "", err
		}
		return whole.String(), nil
	}, options)
}

// Raw makes a tool whose schema is known only at run time, as one of another server. argsSchema is a JSON Schema of type
// object.
func Raw(name, description string, argsSchema json.RawMessage, fn func(ctx context.Context, args json.RawMessage) (string, error), options ...Option) (*Tool, error) {
	args, err := schema.Parse(argsSchema)
	if err != nil {
		return nil, fmt.Errorf("tool: %s: %w", name, err)
	}
	return build(name, description, args, fn, options)
}

func typed[In any](name, description string, fn func(context.Context, In) (string, error), options []Option) *Tool {
	args, err := schema.For[In]()
	if err == nil {
		var t *Tool
		if t, err = build(name, description, args, decoded(name, fn), options); err == nil {
			t.checkDecodable = func(args json.RawMessage) error { return strictjson.Decode(args, new(In)) }
			return t
		}
	}
	panic(fmt.Sprintf("tool: New(%q): %v", name, err))
}

// decoded hands fn its arguments as a Go value. They have passed the schema, but Go may still be stricter.
func decoded[In any](name string, fn func(context.Context, In) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var in In
		if err := strictjson.Decode(args, &in); err != nil {
			return "", &argsError{name, err}
		}
		return fn(ctx, in)
	}
}

// segmentCall is the place of a tool behind its wrappers, segmentApproval that of the approval in front of it.
const (
	segmentCall     fermata.SegmentType = "call"
	segmentApproval fermata.SegmentType = "gate"
)

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func build(name, description string, args schema.Schema, fn func(context.Context, json.RawMessage) (string, error), options []Option) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("tool: no model accepts the name %q: it takes 1 to 64 letters, digits, _ and -", name)
	}
	var form struct{ Type any }
	if err := json.Unmarshal(args.Text, &form); err != nil || form.Type != "object" {
		return nil, fmt.Errorf("tool: %s: the arguments of a tool are a JSON object, not %s", name, args.Text)
	}
	t := &Tool{name: name, description: description, args: args, call: fn}
	for _, option := range options {
		option(t)
	}
	return t, nil
}

func encodeResult(name string, out any) (string, error) {
	if s, ok := out.(string); ok {
		return s, nil
	}
	data, err := json.Marshal(roundtrip.Addressable(out))
	if err != nil {
		return "", &fermata.EncodeError{Value: "the result of " + name, Err: err}
	}
	return string(data), nil
}

// Name is what a model calls the tool by.
func (t *Tool) Name() string { return t.name }

// Description tells the model what the tool does.
func (t *Tool) Description() string { return t.description }

// Schema is the JSON Schema of the arguments.
func (t *Tool) Schema() json.RawMessage { return bytes.Clone(t.args.Text) }

// IsFinal reports whether the tool's result is the agent's answer.
func (t *Tool) IsFinal() bool { return t.final }

// Call checks the arguments, asks whom the wrappers say, and calls the tool. What the model has to know (wrong arguments, a
// refusal, an [Error] of the tool) is a Result. An error is for the caller: the run waits, or has failed.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (Result, error) {
	if Key(ctx) != "" { // of a call around this one
		ctx = context.WithValue(ctx, keyKey{}, "")
	}
	result, err := t.perform(ctx, args)
	if err != nil {
		return toResult(t.name, err)
	}
	return result, nil
}

func (t *Tool) perform(ctx context.Context, args json.RawMessage) (Result, error) {
	if err := t.check(args); err != nil {
		if wasDecided(ctx) { // they did fit when the person was asked
			return Result{}, &ProgramChangedError{t.name}
		}
		return Result{}, err
	}
	for _, complete := range t.completers {
		var err error
		if args, err = complete(ctx, args); err != nil {
			return Result{}, err
		}
	}
	if t.approval != nil {
		return t.callApproved(ctx, args)
	}
	if wasDecided(ctx) {
		return Result{}, &ProgramChangedError{t.name}
	}
	return t.run(ctx, args)
}

// wasDecided reports whether a person was asked about this call before.
func wasDecided(ctx context.Context) bool {
	scope := activation.FromContext(ctx)
	return scope != nil && scope.AskedBelow(string(segmentApproval)+":") //mutate:refused-call-remembered
}

// run calls the tool. What the tool has to tell the model is a result here already, so that an effect's receipt holds it.
//
// What wrappers asked before the call is not the tool's own: the tool stands at a place below, or it would take an answer to
// them for one to itself.
func (t *Tool) run(ctx context.Context, args json.RawMessage) (Result, error) {
	if t.approval != nil || t.completers != nil { //mutate:wrapper-answer
		ctx = fermata.AppendAddressSegment(ctx, segmentCall, t.name)
	}
	said, err := t.call(ctx, args)
	if err != nil {
		return toResult(t.name, err)
	}
	return Result{Text: said}, nil
}

func (t *Tool) check(args json.RawMessage) error {
	err := strictjson.Check(args)
	if err == nil {
		err = t.args.Validate(args) //mutate:tool-arguments-validated
	}
	if err == nil && t.checkDecodable != nil { //mutate:unreadable-arguments
		err = t.checkDecodable(args)
	}
	if err != nil {
		return &argsError{t.name, err}
	}
	return nil
}

// with returns a copy that the wrapper may change.
func (t *Tool) with(change func(*Tool)) *Tool {
	wrapped := *t
	change(&wrapped)
	return &wrapped
}

type keyKey struct{}

// Key is the idempotency key of an approved call: the same whenever this very call is made again. It is "" in a call that
// needed no approval, and in one of a tool that is [Repeatable].
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}

type chunksKey struct{}

// WithChunks returns a context in which the pieces of a streaming tool's result are passed to fn as they come.
func WithChunks(ctx context.Context, fn func(chunk string)) context.Context {
	return context.WithValue(ctx, chunksKey{}, fn)
}

func chunks(ctx context.Context) func(string) {
	if fn, ok := ctx.Value(chunksKey{}).(func(string)); ok {
		return fn
	}
	return func(string) {}
}
