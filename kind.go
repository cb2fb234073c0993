package fermata

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/attest"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Kind is a named pair of types: a question Q and an answer A. Both have a JSON Schema derived from
// the Go type. Forms are generated from the schemas, and answers are validated against them.
//
// The schemas describe the output of encoding/json: a type with MarshalText is a string, a type
// with MarshalJSON is any JSON unless its fields describe it, []byte is base64, and a number in a
// field with the option ",string" is a string.
//
// An answer is an A, or JSON that decodes to one. Untyped numbers in it are json.Number. If A (or a
// type in it) implements [Choices], only the listed values are valid. If A implements [Validator],
// its Validate runs last.
type Kind[Q, A any] struct {
	name             string
	question, answer schema.Schema
	untyped          bool // Q has untyped places
	hasValidator     bool // A may implement a validator interface
	attested         attest.Fields
	human            json.RawMessage // the answer schema for people
	defaultAnswer    json.RawMessage
	endUser          bool
}

// Choices is implemented by string types with a fixed set of values. The set becomes an enum in the
// JSON Schema.
type Choices interface{ Choices() []string }

// Validator is implemented by answers that a JSON Schema cannot validate alone. [ValidatorFor] also
// receives the question.
type Validator interface{ Validate() error }

// ValidatorFor is implemented by answers whose validity depends on the question.
type ValidatorFor[Q any] interface{ ValidateFor(question Q) error }

// AnyKind is a [Kind] without its type parameters.
type AnyKind interface {
	// Name is unique in a program.
	Name() string
	// QuestionSchema and AnswerSchema are JSON Schemas (draft 2020-12).
	QuestionSchema() json.RawMessage
	AnswerSchema() json.RawMessage
	// HumanAnswerSchema is AnswerSchema without what people cannot give: attested fields (see
	// [AttestedAnswer]) and, for a [Decision], the verbs return and expire.
	HumanAnswerSchema() json.RawMessage
	// AttestedFields are the fields that the runtime writes (see [AttestedAnswer]): their roles by
	// JSON name.
	AttestedFields() map[string]string
	// AnswerFingerprint changes when the answer schema changes; "" if the schema is not sufficient
	// to tell.
	AnswerFingerprint() string
	// IsForEndUser reports that the end user of the run answers: see [ForEndUser].
	IsForEndUser() bool
	// Check returns the answer as JSON if it matches the question (also JSON), and an *AnswerError
	// otherwise.
	Check(question json.RawMessage, answer any) (json.RawMessage, error)
}

var kinds = struct {
	sync.RWMutex
	byName map[string]AnyKind
}{byName: make(map[string]AnyKind)}

// PlainKind is the kind name on a server for interrupts raised without a kind, as with [Interrupt].
// The answer is any JSON.
const PlainKind = "interrupt"

// holdKind is the kind of graph holds. Code does not raise them, and their answers are graph
// states.
const holdKind = "hold"

// NewKind creates a kind and registers its name, so that other processes can validate answers. Use
// it for package variables. It panics if the name is empty, "hold" or "interrupt", or registered
// with other types, or if a type has no JSON Schema.
func NewKind[Q, A any](name string, options ...KindOption) *Kind[Q, A] {
	if name == "" || name == holdKind || name == PlainKind || !utf8.ValidString(name) {
		panic(fmt.Sprintf("fermata: NewKind: invalid kind name %q", name))
	}
	k := &Kind[Q, A]{name: name, question: schema.MustFor[Q](name + " question"), answer: schema.MustFor[A](name + " answer")}
	k.untyped = roundtrip.InfoOf(reflect.TypeFor[Q]()).Untyped
	k.hasValidator = mayImplement[A](reflect.TypeFor[Validator]()) || mayImplement[A](reflect.TypeFor[ValidatorFor[Q]]())
	k.attested, k.human = attest.FieldsOf(reflect.TypeFor[A]()), k.answer.Text
	if len(k.attested) > 0 {
		k.human = schema.TextWithout[A](slices.Collect(maps.Keys(k.attested)))
	}
	for _, option := range options {
		k.endUser = k.endUser || option.endUser
		if option.defaultAnswer == nil {
			continue
		}
		data, _, err := k.decode(option.defaultAnswer)
		if err != nil {
			panic(fmt.Sprintf("fermata: NewKind: the default answer of %q: %v", name, err))
		}
		k.defaultAnswer = data
	}
	kinds.Lock()
	defer kinds.Unlock()
	if known, ok := kinds.byName[name]; ok {
		if same, ok := known.(*Kind[Q, A]); ok {
			return same
		}
		panic(fmt.Sprintf("fermata: NewKind: %q is already registered as %T, not %T", name, known, k))
	}
	kinds.byName[name] = k
	return k
}

// KindOption configures a kind.
type KindOption struct {
	defaultAnswer any
	endUser       bool
}

// DefaultAnswer declares the answer of a question that nobody answers before its deadline. It is
// used only if a rule says so (on_timeout: default), and never for an approval, a gate, a hold or
// an effect in doubt.
func DefaultAnswer(answer any) KindOption { return KindOption{defaultAnswer: answer} }

// ForEndUser declares that the end user of the run answers, not an approver. If the run has an end
// user, the request is visible to them and to admins only, no other person can answer it, and no
// notices are sent about it. It stays open until the run no longer waits for it. In a run without
// an end user the kind is like any other.
func ForEndUser() KindOption { return KindOption{endUser: true} }

// LookupKind returns the kind with this name.
func LookupKind(name string) (AnyKind, bool) {
	kinds.RLock()
	defer kinds.RUnlock()
	k, ok := kinds.byName[name]
	return k, ok
}

// Kinds returns all kinds of this program, sorted by name.
func Kinds() []AnyKind {
	kinds.RLock()
	defer kinds.RUnlock()
	all := make([]AnyKind, 0, len(kinds.byName))
	for _, name := range slices.Sorted(maps.Keys(kinds.byName)) {
		all = append(all, kinds.byName[name])
	}
	return all
}

// Name returns the registered name.
func (k *Kind[Q, A]) Name() string { return k.name }

// QuestionSchema returns the JSON Schema of Q.
func (k *Kind[Q, A]) QuestionSchema() json.RawMessage { return bytes.Clone(k.question.Text) }

// AnswerSchema returns the JSON Schema of A. For forms use [Kind.HumanAnswerSchema].
func (k *Kind[Q, A]) AnswerSchema() json.RawMessage { return bytes.Clone(k.answer.Text) }

// IsForEndUser reports that the end user of the run answers: see [ForEndUser].
func (k *Kind[Q, A]) IsForEndUser() bool { return k.endUser }

// HumanAnswerSchema returns the JSON Schema of the answers that a person can give: without attested
// fields (see [AttestedAnswer]) and, for [Approval], without expiry and return: only some
// rules let a person return a request. Use it for forms.
func (k *Kind[Q, A]) HumanAnswerSchema() json.RawMessage {
	if _, decides := any(k).(*Kind[ApprovalRequest, Decision]); decides {
		return bytes.Replace(k.human, []byte(`,"`+VerbReturn+`","`+VerbExpire+`"]`), []byte("]"), 1)
	}
	return bytes.Clone(k.human)
}

// AttestedFields returns the fields that the runtime writes (see [AttestedAnswer]): their roles by
// JSON name.
func (k *Kind[Q, A]) AttestedFields() map[string]string {
	fields := make(map[string]string, len(k.attested))
	for name, role := range k.attested {
		fields[name] = string(role)
	}
	return fields
}

// DefaultAnswerFor returns the default answer as JSON, or nil if the kind declares none or it does
// not match the question.
func (k *Kind[Q, A]) DefaultAnswerFor(question json.RawMessage) json.RawMessage {
	if k.defaultAnswer == nil {
		return nil
	}
	answer, err := k.Check(question, k.defaultAnswer)
	if err != nil {
		return nil
	}
	return answer
}

// AnswerFingerprint changes when the answer schema changes; "" for a recursive A.
func (k *Kind[Q, A]) AnswerFingerprint() string { return k.answer.Digest }

// Ask asks a person. The first call returns an error that the node must return: the run is saved
// and waits. After the answer the node is entered again, and Ask returns the answer. If the
// question differs from the one that was shown, it is a new question. If an answer was given to an
// earlier version of the program and no longer matches the kind, Ask asks again.
//
// Several questions may be open at once: ask all of them, then return the joined errors.
//
// If a person returns the question for redesign, the error is a [*ReturnedError]. If a rule rejects
// it at its deadline, the error is a [*RejectedError].
//
// Ask has no result for an expired question: if an executor or a server expires it, the run fails
// with the code "expired". [Approve] returns an [*ExpiredError] instead, so that the program can
// continue.
func (k *Kind[Q, A]) Ask(ctx context.Context, question Q) (A, error) {
	answer, _, err := k.askWithID(ctx, question)
	return answer, err
}

// askWithID is Ask and also returns the interrupt id.
func (k *Kind[Q, A]) askWithID(ctx context.Context, question Q) (answer A, id string, err error) {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return answer, "", ErrNoRun
	}
	value := any(question)
	data, err := roundtrip.Marshal(value)
	if err == nil && k.untyped {
		err = checkUntyped(question)
	}
	if err != nil {
		return answer, "", &EncodeError{Value: fmt.Sprintf("a %s question at %s", k.name, scope.FullAddress()), Err: err}
	}
	if len(data) > limits.MaxDataBytes {
		return answer, "", &DataSizeError{fmt.Sprintf("a %s question at %s", k.name, scope.FullAddress()), len(data)}
	}
	record, signal, err := scope.Ask(k.name, k.questionKey(data), data, value)
	if err != nil {
		return answer, "", err
	}
	if signal != nil {
		return answer, signal.Record.ID, signal
	}
	return k.readAnswer(scope, record, data)
}

// checkUntyped returns an error if JSON would lose a part of a value in an untyped place of v.
func checkUntyped[T any](v T) error {
	return roundtrip.CheckUntyped(reflect.ValueOf(&v).Elem(), "it")
}

// askAnswered is askWithID for a question that was answered in this activation, possibly with a
// different wording.
func (k *Kind[Q, A]) askAnswered(ctx context.Context, question Q) (answer A, id string, err error) {
	scope := activation.FromContext(ctx)
	if record := scope.LastAnswered(k.name); record != nil {
		return k.readAnswer(scope, record, record.Data)
	}
	return k.askWithID(ctx, question)
}

// readAnswer returns the answer of a record, or the error to wait with if the answer is rejected
// and the interrupt is open again.
func (k *Kind[Q, A]) readAnswer(scope *activation.Scope, record *activation.Record, question json.RawMessage) (answer A, id string, err error) {
	if record.AnswerType == activation.RefusalType {
		return answer, record.ID, decodeRefusal(k.name, record.Answer)
	}
	if answer, err = k.decodeAnswer(record, question); err != nil {
		err = scope.RefuseAndWait(record.ID, err)
	}
	return answer, record.ID, err
}

// decodeAnswer decodes an answer that was validated when it was given. If the answer schema has
// changed since, it is validated again: a "no" in the old form could be a "yes" in the new one.
func (k *Kind[Q, A]) decodeAnswer(record *activation.Record, question json.RawMessage) (answer A, err error) {
	if record.AnswerType != "" && record.AnswerType == k.answer.Digest { //mutate:answer-of-old-schema
		err = decodeStored(record.Answer, &answer)
	} else if _, answer, err = k.fromJSON(record.Answer); err == nil {
		err = k.revalidate(record, question, answer)
	}
	if err != nil {
		var zero A
		return zero, fmt.Errorf("the answer has a form that this program does not accept: %w", err)
	}
	return answer, nil
}

// revalidate validates an answer that another program validated. For a recursive type the schema is
// not known to be unchanged; then the validators are not run again, because they may depend on the
// time.
func (k *Kind[Q, A]) revalidate(record *activation.Record, question json.RawMessage, answer A) error {
	if record.AnswerType == "" && k.answer.Recursive {
		return schema.CheckChoices(reflect.ValueOf(&answer).Elem())
	}
	return k.validate(question, answer) //mutate:old-answer-validated
}

// hasAnswer reports whether the question was answered at this scope, without asking it.
func (k *Kind[Q, A]) hasAnswer(at *activation.Scope, question Q) bool {
	data, err := roundtrip.Marshal(question)
	return err == nil && at.Answered(k.questionKey(data))
}

// questionKey returns the same key for equal questions of this kind.
func (k *Kind[Q, A]) questionKey(question []byte) string {
	sum := sha256.Sum256(question)
	key := make([]byte, 0, 64)
	key = append(append(key, k.name...), '.')
	return string(hex.AppendEncode(key, sum[:8])) //mutate:request-digest-in-id
}

// Question returns the question of an interrupt of this kind.
func (k *Kind[Q, A]) Question(i *InterruptCtx) (Q, error) {
	if i.Kind != k.name {
		var zero Q
		return zero, fmt.Errorf("fermata: interrupt %s is of kind %q, not %q", i.ID, i.Kind, k.name)
	}
	return InfoAs[Q](i)
}

// Check returns the answer as JSON if it is an A, a *A, or a value with the same JSON, and matches
// the question. Otherwise it returns an *AnswerError. nil is not an answer, and neither is a value
// that JSON cannot represent completely.
func (k *Kind[Q, A]) Check(question json.RawMessage, answer any) (json.RawMessage, error) {
	data, typed, err := k.decode(answer)
	if err == nil {
		err = k.validate(question, typed)
	}
	if err != nil {
		return nil, &AnswerError{Kind: k.name, Err: explainBool(answer, typed, err)}
	}
	return data, nil
}

// explainBool adds the right functions to the error for a bool that was given as a decision.
func explainBool(answer, typed any, err error) error {
	if _, decision := typed.(Decision); !decision {
		return err
	}
	given, ok := answer.(bool)
	if data, raw := answer.(json.RawMessage); raw {
		ok = json.Unmarshal(data, &given) == nil
	}
	if ok {
		return fmt.Errorf("%w; answer with fermata.Yes(by) or fermata.No(by, reason)", err)
	}
	return err
}

func (k *Kind[Q, A]) decode(answer any) (json.RawMessage, A, error) {
	var zero A
	if answer == nil {
		return nil, zero, errors.New("no answer given")
	}
	if err := checkComplete(answer); err != nil {
		return nil, zero, err
	}
	switch v := answer.(type) {
	case A:
		return k.fromTyped(v)
	case *A:
		if v == nil {
			return nil, zero, errors.New("no answer given")
		}
		return k.fromTyped(*v)
	case json.RawMessage:
		return k.fromJSON(v)
	}
	data, err := roundtrip.Marshal(answer)
	if err != nil {
		return nil, zero, err
	}
	return k.fromJSON(data)
}

// fromTyped skips the checks that the Go type guarantees.
func (k *Kind[Q, A]) fromTyped(answer A) (json.RawMessage, A, error) {
	data, err := roundtrip.Marshal(answer)
	if err == nil && k.answer.BeyondType {
		err = k.answer.Validate(data)
	}
	return data, answer, err
}

func (k *Kind[Q, A]) fromJSON(data json.RawMessage) (json.RawMessage, A, error) {
	var answer A
	if err := strictjson.Check(data); err != nil { //mutate:answer-no-duplicate-keys
		return nil, answer, err
	}
	if err := k.answer.Validate(data); err != nil { //mutate:answer-matches-schema
		return nil, answer, err
	}
	err := strictjson.Decode(data, &answer) //mutate:answer-strict-decode
	return bytes.Clone(data), answer, err
}

// mayImplement reports whether an A, or a pointer to it, can implement the interface.
func mayImplement[A any](iface reflect.Type) bool {
	t := reflect.TypeFor[A]()
	return t.Kind() == reflect.Interface || t.Implements(iface) || reflect.PointerTo(t).Implements(iface)
}

// validate runs the validators of the answer, if it has any.
func (k *Kind[Q, A]) validate(question json.RawMessage, answer A) error {
	if !k.answer.Recursive && !k.hasValidator {
		return nil
	}
	return k.runValidators(question, answer)
}

// runValidators runs the choices check and the validator interfaces. A pointer also has the methods
// of its value.
func (k *Kind[Q, A]) runValidators(question json.RawMessage, answer A) error {
	if k.answer.Recursive {
		if err := schema.CheckChoices(reflect.ValueOf(&answer).Elem()); err != nil {
			return err
		}
	}
	forms := []any{&answer, answer} // the second for an A that is itself a pointer
	for _, form := range forms {
		if v, ok := form.(Validator); ok {
			if err := v.Validate(); err != nil { //mutate:answer-validates-itself
				return err
			}
			break
		}
	}
	for _, form := range forms {
		v, ok := form.(ValidatorFor[Q])
		if !ok {
			continue
		}
		var q Q
		if err := decodeStored(question, &q); err != nil {
			return fmt.Errorf("the question cannot be decoded: %w", err)
		}
		return v.ValidateFor(q)
	}
	return nil
}
