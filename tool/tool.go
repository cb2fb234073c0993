package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"regexp"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Tool is a function that a model can call. It is immutable; wrappers return new tools.
type Tool struct {
	name, description string
	args              schema.Schema
	// checkDecodable reports whether Go can decode arguments that the schema accepts; nil if they
	// are not decoded.
	checkDecodable func(args json.RawMessage) error
	call           func(ctx context.Context, args json.RawMessage) (string, error)
	retry          retryPolicy
	target         []fermata.EffectOption // what else the target of an approved call can do
	final          bool
	// completers ask for missing arguments, before approval.
	completers []func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)
	approval   *approvalConfig // nil: no approval
}

// retryPolicy is how a call in doubt is resolved.
type retryPolicy int

const (
	retryAskPerson retryPolicy = iota // ask a person
	retryWithKey                      // repeat with the same key
	retryFreely                       // repeat
)

// Result is the result of a tool call.
type Result struct {
	Text string `json:"text"`
	// Failed reports that the tool was not called or failed; Text is the explanation for the model.
	Failed bool `json:"failed,omitempty"`
}

// Option configures a tool.
type Option func(*Tool)

// Repeatable declares that repeating a call is harmless, as for a read. A call that a crash
// interrupted is then repeated. Otherwise an approved call is not repeated: a person is asked for
// its outcome (see [Approve]).
func Repeatable() Option { return func(t *Tool) { t.retry = retryFreely } }

// Idempotent declares that the tool's target ignores a second call with the same [Key], so that an
// approved call with an unknown outcome is repeated with the same key.
func Idempotent() Option { return func(t *Tool) { t.retry = retryWithKey } }

// Lookup declares that the tool's target can report the outcome of an approved call by its [Key].
// lookup is called instead of asking a person when the outcome is unknown; see [fermata.Lookup].
// The text that it finds is the result for the model.
func Lookup(lookup func(ctx context.Context, key string) (text string, found bool, err error)) Option {
	option := fermata.Lookup(func(ctx context.Context, key string) (Result, bool, error) {
		text, found, err := lookup(ctx, key)
		return Result{Text: text}, found, err
	})
	return func(t *Tool) { t.target = append(t.target, option) }
}

// Fenced declares that the tool's target rejects a call with a lower [fermata.Fence] than it has
// seen with the same key; see [fermata.Fenced]. It has an effect only together with [Lookup].
func Fenced() Option { return func(t *Tool) { t.target = append(t.target, fermata.Fenced()) } }

// Final declares that the tool's result is the agent's answer: the model is not called again after
// it.
func Final() Option { return func(t *Tool) { t.final = true } }

// New creates a tool from a function. The schema of its arguments is derived from In, which must be
// a struct or a map with string keys; the field tags `json` and `jsonschema` (a description)
// configure it. A call with invalid arguments does not reach fn. The model receives a string Out
// unchanged, and any other Out as JSON.
//
// An error of fn fails the run; a resume calls fn again. Return an [Error] for failures that the
// model should handle, and [fermata.Retry] for a later attempt. For calls with approval see
// [Approve].
//
// Use New for package variables and set-up code. It panics if models do not accept the name
// (letters, digits, "_" and "-", at most 64) or In has no schema.
func New[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), options ...Option) *Tool {
	return typed[In](name, description, func(ctx context.Context, in In) (string, error) {
		out, err := fn(ctx, in)
		if err != nil {
			return "", err
		}
		return encodeResult(name, out)
	}, options)
}

// NewStream creates a tool from a function that streams its result. Observers of the run see the
// chunks as they arrive, as events of an agent or as output of a graph ([graph.Emit]); the model
// gets them joined. Output after the end of the context is
// discarded, and the resume repeats the call.
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
		if err := ctx.Err(); err != nil { // the result may be incomplete because of it
			return "", err
		}
		return whole.String(), nil
	}, options)
}

// Raw creates a tool whose schema is known only at run time, for example one of another server.
// argsSchema is a JSON Schema of type object.
func Raw(name, description string, argsSchema json.RawMessage, fn func(ctx context.Context, args json.RawMessage) (string, error), options ...Option) (*Tool, error) {
	args, err := schema.Parse(argsSchema)
	if err != nil {
		return nil, fmt.Errorf("tool: %s: %w", name, err)
	}
	return build(name, description, args, fn, options)
}

func typed[In any](name, description string, fn func(context.Context, In) (string, error), options []Option) *Tool {
	if in := reflect.TypeFor[In](); in.Kind() == reflect.Pointer {
		panic(fmt.Sprintf("tool: New(%q): the arguments are of type %v: use %v, models always pass arguments", name, in, in.Elem()))
	}
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

// decoded calls fn with decoded arguments. They match the schema, but Go may be stricter.
func decoded[In any](name string, fn func(context.Context, In) (string, error)) func(context.Context, json.RawMessage) (string, error) {
	return func(ctx context.Context, args json.RawMessage) (string, error) {
		var in In
		if err := strictjson.Decode(args, &in); err != nil {
			return "", &argsError{name, err}
		}
		return fn(ctx, in)
	}
}

// segmentCall is the address segment of the tool call, segmentApproval that of its approval.
const (
	segmentCall     fermata.SegmentType = "call"
	segmentApproval fermata.SegmentType = "gate"
)

var validName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func build(name, description string, args schema.Schema, fn func(context.Context, json.RawMessage) (string, error), options []Option) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, fmt.Errorf("tool: invalid tool name %q: use 1 to 64 letters, digits, _ and -", name)
	}
	var form struct{ Type any }
	if err := json.Unmarshal(args.Text, &form); err != nil || form.Type != "object" {
		return nil, fmt.Errorf("tool: %s: the arguments of a tool must be a JSON object, not %s", name, args.Text)
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
	if err == nil {
		err = roundtrip.CheckMethods(out)
	}
	if err != nil {
		return "", &fermata.EncodeError{Value: "the result of " + name, Err: err}
	}
	return string(data), nil
}

// Name returns the name that a model calls.
func (t *Tool) Name() string { return t.name }

// Description returns the description for the model.
func (t *Tool) Description() string { return t.description }

// Schema returns the JSON Schema of the arguments.
func (t *Tool) Schema() json.RawMessage { return bytes.Clone(t.args.Text) }

// IsFinal reports whether the tool's result is the agent's answer.
func (t *Tool) IsFinal() bool { return t.final }

// Call validates the arguments, runs the wrappers, and calls the tool. Failures for the model
// (invalid arguments, a rejection, an [Error] of the tool) are a Result. An error is for the
// caller: the run waits or has failed.
func (t *Tool) Call(ctx context.Context, args json.RawMessage) (Result, error) {
	if Key(ctx) != "" { // of an outer call
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
		if wasDecided(ctx) { // the arguments were valid when the person was asked
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

// run calls the tool. Failures for the model are converted to a result here, so that an effect's
// receipt contains them.
//
// The tool runs at an address below its wrappers. Otherwise it would take answers to the interrupts
// of the wrappers for its own.
func (t *Tool) run(ctx context.Context, args json.RawMessage) (Result, error) {
	if t.approval != nil || t.completers != nil { //mutate:wrapper-answer
		ctx = fermata.AppendAddressSegment(ctx, segmentCall, t.name)
	}
	text, err := t.call(ctx, args)
	if err != nil {
		return toResult(t.name, err)
	}
	return Result{Text: text}, nil
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

// checkWrapped panics if there is no tool to wrap: a wrapper without a tool must not get into a
// program.
func checkWrapped(t *Tool, wrapper string) {
	if t == nil {
		panic(fmt.Sprintf("tool: %s: the tool is nil: pass the result of New, and check the error of Raw", wrapper))
	}
}

// with returns a copy that the wrapper may change.
func (t *Tool) with(change func(*Tool)) *Tool {
	wrapped := *t
	change(&wrapped)
	return &wrapped
}

type keyKey struct{}

// Key returns the idempotency key of an approved call. It is the same when the call is repeated. It
// is "" for a call without approval and for a [Repeatable] tool.
func Key(ctx context.Context) string {
	key, _ := ctx.Value(keyKey{}).(string)
	return key
}

type chunksKey struct{}

// WithChunks returns a context that passes the chunks of a streaming tool's result to fn as they
// arrive, instead of [graph.Emit].
func WithChunks(ctx context.Context, fn func(chunk string)) context.Context {
	return context.WithValue(ctx, chunksKey{}, fn)
}

func chunks(ctx context.Context) func(string) {
	if fn, ok := ctx.Value(chunksKey{}).(func(string)); ok {
		return fn
	}
	return func(chunk string) { graph.Emit(ctx, chunk) }
}
