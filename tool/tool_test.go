package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/tool"
)

func TestNew_DerivesTheSchemaOfTheArguments(t *testing.T) {
	book := new(railway).tool()
	if book.Name() != "book" || book.Description() != "Books a ticket." || book.IsFinal() {
		t.Fatalf("got %q, %q, final %v", book.Name(), book.Description(), book.IsFinal())
	}
	var schema struct {
		Type       string
		Properties map[string]struct{ Type, Description string }
		Required   []string
		More       any `json:"additionalProperties"`
	}
	if err := json.Unmarshal(book.Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	if schema.Type != "object" || !slices.Equal(schema.Required, []string{"to"}) || schema.More == nil ||
		schema.Properties["from"].Description != "IATA code" || schema.Properties["seat"].Type != "integer" {
		t.Fatalf("got %s", book.Schema())
	}
}

func TestSchema_IsACopy(t *testing.T) {
	book := new(railway).tool()
	before := string(book.Schema())
	clear(book.Schema())
	if string(book.Schema()) != before {
		t.Fatal("the caller could modify the schema")
	}
}

func nothing[T any](context.Context, T) (string, error) { return "", nil }

func TestNew_UncallableToolPanics(t *testing.T) {
	type tree struct{ Branches []tree }
	for name, test := range map[string]struct {
		make func()
		says string
	}{
		"no name":          {func() { tool.New("", "", nothing[ticket]) }, `tool name ""`},
		"a blank":          {func() { tool.New("book ticket", "", nothing[ticket]) }, `tool name "book ticket"`},
		"a foreign sign":   {func() { tool.New("büch", "", nothing[ticket]) }, `tool name "büch"`},
		"a line end":       {func() { tool.New("book\n", "", nothing[ticket]) }, `tool name "book\n"`},
		"65 letters":       {func() { tool.New(strings.Repeat("a", 65), "", nothing[ticket]) }, "1 to 64"},
		"a string":         {func() { tool.New("book", "", nothing[string]) }, "a JSON object"},
		"a list":           {func() { tool.New("book", "", nothing[[]ticket]) }, "a JSON object"},
		"a number":         {func() { tool.New("book", "", nothing[int]) }, "a JSON object"},
		"anything":         {func() { tool.New("book", "", nothing[any]) }, "a JSON object"},
		"a function":       {func() { tool.New("book", "", nothing[func()]) }, "no JSON Schema"},
		"a type in itself": {func() { tool.New("book", "", nothing[tree]) }, "a JSON object"},
		"in a stream, too": {func() {
			tool.NewStream("a b", "", func(context.Context, ticket) iter.Seq2[string, error] { return nil })
		}, `tool name "a b"`},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "tool: New(") || !strings.Contains(said, test.says) {
					t.Errorf("got %q, want it to contain %q", said, test.says)
				}
			}()
			test.make()
		})
	}
}

func TestNew_TakesEveryNameThatModelsTake(t *testing.T) {
	for _, name := range []string{"a", "Z-9_", strings.Repeat("x", 64)} {
		if got := tool.New(name, "", nothing[map[string]int]).Name(); got != name {
			t.Errorf("got %q, want %q", got, name)
		}
	}
}

func TestCall_ArgumentsThatDoNotFitDoNotReachTheTool(t *testing.T) {
	for name, test := range map[string]struct{ args, says string }{
		"missing":         {`{"from":"CDG"}`, "to"},
		"extra":           {`{"to":"ORY","class":1}`, "class"},
		"wrong type":      {`{"to":7}`, "string"},
		"said twice":      {`{"to":"ORY","to":"CDG"}`, `"to"`},
		"twice, folded":   {`{"to":"ORY","TO":"CDG"}`, `"TO"`},
		"other case":      {`{"To":"ORY"}`, "To"},
		"two documents":   {`{"to":"ORY"}{}`, "arguments are invalid"},
		"not JSON":        {`to=ORY`, "arguments are invalid"},
		"cut off":         {`{"to":`, "arguments are invalid"},
		"nothing":         {``, "arguments are invalid"},
		"not UTF-8":       {"{\"to\":\"\xff\"}", "arguments are invalid"},
		"no object":       {`["ORY"]`, "object"},
		"null":            {`null`, "object"},
		"null for a text": {`{"to":null}`, "string"},
		"half a seat":     {`{"to":"ORY","seat":1.5}`, "integer"},
		"only Go minds":   {`{"to":"ORY","seat":1e20}`, "seat"},
		"beyond Go's int": {`{"to":"ORY","seat":1e30}`, "seat"},
	} {
		t.Run(name, func(t *testing.T) {
			var r railway
			got, err := newRun(t, r.tool(), test.args).start()
			wantFailed(t, got, err, "book was not called", test.says, "call again")
			if len(r.booked) != 0 {
				t.Errorf("the tool was called with %+v", r.booked)
			}
		})
	}
}

func TestI6_InvalidArgumentsRaiseNoInterrupt(t *testing.T) {
	for _, args := range []string{`{}`, `{"to":"ORY","seat":1e20}`} {
		for name, wrap := range map[string]func(*tool.Tool) *tool.Tool{
			"approve":   func(t *tool.Tool) *tool.Tool { return tool.Approve(t) },
			"follow up": func(t *tool.Tool) *tool.Tool { return tool.FollowUp(t, tool.Needs[ticket](from)) },
			"respond":   tool.Respond,
		} {
			var r railway
			got, err := newRun(t, wrap(r.tool()), args).start()
			t.Run(name+" "+args, func(t *testing.T) { wantFailed(t, got, err, "book was not called") })
		}
	}
}

func TestCall_ATextIsTheResultAsItIsAndEverythingElseIsJSON(t *testing.T) {
	type fare struct {
		Price float64  `json:"price"`
		Stops []string `json:"stops"`
	}
	type text string
	for name, test := range map[string]struct {
		tool *tool.Tool
		want string
	}{
		"a text":       {tool.New("f", "", func(context.Context, ticket) (string, error) { return `say "hi"`, nil }), `say "hi"`},
		"a struct":     {tool.New("f", "", func(context.Context, ticket) (fare, error) { return fare{9.5, []string{"A"}}, nil }), `{"price":9.5,"stops":["A"]}`},
		"a number":     {tool.New("f", "", func(context.Context, ticket) (int, error) { return 7, nil }), `7`},
		"a named text": {tool.New("f", "", func(context.Context, ticket) (text, error) { return "hi", nil }), `"hi"`},
		"nothing":      {tool.New("f", "", func(context.Context, ticket) (*fare, error) { return nil, nil }), `null`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newRun(t, test.tool, `{"to":"ORY"}`).start()
			wantDone(t, got, err, test.want)
		})
	}
}

func TestCall_AResultThatJSONCannotHoldIsAnError(t *testing.T) {
	bad := tool.New("bad", "", func(context.Context, ticket) (func(), error) { return nil, nil })
	_, err := newRun(t, bad, `{"to":"ORY"}`).start()
	if encode, ok := errors.AsType[*fermata.EncodeError](err); !ok || !strings.Contains(encode.Error(), "the result of bad") {
		t.Fatalf("got %v", err)
	}
}

// pieces is a tool that streams its result word by word, and fails with err if it is not nil.
func pieces(err error) *tool.Tool {
	return tool.NewStream("read", "", func(_ context.Context, in ticket) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for _, piece := range []string{"to ", "", in.To} {
				if !yield(piece, nil) {
					return
				}
			}
			if err != nil && !yield("", err) {
				return
			}
			yield(".", nil)
		}
	})
}

func TestNewStream_ShowsThePiecesAndJoinsThemForTheModel(t *testing.T) {
	var seen []string
	ctx := tool.WithChunks(t.Context(), func(chunk string) { seen = append(seen, chunk) })
	got, err := pieces(nil).Call(ctx, json.RawMessage(`{"to":"ORY"}`))
	wantDone(t, got, err, "to ORY.")
	if strings.Join(seen, "|") != "to ||ORY|." {
		t.Errorf("the pieces were %q", seen)
	}
	got, err = pieces(nil).Call(t.Context(), json.RawMessage(`{"to":"ORY"}`)) // no observer
	wantDone(t, got, err, "to ORY.")
}

func TestNewStream_AnErrorEndsIt(t *testing.T) {
	broken := errors.New("broken pipe")
	if got, err := pieces(broken).Call(t.Context(), json.RawMessage(`{"to":"ORY"}`)); !errors.Is(err, broken) || got != (tool.Result{}) {
		t.Fatalf("got %+v, %v", got, err)
	}
	got, err := pieces(tool.Errorf("no such page")).Call(t.Context(), json.RawMessage(`{"to":"ORY"}`))
	wantFailed(t, got, err, "no such page")
}

func raw(t *testing.T, schema string, fn func(context.Context, json.RawMessage) (string, error), options ...tool.Option) *tool.Tool {
	t.Helper()
	made, err := tool.Raw("remote", "A tool of another server.", json.RawMessage(schema), fn, options...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestRaw_TakesASchemaAndGetsTheArgumentsAsTheyAre(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer","minimum":3}},"required":["n"]}`
	var got string
	remote := raw(t, schema, func(_ context.Context, args json.RawMessage) (string, error) { got = string(args); return "ok", nil })
	if string(remote.Schema()) != schema || remote.Description() != "A tool of another server." {
		t.Errorf("got %s, %q", remote.Schema(), remote.Description())
	}
	result, err := newRun(t, remote, `{"n":2}`).start()
	wantFailed(t, result, err, "remote was not called", "minimum")
	result, err = newRun(t, remote, `{"n":3,"n":4}`).start()
	wantFailed(t, result, err, "remote was not called", `"n"`)
	if got != "" {
		t.Fatal("it was called")
	}
	result, err = newRun(t, remote, `{ "n": 12345678901234567890, "more": [] }`).start()
	wantDone(t, result, err, "ok")
	if got != `{ "n": 12345678901234567890, "more": [] }` {
		t.Errorf("got %s", got)
	}
}

func TestRaw_SchemaThatIsNotAnObjectReturnsError(t *testing.T) {
	fn := func(context.Context, json.RawMessage) (string, error) { return "", nil }
	for _, schema := range []string{``, `{`, `7`, `{}`, `true`, `{"type":"array"}`, `{"type":["object","null"]}`, `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`} {
		if made, err := tool.Raw("remote", "", json.RawMessage(schema), fn); err == nil || made != nil || !strings.Contains(err.Error(), "remote") {
			t.Errorf("%s: got %v, %v", schema, made, err)
		}
	}
	if made, err := tool.Raw("a b", "", json.RawMessage(`{"type":"object"}`), fn); err == nil || made != nil {
		t.Errorf("got %v, %v", made, err)
	}
}

func TestFinal_IsDeclaredAndSurvivesWrapping(t *testing.T) {
	plain := new(railway).tool(tool.Final())
	if !plain.IsFinal() || !tool.Approve(tool.FollowUp(tool.ReportErrors(plain), tool.Needs[ticket]())).IsFinal() {
		t.Fatal("it is not final")
	}
}

func TestCall_ErrorsForTheModelBecomeResults(t *testing.T) {
	for name, err := range map[string]error{
		"as it is": tool.Errorf("no train to %s", "ORY"),
		"wrapped":  fmt.Errorf("timetable: %w", tool.Errorf("no train to %s", "ORY")),
	} {
		t.Run(name, func(t *testing.T) {
			r := railway{fail: func() error { return err }}
			got, err := newRun(t, r.tool(), `{"to":"ORY"}`).start()
			wantFailed(t, got, err)
			if got.Text != "no train to ORY" {
				t.Errorf("got %q", got.Text)
			}
		})
	}
}

func TestCall_AnyOtherErrorFailsTheRunWhichCanBeResumed(t *testing.T) {
	down := errors.New("the line is down")
	r := railway{fail: func() error { return down }}
	call := newRun(t, r.tool(), `{"to":"ORY"}`)
	if _, err := call.start(); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
	r.fail = nil
	got, err := call.resume()
	wantDone(t, got, err, "booked -ORY")
	if len(r.booked) != 2 {
		t.Errorf("called %d times", len(r.booked))
	}
}

func TestCall_JoinedReportedAndUnreportedErrorsFailTheRun(t *testing.T) {
	down := errors.New("the line is down")
	r := railway{fail: func() error { return errors.Join(tool.Errorf("no train"), down) }}
	if _, err := newRun(t, r.tool(), `{"to":"ORY"}`).start(); !errors.Is(err, down) {
		t.Fatalf("got %v", err)
	}
}

func TestReportErrors_EveryFailureIsReportedToTheModel(t *testing.T) {
	r := railway{fail: func() error { return errors.New("the line is down") }}
	got, err := newRun(t, tool.ReportErrors(r.tool()), `{"to":"ORY"}`).start()
	wantFailed(t, got, err, "the line is down")
	if len(r.booked) != 1 {
		t.Errorf("called %d times", len(r.booked))
	}
}

func TestReportErrors_KeepsTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	r := railway{fail: func() error { cancel(); return ctx.Err() }}
	if got, err := tool.ReportErrors(r.tool()).Call(ctx, json.RawMessage(`{"to":"ORY"}`)); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestReportErrors_KeepsInterrupts(t *testing.T) {
	ask := tool.New("ask", "", func(ctx context.Context, in ticket) (string, error) { return question.Ask(ctx, in.To+"?") })
	r := newRun(t, tool.ReportErrors(ask), `{"to":"ORY"}`)
	_, err := r.start()
	got, err := r.answer(err, "go")
	wantDone(t, got, err, "go")
}

// Regression: with ReportErrors, a rejection was reported as "fermata: pay rejected" instead of the
// text with instructions for the model.
func TestReportErrors_KeepsErrorsThatAreReportedAnyway(t *testing.T) {
	pay := tool.New("pay", "", func(ctx context.Context, in ticket) (string, error) {
		_, err := fermata.Approve(ctx, fermata.Action[ticket]{Name: "pay", Args: in})
		return "", err
	})
	for name, test := range map[string]struct {
		tool   *tool.Tool
		answer any
	}{
		"refused":  {pay, fermata.Decision{Verb: fermata.VerbReject, Reason: "too dear"}},
		"expired":  {pay, fermata.Decision{Verb: fermata.VerbExpire}},
		"declined": {tool.Respond(pay), tool.HumanResponse{Declined: true, Reason: "too busy"}},
	} {
		t.Run(name, func(t *testing.T) {
			var told [2]tool.Result
			for i, tl := range []*tool.Tool{test.tool, tool.ReportErrors(test.tool)} {
				r := newRun(t, tl, `{"to":"ORY"}`)
				_, err := r.start()
				if told[i], err = r.answer(err, test.answer); err != nil {
					t.Fatal(err)
				}
			}
			if told[0] != told[1] {
				t.Errorf("alone it reports %q, with ReportErrors %q", told[0].Text, told[1].Text)
			}
		})
	}
}
