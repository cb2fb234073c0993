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
	"github.com/fermata-go/fermata/internal/roundtrip"
	"github.com/fermata-go/fermata/internal/schema"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Kind is a named sort of question: what is asked is a Q, what comes back is an A, and both have a JSON Schema derived from
// the Go type, from which forms are made and against which answers are checked.
//
// The schema goes by what encoding/json writes: a type that is written as a text is a string, one with a MarshalJSON of its own is any JSON unless its
// fields tell, []byte is base64, and a number in a field with the option ",string" is a string.
//
// An answer is an A, or JSON that is one. Untyped numbers in it are json.Number. If A (or a type in it) implements [Choices], only the listed values pass; if A
// implements [Validator], its Validate has the last word.
type Kind[Q, A any] struct {
	name             string
	question, answer schema.Schema
	notEncoded       string // what people would not see of a question
	hasValidator     bool   // an answer may have methods that judge it
}

// Choices is implemented by string types with a fixed set of values. The set becomes an enum in the JSON Schema.
type Choices interface{ Choices() []string }

// Validator is implemented by answers that a JSON Schema cannot check alone. [ValidatorFor] also sees the question.
type Validator interface{ Validate() error }

// ValidatorFor is implemented by answers that are right or wrong only for what was asked.
type ValidatorFor[Q any] interface{ ValidateFor(question Q) error }

// AnyKind is a kind whose types are not known where it is used.
type AnyKind interface {
	// Name is unique in a program.
	Name() string
	// QuestionSchema and AnswerSchema are JSON Schemas (draft 2020-12).
	QuestionSchema() json.RawMessage
	AnswerSchema() json.RawMessage
	// HumanAnswerSchema is AnswerSchema without what people cannot say: of a [Decision], that nobody decided in time.
	HumanAnswerSchema() json.RawMessage
	// AnswerFingerprint is a short text that is another when the answer's schema is; "" if a schema does not tell.
	AnswerFingerprint() string
	// Check returns the answer as JSON if it fits the question, which is JSON too, and an *AnswerError if it does not.
	Check(question json.RawMessage, answer any) (json.RawMessage, error)
}

var kinds = struct {
	sync.RWMutex
	byName map[string]AnyKind
}{byName: make(map[string]AnyKind)}

// PlainKind is what a question that was raised without a kind, as with [Interrupt], is called where each has to have one: on a server. Its answer is any JSON.
const PlainKind = "interrupt"

// holdKind is the kind of the holds of graphs. They are not asked by code, and their answers are states of graphs.
const holdKind = "hold"

// NewKind makes a kind and registers it under its name, so that an answer which arrives in another process can be checked.
// It is meant for package variables, and panics if the name is empty, "hold" or "interrupt", or stands for other types already, or if a type has
// no JSON Schema.
func NewKind[Q, A any](name string) *Kind[Q, A] {
	if name == "" || name == holdKind || name == PlainKind || !utf8.ValidString(name) {
		panic(fmt.Sprintf("fermata: NewKind: a kind cannot be named %q", name))
	}
	k := &Kind[Q, A]{name: name, question: schema.MustFor[Q](name + " question"), answer: schema.MustFor[A](name + " answer")}
	k.notEncoded = roundtrip.BypassedMethods(reflect.TypeFor[Q](), "it")
	k.hasValidator = mayImplement[A](reflect.TypeFor[Validator]()) || mayImplement[A](reflect.TypeFor[ValidatorFor[Q]]())
	kinds.Lock()
	defer kinds.Unlock()
	if known, ok := kinds.byName[name]; ok {
		if same, ok := known.(*Kind[Q, A]); ok {
			return same
		}
		panic(fmt.Sprintf("fermata: NewKind: %q is a %T already, it cannot be a %T too", name, known, k))
	}
	kinds.byName[name] = k
	return k
}

// LookupKind returns the kind of that name.
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

// Name returns the name under which the kind is known to people and programs.
func (k *Kind[Q, A]) Name() string { return k.name }

// QuestionSchema returns the JSON Schema of Q.
func (k *Kind[Q, A]) QuestionSchema() json.RawMessage { return bytes.Clone(k.question.Text) }

// AnswerSchema returns the JSON Schema of A. [Kind.HumanAnswerSchema] is for forms.
func (k *Kind[Q, A]) AnswerSchema() json.RawMessage { return bytes.Clone(k.answer.Text) }

// HumanAnswerSchema returns the JSON Schema of what a person can answer. It is [Kind.AnswerSchema] but for [Approval], whose answer may also be the word of
// the clock. Make forms of this one.
func (k *Kind[Q, A]) HumanAnswerSchema() json.RawMessage {
	if _, decides := any(k).(*Kind[ApprovalRequest, Decision]); decides {
		return bytes.Replace(k.answer.Text, []byte(`,"`+VerbExpire+`"]`), []byte("]"), 1)
	}
	return k.AnswerSchema()
}

// AnswerFingerprint is a short text that is another when the answer's schema is; "" for an A that contains itself.
func (k *Kind[Q, A]) AnswerFingerprint() string { return k.answer.Digest }

// Ask asks a person. The first time it returns an error that the node has to return: the run is saved and waits. After the
// answer the node is entered again, and Ask returns it. A question that differs from what was shown is a new question. An answer
// that was given to an earlier version of the program, and does not fit the kind any more, is asked for again.
//
// Several questions may be open at once: ask them all, then return the errors joined.
//
// There is no answer in the place of one that does not come: where an executor or a server lets questions expire, the run fails with the code
// "expired". [Approve] returns an [*ExpiredError] instead, so that code can go on.
func (k *Kind[Q, A]) Ask(ctx context.Context, question Q) (A, error) {
	answer, _, err := k.askWithID(ctx, question)
	return answer, err
}

// requestApproval also returns the id under which the question is known.
func (k *Kind[Q, A]) askWithID(ctx context.Context, question Q) (answer A, id string, err error) {
	scope := activation.FromContext(ctx)
	if scope == nil {
		return answer, "", ErrNoRun
	}
	asked := any(question)
	data, err := roundtrip.Marshal(asked)
	if k.notEncoded != "" {
		err = errors.New(k.notEncoded)
	}
	if err != nil {
		return answer, "", &EncodeError{Value: fmt.Sprintf("a %s question at %s", k.name, scope.FullAddress()), Err: err}
	}
	record, signal, err := scope.Ask(k.name, k.questionKey(data), data, asked)
	if err != nil {
		return answer, "", err
	}
	if signal != nil {
		return answer, signal.Record.ID, signal
	}
	return k.readAnswer(scope, record, data)
}

// askedBefore is ask for a question that was answered in this visit, in these words or in others.
func (k *Kind[Q, A]) askAnswered(ctx context.Context, question Q) (answer A, id string, err error) {
	scope := activation.FromContext(ctx)
	if record := scope.LastAnswered(k.name); record != nil {
		return k.readAnswer(scope, record, record.Data)
	}
	return k.askWithID(ctx, question)
}

// answerOf is the answer to a question, or the error to wait with if the question is open again because of it.
func (k *Kind[Q, A]) readAnswer(scope *activation.Scope, record *activation.Record, question json.RawMessage) (answer A, id string, err error) {
	if answer, err = k.decodeAnswer(record, question); err != nil {
		err = scope.RefuseAndWait(record.ID, err)
	}
	return answer, record.ID, err
}

// recall reads an answer that was checked when it was given. If that was done by a program with another schema, it says nothing of
// this one: a no of an earlier form could be a yes in the present one.
func (k *Kind[Q, A]) decodeAnswer(record *activation.Record, question json.RawMessage) (answer A, err error) {
	if record.AnswerType != "" && record.AnswerType == k.answer.Digest { //mutate:answer-of-old-schema
		err = decodeStored(record.Answer, &answer)
	} else if _, answer, err = k.fromJSON(record.Answer); err == nil {
		err = k.revalidate(record, question, answer)
	}
	if err != nil {
		var zero A
		return zero, fmt.Errorf("it was given in a form that this program does not have: %w", err)
	}
	return answer, nil
}

// checkAgain is validate for an answer that was checked by another program. Of an answer that contains itself nobody can tell whether it was
// this one; what its own methods said then counts, as they may go by the clock.
func (k *Kind[Q, A]) revalidate(record *activation.Record, question json.RawMessage, answer A) error {
	if record.AnswerType == "" && k.answer.Recursive {
		return schema.CheckChoices(reflect.ValueOf(&answer).Elem())
	}
	return k.validate(question, answer) //mutate:old-answer-validated
}

// answered reports whether the question was answered at a place, without asking it.
func (k *Kind[Q, A]) hasAnswer(at *activation.Scope, question Q) bool {
	data, err := roundtrip.Marshal(question)
	return err == nil && at.Answered(k.questionKey(data))
}

// key is the same for the same question of this kind.
func (k *Kind[Q, A]) questionKey(question []byte) string {
	sum := sha256.Sum256(question)
	key := make([]byte, 0, 64)
	key = append(append(key, k.name...), '.')
	return string(hex.AppendEncode(key, sum[:8])) //mutate:request-digest-in-id
}

// Question returns what an interrupt of this kind asks.
func (k *Kind[Q, A]) Question(i *InterruptCtx) (Q, error) {
	if i.Kind != k.name {
		var zero Q
		return zero, fmt.Errorf("fermata: interrupt %s is of kind %q, not %q", i.ID, i.Kind, k.name)
	}
	return InfoAs[Q](i)
}

// Check returns the answer as JSON if it is an A, a *A, or something with the JSON of one, and fits the question. Anything
// else is an *AnswerError; nil is no answer, nor is a value of which JSON would lose a part.
func (k *Kind[Q, A]) Check(question json.RawMessage, answer any) (json.RawMessage, error) {
	data, typed, err := k.decode(answer)
	if err == nil {
		err = k.validate(question, typed)
	}
	if err != nil {
		return nil, &AnswerError{Kind: k.name, Err: err}
	}
	return data, nil
}

func (k *Kind[Q, A]) decode(answer any) (json.RawMessage, A, error) {
	var zero A
	if answer == nil {
		return nil, zero, errors.New("no answer given")
	}
	if err := checkEncodable(reflect.TypeOf(answer)); err != nil {
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

// fromTyped leaves out what the Go type has proved already.
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

// mayImplement reports whether an A, or a pointer to it, can be one of the interface.
func mayImplement[A any](word reflect.Type) bool {
	t := reflect.TypeFor[A]()
	return t.Kind() == reflect.Interface || t.Implements(word) || reflect.PointerTo(t).Implements(word)
}

// validate asks the answer itself, if it has anything to say.
func (k *Kind[Q, A]) validate(question json.RawMessage, answer A) error {
	if !k.answer.Recursive && !k.hasValidator {
		return nil
	}
	return k.runValidators(question, answer)
}

// judge is validate for answers with something to say. A pointer has the methods of its value, too.
func (k *Kind[Q, A]) runValidators(question json.RawMessage, answer A) error {
	if k.answer.Recursive {
		if err := schema.CheckChoices(reflect.ValueOf(&answer).Elem()); err != nil {
			return err
		}
	}
	forms := []any{&answer, answer} // the second for an A that is a pointer itself
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
			return fmt.Errorf("the question cannot be read: %w", err)
		}
		return v.ValidateFor(q)
	}
	return nil
}
