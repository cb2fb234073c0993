package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/graph"
)

func pass(_ context.Context, s notes) (notes, error) { return s, nil }

func TestCompile_ReportsEveryMistakeAtOnceByName(t *testing.T) {
	g := graph.New[notes]("wrong")
	g.Node("draft", pass)
	g.Node("draft", pass)
	g.Node("empty", nil)
	g.Node("__end__", pass)
	g.Edge(graph.Start, "draft")
	g.Edge("draft", "reveiw")
	g.Node("review", pass)
	g.Edge("review", graph.End)
	g.Edge("review", graph.End)
	g.Branch("draft", nil)
	g.Branch("drat", func(notes) string { return "" }, "nowhere")
	g.HoldBefore("finalise")
	g.HoldAfter("reviw")
	g.Rename("old", "new")
	graph.MergeField(g, "Logs", graph.Append[[]string])
	graph.MergeField(g, "N", graph.Append[[]string])
	_, err := g.Compile()
	mistakes, ok := errors.AsType[*graph.CompileError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	for _, want := range []struct {
		code string
		node string
		text string
	}{
		{"duplicate", "draft", `node "draft" is defined twice`},
		{"nothing", "empty", `node "empty" has no function`},
		{"name", "__end__", `invalid node name`},
		{"unknown", "reveiw", `did you mean "review"?`},
		{"duplicate", "review", `the edge from "review" to "__end__" is defined twice`},
		{"nothing", "draft", `the branch from "draft" has no route`},
		{"nothing", "draft", `the branch from "draft" has no targets`},
		{"unknown", "drat", `did you mean "draft"?`},
		{"unknown", "nowhere", `leads to unknown node "nowhere"`},
		{"unknown", "finalise", `a hold names unknown node "finalise"`},
		{"unknown", "reviw", `a hold names unknown node "reviw"`},
		{"unknown", "new", `a rename names unknown node "new"`},
		{"unreachable", "empty", `node "empty" is not reachable`},
		{"merge", "Logs", `unknown state field "Logs"`},
		{"merge", "N", `is for []string, but the field is of type int`},
	} {
		if !slices.ContainsFunc(mistakes.Mistakes, func(m graph.Mistake) bool {
			return m.Code == want.code && m.Node == want.node && strings.Contains(m.Message, want.text)
		}) {
			t.Errorf("no mistake %s about %q with %q in:\n%v", want.code, want.node, want.text, err)
		}
	}
}

func TestCompile_FindsNodesWithoutAWay(t *testing.T) {
	g := graph.New[notes]("ways")
	for _, name := range []string{"a", "lost", "stuck", "round", "about"} {
		g.Node(name, pass)
	}
	g.Edge(graph.Start, "a")
	g.Edge("a", graph.End)
	g.Edge("a", "stuck")
	g.Edge("a", "round")
	g.Edge("round", "about")
	g.Edge("about", "round")
	g.Edge("lost", graph.End)
	_, err := g.Compile()
	mistakes, ok := errors.AsType[*graph.CompileError](err)
	if !ok {
		t.Fatalf("got %v", err)
	}
	got := map[string]string{}
	for _, m := range mistakes.Mistakes {
		got[m.Node] = m.Code
	}
	want := map[string]string{
		"lost": "unreachable", "stuck": "dead-end", "round": "dead-end", "about": "dead-end",
	}
	for node, code := range want {
		if got[node] != code {
			t.Errorf("%s: got %q, want %q", node, got[node], code)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
}

type base struct{ X string }

// stamped has the JSON of a time and nothing else.
type stamped struct {
	time.Time
	Note string
}

// dated also embeds a time, but has its own JSON methods.
type dated struct {
	time.Time
	Note string
}

func (d dated) MarshalJSON() ([]byte, error) { return json.Marshal(d.Note) }
func (d *dated) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &d.Note)
}

// price, level and secret have one-way text forms, and folded is decoded to another value.
type (
	price  struct{ Cents int }
	level  int
	secret string
	folded string
)

func (p price) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(p.Cents, " cents")) }
func (p price) MarshalText() ([]byte, error) { return []byte(fmt.Sprint(p.Cents, " cents")), nil }
func (l level) MarshalText() ([]byte, error) { return []byte(fmt.Sprint("level ", int(l))), nil }

func (secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

func (f *folded) UnmarshalText(text []byte) error {
	*f = folded(strings.ToUpper(string(text)))
	return nil
}

// sparse omits zero fields and can be decoded.
type sparse struct{ A, B int }

func (s sparse) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"A": s.A}) }

func TestCompile_RefusesAStateThatWouldBeLost(t *testing.T) {
	type inner struct{ hidden int }
	type embedding struct {
		base
		Y string
	}
	for _, test := range []struct {
		name string
		try  func() error
		want string
	}{
		{"unexported field", func() error { return compileState[struct{ hidden string }]() }, "hidden is not exported"},
		{"embedded, unexported", func() error { return compileState[embedding]() }, "base is not exported"},
		{"channel", func() error { return compileState[struct{ C chan int }]() }, "chan int"},
		{"function", func() error { return compileState[struct{ F []func() }]() }, "func()"},
		{"interface", func() error { return compileState[struct{ E error }]() }, "use a concrete type"},
		{"interface with JSON methods", func() error { return compileState[struct{ M []json.Marshaler }]() }, "use a concrete type"},
		{"JSON that cannot be decoded", func() error { return compileState[struct{ P map[string]*price }]() }, "cannot read it"},
		{"text that cannot be decoded", func() error { return compileState[level]() }, "cannot read it"},
		{"text that is masked", func() error { return compileState[struct{ S secret }]() }, "cannot read it"},
		{"keys that cannot be decoded", func() error { return compileState[struct{ M map[level]string }]() }, "keys cannot be restored"},
		{"keys with a text that cannot be decoded", func() error { return compileState[struct{ M map[price]string }]() }, "keys cannot be restored"},
		{"keys that are decoded to others", func() error { return compileState[struct{ M map[folded]string }]() }, "keys cannot be restored"},
		{"keys that JSON does not support", func() error { return compileState[struct{ M []map[float64]string }]() }, "keys cannot be restored"},
		{"JSON of an embedded type", func() error { return compileState[stamped]() }, "Note"},
		{"JSON of an embedded type, nested", func() error { return compileState[struct{ L []*stamped }]() }, "Note"},
		{"inside", func() error { return compileState[struct{ M map[string]*inner }]() }, "hidden is not exported"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.try()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want something with %q", err, test.want)
			}
		})
	}
	_ = inner{}.hidden
}

func TestCompile_RefusesResultsOfAFanOutThatWouldBeLost(t *testing.T) {
	type result struct{ hidden int }
	g := graph.New[notes]("fan-out")
	graph.Each(g, "each", func(s notes) []string { return s.Log }, func(context.Context, string) (result, error) {
		return result{hidden: 1}, nil
	}, func(s notes, _ []result) notes { return s })
	g.Edge(graph.Start, "each")
	g.Edge("each", graph.End)
	_, err := g.Compile()
	if mistakes, ok := errors.AsType[*graph.CompileError](err); !ok || len(mistakes.Mistakes) != 1 || mistakes.Mistakes[0].Node != "each" {
		t.Errorf("got %v", err)
	}
}

func compileState[S any]() error {
	g := graph.New[S]("state")
	g.Node("a", func(_ context.Context, s S) (S, error) { return s, nil })
	g.Edge(graph.Start, "a")
	g.Edge("a", graph.End)
	_, err := g.Compile()
	return err
}

func TestCompile_TransientFieldsAreAllowed(t *testing.T) {
	type state struct {
		Kept string
		Temp chan int `json:"-"`
	}
	if err := compileState[state](); err != nil {
		t.Fatal(err)
	}
}

func TestCompile_JSONOfOnesOwnIsAllowed(t *testing.T) {
	type onlyTime struct {
		time.Time
		Temp chan int `json:"-"`
	}
	for _, err := range []error{compileState[dated](), compileState[struct{ D dated }](), compileState[onlyTime](), compileState[time.Time](), compileState[[]sparse]()} {
		if err != nil {
			t.Error(err)
		}
	}
}

// choice accepts only known values, so that trial values cannot be decoded.
type choice string

func (c *choice) UnmarshalText(text []byte) error {
	if *c = choice(text); *c != "yes" && *c != "no" {
		return errors.New("neither yes nor no")
	}
	return nil
}

func TestCompile_KeysThatComeBackAreAllowed(t *testing.T) {
	type keys struct {
		Numbers map[int8]string
		Words   map[choice]string
		Secrets map[secret]string // text is written unchanged
		Times   map[time.Time]string
		Hosts   map[netip.Addr]string
	}
	if err := compileState[keys](); err != nil {
		t.Error(err)
	}
}

func TestRun_RouteToAnUndeclaredTargetIsAnErrorAndCanBeMended(t *testing.T) {
	var c counter
	build := func(target string) *graph.Graph[notes] {
		g := graph.New[notes]("route")
		g.Node("a", write(&c, "a", fieldA))
		g.Node("b", write(&c, "b", fieldB))
		g.Edge(graph.Start, "a")
		g.Branch("a", func(notes) string { return target }, "b", graph.End)
		g.Edge("b", graph.End)
		return g
	}
	h := newHarness(t, build("elsewhere"))
	_, err := h.start(notes{})
	wrong, ok := errors.AsType[*graph.RouteError](err)
	if !ok || wrong.From != "a" || wrong.To != "elsewhere" {
		t.Fatalf("got %v", err)
	}
	h.flow = compile(t, build("b"))
	out, err := h.resume()
	if err != nil || out.B != "b" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"a": 1, "b": 1})
}

// The untyped engine would fail with a panic.
func TestFlow_IsOfItsStateAndOfNoOther(t *testing.T) {
	for _, types := range [][2]reflect.Type{
		{reflect.TypeFor[*graph.Flow[notes]](), reflect.TypeFor[*graph.Flow[string]]()},
		{reflect.TypeFor[*graph.Graph[notes]](), reflect.TypeFor[*graph.Graph[string]]()},
	} {
		if types[0].ConvertibleTo(types[1]) {
			t.Errorf("Go converts a %s to a %s", types[0], types[1])
		}
	}
}
