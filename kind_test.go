package fermata_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
)

type color string

func (color) Choices() []string { return []string{"red", "green"} }

type paint struct {
	Color color  `json:"color"`
	Coats int    `json:"coats,omitempty" jsonschema:"how many coats"`
	Note  string `json:"note,omitempty"`
}

func (p paint) Validate() error {
	if p.Coats > 3 {
		return errors.New("too thick")
	}
	return nil
}

var painting = fermata.NewKind[string, paint]("test-painting")

func TestKind_SchemasComeFromTheTypes(t *testing.T) {
	var schema struct {
		Properties map[string]struct {
			Type        string
			Enum        []string
			Description string
		}
		Required             []string
		AdditionalProperties any
	}
	if err := json.Unmarshal(painting.AnswerSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(schema.Properties["color"].Enum, []string{"red", "green"}) || schema.Properties["coats"].Description != "how many coats" ||
		!slices.Equal(schema.Required, []string{"color"}) {
		t.Fatalf("got %s", painting.AnswerSchema())
	}
}

func TestKind_ChecksAnswers(t *testing.T) {
	for name, good := range map[string]any{
		"value":   paint{Color: "red"},
		"pointer": &paint{Color: "green", Coats: 3},
		"JSON":    json.RawMessage(`{"color":"red","coats":2}`),
		"map":     map[string]any{"color": "green"},
	} {
		if data, err := painting.Check(nil, good); err != nil || !json.Valid(data) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, bad := range map[string]any{
		"unlisted choice":        paint{Color: "blue"},
		"unlisted in JSON":       json.RawMessage(`{"color":"blue"}`),
		"refused by Validate":    paint{Color: "red", Coats: 4},
		"refused, as JSON":       json.RawMessage(`{"color":"red","coats":4}`),
		"unknown member":         json.RawMessage(`{"color":"red","gloss":true}`),
		"member of other case":   json.RawMessage(`{"color":"red","Note":"x"}`),
		"nothing":                nil,
		"half a number":          json.RawMessage(`{"color":"red","coats":1.5}`),
		"missing choice":         paint{},
		"not encodable":          func() {},
		"deeply nested nonsense": json.RawMessage(strings.Repeat("[", 200) + strings.Repeat("]", 200)),
	} {
		data, err := painting.Check(nil, bad)
		wrong, ok := errors.AsType[*fermata.AnswerError](err)
		if !ok || wrong.Kind != "test-painting" || data != nil {
			t.Errorf("%s: got %s, %v", name, data, err)
		}
	}
}

type picky struct {
	Word string `json:"word"`
}

func (*picky) Validate() error { return errors.New("never right") }

type echo struct {
	Word string `json:"word"`
}

func (e echo) ValidateFor(question string) error {
	if e.Word != question {
		return errors.New("not what was asked")
	}
	return nil
}

func TestI13_ValidatorRunsForEveryFormOfAnswer(t *testing.T) {
	question := json.RawMessage(`"red"`)
	for name, check := range map[string]func() (json.RawMessage, error){
		"method of the pointer": func() (json.RawMessage, error) {
			return fermata.NewKind[string, picky]("test-picky").Check(question, picky{Word: "red"})
		},
		"pointer": func() (json.RawMessage, error) {
			return fermata.NewKind[string, *paint]("test-pointer").Check(question, &paint{Color: "red", Coats: 4})
		},
		"interface": func() (json.RawMessage, error) {
			return fermata.NewKind[string, any]("test-any").Check(question, paint{Color: "red", Coats: 4})
		},
		"for the question": func() (json.RawMessage, error) {
			return fermata.NewKind[string, echo]("test-echo").Check(question, echo{Word: "green"})
		},
	} {
		if data, err := check(); err == nil {
			t.Errorf("%s: %s was accepted", name, data)
		}
	}
}

func TestKind_KeepsNumbersExactly(t *testing.T) {
	k := fermata.NewKind[string, map[string]int64]("test-numbers")
	data, err := k.Check(nil, json.RawMessage(`{"id":9007199254740993}`))
	if err != nil || string(data) != `{"id":9007199254740993}` {
		t.Fatalf("got %s, %v", data, err)
	}
}

func TestNewKind_SameNameWithOtherTypesPanics(t *testing.T) {
	if fermata.NewKind[string, paint]("test-painting") != painting {
		t.Error("the same kind created twice must be the same kind")
	}
	for name, try := range map[string]func(){
		"other types":    func() { fermata.NewKind[string, int]("test-painting") },
		"no name":        func() { fermata.NewKind[string, int]("") },
		"no JSON Schema": func() { fermata.NewKind[string, chan int]("test-chan") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			try()
		}()
	}
	if _, ok := fermata.LookupKind("test-chan"); ok {
		t.Error("an invalid kind is registered")
	}
}

type tree struct {
	Label    string `json:"label"`
	Children []tree `json:"children,omitempty"`
}

func TestKind_RecursiveTypesAreCheckedByDecoding(t *testing.T) {
	k := fermata.NewKind[tree, tree]("test-tree")
	if _, err := k.Check(nil, json.RawMessage(`{"label":"a","children":[{"label":"b"}]}`)); err != nil {
		t.Error(err)
	}
	if _, err := k.Check(nil, json.RawMessage(`{"label":"a","children":[{"lable":"b"}]}`)); err == nil {
		t.Error("an unknown field was accepted")
	}
}

type vote struct {
	Color color  `json:"color"`
	Subs  []vote `json:"subs,omitempty"`
}

func TestKind_ChoicesAreEnforcedInRecursiveTypes(t *testing.T) {
	k := fermata.NewKind[string, vote]("test-votes")
	for _, bad := range []string{`{"color":"blue"}`, `{}`, `{"color":"red","subs":[{"color":"blue"}]}`} {
		if _, err := k.Check(nil, json.RawMessage(bad)); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	if _, err := k.Check(nil, json.RawMessage(`{"color":"red","subs":[{"color":"green"}]}`)); err != nil {
		t.Error(err)
	}
}

func TestKinds_AreListedByName(t *testing.T) {
	var names []string
	for _, k := range fermata.Kinds() {
		names = append(names, k.Name())
	}
	if !slices.IsSorted(names) || !slices.Contains(names, "approval") || !slices.Contains(names, "effect-in-doubt") {
		t.Fatalf("got %v", names)
	}
}

// Regression: the form also offered expire, which the server rejected.
func TestKind_HumanAnswerSchemaExcludesExpire(t *testing.T) {
	if schema := string(fermata.Approval.HumanAnswerSchema()); strings.Contains(schema, "expire") || !strings.Contains(schema, `"enum":["approve","reject"]`) {
		t.Errorf("got %s", schema)
	}
	if !strings.Contains(string(fermata.Approval.AnswerSchema()), "expire") {
		t.Error("the schema lacks expire")
	}
	if a, b := painting.HumanAnswerSchema(), painting.AnswerSchema(); string(a) != string(b) {
		t.Errorf("people are asked for %s, and %s is accepted", a, b)
	}
}

// Regression: the node got other characters than the person's, because JSON had changed the answer.
// It must be rejected, and the interrupt stay open.
func TestKind_AnswerThatJSONWouldChangeIsRejected(t *testing.T) {
	said := fermata.NewKind[string, string]("said-" + t.Name())
	typed := "gr\xfc\xdfe"
	type text string
	for _, answer := range []any{typed, &typed, text(typed)} {
		_, err := said.Check(json.RawMessage(`"?"`), answer)
		if wrong, ok := errors.AsType[*fermata.AnswerError](err); !ok || !strings.Contains(wrong.Error(), "UTF-8") {
			t.Errorf("%T: %v", answer, err)
		}
	}
	if data, err := said.Check(json.RawMessage(`"?"`), "gr\ufffde"); err != nil || string(data) != "\"gr\ufffde\"" {
		t.Errorf("a replacement character: %s, %v", data, err)
	}
}

type (
	// refusal has an unexported field, and token is masked in its text form.
	refusal struct{ denied bool }
	token   string
)

func (token) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Regression: a part of an answer that is not in its JSON was lost silently: an unexported denial
// did not reach the node.
func TestI13_AnswerThatJSONWouldTruncateIsRejected(t *testing.T) {
	untyped := fermata.NewKind[string, any]("untyped-" + t.Name())
	typed := fermata.NewKind[string, refusal]("typed-" + t.Name())
	for _, test := range []struct {
		kind   fermata.AnyKind
		answer any
		want   string
	}{
		{typed, refusal{denied: true}, "denied is not exported"},
		{typed, &refusal{denied: true}, "denied is not exported"},
		{untyped, refusal{denied: true}, "denied is not exported"},
		{untyped, []token{"secret"}, "cannot read it"},
	} {
		_, err := test.kind.Check(json.RawMessage(`"?"`), test.answer)
		if wrong, ok := errors.AsType[*fermata.AnswerError](err); !ok || !strings.Contains(wrong.Error(), test.want) {
			t.Errorf("%T: %v", test.answer, err)
		}
	}
}

// Regression: two questions that differ only in such a byte were treated as one, and the second was
// not asked.
func TestKind_QuestionThatJSONWouldChangeIsRejected(t *testing.T) {
	kind := fermata.NewKind[string, string]("asked-" + t.Name())
	for _, question := range []string{"may I drop \xfc?", "may I drop \xfd?"} {
		_, err := newRun(t, func(ctx context.Context) (string, error) { return kind.Ask(ctx, question) }).start()
		if wrong, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(wrong.Error(), "UTF-8") {
			t.Errorf("%q: %v", question, err)
		}
	}
}

func TestApproval_BoolSaysWhichAnswerIsMeant(t *testing.T) {
	for _, answer := range []any{true, json.RawMessage(`false`)} {
		_, err := fermata.Approval.Check(json.RawMessage(`{"action":"refund","args":{},"digest":"d"}`), answer)
		if err == nil || !strings.Contains(err.Error(), "answer with fermata.Yes(by) or fermata.No(by, reason)") {
			t.Errorf("%v: %v", answer, err)
		}
	}
}

func TestRequests_ArePrintedAsText(t *testing.T) {
	args := json.RawMessage(`{"cents":5}`)
	if text := fmt.Sprint(fermata.ApprovalRequest{Action: "refund", Args: args, Summary: "5 cents"}); text != `approve refund {"cents":5}: 5 cents` {
		t.Error(text)
	}
	text := fmt.Sprint(fermata.InDoubtRequest{Action: "refund", Args: args, Key: "k-1", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if text != `did refund {"cents":5} happen? It began at 2026-01-02T03:04:05Z with the key k-1` {
		t.Error(text)
	}
}
