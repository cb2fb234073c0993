package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
)

// memo is a type with custom JSON and a derived cache.
type memo struct {
	text  string
	words []string
}

func (m memo) MarshalJSON() ([]byte, error)  { return json.Marshal(m.text) }
func (m *memo) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &m.text) }

func (m *memo) count() int {
	if m.words == nil {
		m.words = strings.Fields(m.text)
	}
	return len(m.words)
}

// unsaved has in each field a part that is not in its JSON.
type unsaved struct {
	Hook struct {
		Name string
		Call func() `json:"-"`
	}
	Memo  memo
	Sum   *big.Int
	Words int
	Done  bool
}

// Regression: each field with an unsaved part counted as changed by every node: a function is never
// equal to itself, a filled cache differs from an empty one, and the zero of a big number has
// several forms.
func TestMerge_UnsavedPartsAreNotChanges(t *testing.T) {
	g := graph.New[unsaved]("unsaved")
	g.Node("begins", func(_ context.Context, s unsaved) (unsaved, error) {
		s.Hook.Call = func() {}
		one := big.NewInt(1)
		s.Sum = new(big.Int).Sub(one, one)
		return s, nil
	})
	g.Node("reads", func(_ context.Context, s unsaved) (unsaved, error) {
		s.Words = s.Memo.count()
		return s, nil
	})
	g.Node("writes", func(_ context.Context, s unsaved) (unsaved, error) {
		s.Memo = memo{text: "new"}
		s.Sum.SetInt64(7)
		s.Hook.Name = "new"
		return s, nil
	})
	g.Node("ends", func(_ context.Context, s unsaved) (unsaved, error) {
		s.Done = s.Hook.Call == nil // fields that are not in JSON are zero
		return s, nil
	})
	g.Edge(graph.Start, "begins")
	for _, middle := range []string{"reads", "writes"} {
		g.Edge("begins", middle)
		g.Edge(middle, "ends")
	}
	g.Edge("ends", graph.End)

	out, err := newHarness(t, g).start(unsaved{Memo: memo{text: "two words"}})

	if err != nil || out.Words != 2 || out.Memo.text != "new" || out.Sum.Int64() != 7 || out.Hook.Name != "new" || !out.Done {
		t.Errorf("got %+v, %v", out, err)
	}
}

// grade has no JSON form before it is set.
type grade struct{ mark int }

func (g grade) MarshalJSON() ([]byte, error) {
	if g.mark == 0 {
		return nil, errors.New("not graded")
	}
	return json.Marshal(g.mark)
}
func (g *grade) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &g.mark) }

// Regression: values that JSON omits were saved anyway: a missing raw message came back as null,
// and a value without a JSON form prevented the start of the run.
func TestState_OmittedJSONFieldsRoundTrip(t *testing.T) {
	type state struct {
		Raw   json.RawMessage `json:",omitempty"`
		Grade grade           `json:",omitzero"`
		Done  string
	}
	var seen []state
	g := graph.New[state]("left-out")
	g.Node("node", func(ctx context.Context, s state) (state, error) {
		seen = append(seen, s)
		answer, err := question.Ask(ctx, "?")
		s.Raw, s.Grade, s.Done = json.RawMessage(`{"a":1}`), grade{1}, answer
		return s, err
	})
	g.Node("next", func(ctx context.Context, s state) (state, error) {
		seen = append(seen, s)
		_, err := question.Ask(ctx, "?")
		return s, err
	})
	g.Edge(graph.Start, "node")
	g.Edge("node", "next")
	g.Edge("next", graph.End)
	h := newHarness(t, g)
	_, err := h.start(state{})
	_, err = h.answer(h.waits(err), "?", "yes")
	if _, err := h.answer(h.waits(err), "?", "yes"); err != nil {
		t.Fatal(err)
	}
	full := state{json.RawMessage(`{"a":1}`), grade{1}, "yes"}
	if d := cmp.Diff([]state{{}, {}, full, full}, seen, cmp.AllowUnexported(grade{})); d != "" {
		t.Errorf("the nodes saw (-want +got):\n%s", d)
	}
}

type (
	// Base and Other are embedded: both have an ID.
	Base  struct{ ID, Kind string }
	Other struct{ ID string }
)

// Regression: a field that encoding/json omits was lost silently: nested fields with every save,
// fields of the state itself when a hold was answered.
func TestCompile_AFieldThatJSONPassesOverIsAMistake(t *testing.T) {
	type shadowed struct {
		Base
		Kind string
	}
	type ambiguous struct {
		Base
		Other
	}
	type decided struct {
		Base
		Other `json:"other"`
	}
	type inner struct{ Doc *ambiguous }
	type twice struct {
		Sum   int
		Total int `json:"Sum"`
	}
	type innerTwice struct{ Doc []twice }
	for name, c := range map[string]struct {
		compile func() error
		lost    []string
	}{
		"one above":        {compiles[shadowed], []string{"Base.Kind"}},
		"two side by side": {compiles[ambiguous], []string{"Base.ID", "Other.ID"}},
		"inside a field":   {compiles[inner], []string{"Base.ID", "Other.ID"}},
		"of one name":      {compiles[twice], []string{"Sum"}},
		"two in a field":   {compiles[innerTwice], []string{"Sum"}},
		"none":             {compiles[decided], nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.compile()
			compileErr, _ := errors.AsType[*graph.CompileError](err)
			if len(c.lost) == 0 {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if compileErr == nil || len(compileErr.Mistakes) != len(c.lost) {
				t.Fatalf("got %v, want mistakes about %q", err, c.lost)
			}
			for i, field := range c.lost {
				m := compileErr.Mistakes[i]
				if m.Code != "state" || !strings.Contains(m.Message, "field "+field+" would be lost") {
					t.Errorf("got %+v, want one about %s", m, field)
				}
			}
		})
	}
}

// compiles compiles a graph with a state type.
func compiles[S any]() error {
	g := graph.New[S]("g")
	g.Node("n", func(_ context.Context, s S) (S, error) { return s, nil })
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	_, err := g.Compile()
	return err
}

// Regression: a value in an untyped field was saved as {}.
func TestRun_PointerMarshalerInAnUntypedFieldReturnsErrorWithItsName(t *testing.T) {
	type account struct {
		Owner string
		Facts map[string]any
	}
	g := graph.New[account]("g")
	g.Node("n", func(_ context.Context, s account) (account, error) {
		s.Facts = map[string]any{"balance": *big.NewInt(7)}
		return s, nil
	})
	g.Edge(graph.Start, "n")
	g.Edge("n", graph.End)
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	_, err = flow.Run(t.Context(), account{})
	if bad, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(bad.Error(), `state field Facts: it["balance"] holds a big.Int: use a pointer to big.Int`) {
		t.Errorf("got %v", err)
	}
	if _, err = flow.Run(t.Context(), account{Facts: map[string]any{"balance": *big.NewInt(7)}}); err == nil || !strings.Contains(err.Error(), "state field Facts") {
		t.Errorf("the input: %v", err)
	}
}

// Regression: map values are not addressable, so encoding/json does not call pointer methods for
// them: an unreadable run was saved.
func TestCompile_MapValueWithPointerMarshalerIsAMistake(t *testing.T) {
	type money struct{ Sum big.Int }
	for name, c := range map[string]struct {
		compile func() error
		ok      bool
	}{
		"itself":              {compiles[struct{ Sums map[string]big.Int }], false},
		"inside of a struct":  {compiles[struct{ Sums map[string]money }], false},
		"inside of an array":  {compiles[map[string][2]big.Int], false},
		"a map of pointers":   {compiles[struct{ Sums map[string]*big.Int }], true},
		"a list in a map":     {compiles[struct{ Sums map[string][]money }], true},
		"without a map":       {compiles[struct{ Sum money }], true},
		"a method of a value": {compiles[struct{ At map[string]time.Time }], true},
	} {
		if err := c.compile(); (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "use a map of pointers") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
