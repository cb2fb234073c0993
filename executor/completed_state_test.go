package executor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// spent is a rest of which all that is in the state is in the output, too.
var spent = provider.Result{Outcome: provider.Completed{Output: json.RawMessage(`{}`), DiscardState: true}}

// A state of which all is in the outcome goes with the rest that brings the outcome; any other stays.
func TestRest_AStateThatIsSpentIsNotKept(t *testing.T) {
	for name, test := range map[string]struct {
		early, late []string // steps that are saved before, and that would be saved with the rest
		came        provider.Result
		want        []string
	}{
		"nothing was written yet":     {nil, []string{"a", "b"}, spent, nil},
		"something was":               {[]string{"a", "b"}, []string{"c"}, spent, nil},
		"everything was":              {[]string{"a"}, nil, spent, nil},
		"there is none":               {nil, nil, spent, nil},
		"it holds more than its end":  {[]string{"a"}, []string{"b"}, done, []string{"a", "b"}},
		"it failed: somebody may ask": {[]string{"a"}, []string{"b"}, provider.Result{Outcome: provider.Failed{Code: "bad"}}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
					if err := savesSteps(t, e, test.early...); err != nil {
						return provider.Result{}, err
					}
					time.Sleep(time.Second) // in which they are written
					return test.came, savesSteps(t, e, test.late...)
				}}
				mustRun(t, executorOf(t, s, p, nil), scriptedStart())
				if got := stepsOf(t, s, newest(t, s)); !slices.Equal(got, test.want) {
					t.Errorf("kept is %q, want %q", got, test.want)
				}
			})
		})
	}
}

// What comes in between the end and its being written down must find the state as it was.
func TestRest_AStateIsSpentOnlyWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{Store: memory.NewStore(nil), refusals: 1}
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt == 1 {
				return spent, savesSteps(t, e, "a", "b")
			}
			if got := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("whoever tries again finds %q", got)
			}
			return spent, nil
		}}
		e := executorOf(t, s, p, nil)
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
		if got := stepsOf(t, s, newest(t, s)); len(got) > 0 {
			t.Errorf("kept is %q", got)
		}
	})
}

// refusalWork is a store in which nothing can be given back for a while.
type refusing struct {
	store.Store
	refusals int
}

func (r *refusing) EndExecution(ctx context.Context, lease store.Lease, rest store.ExecutionEnd) (store.Status, error) {
	if r.refusals > 0 {
		r.refusals--
		return "", context.DeadlineExceeded
	}
	return r.Store.EndExecution(ctx, lease, rest)
}

// All of a flow's state is its output. So it is exported once, and forgotten with the run.
func TestExport_AFlowThatIsOverHasItsStateInItsOutcome(t *testing.T) {
	s := memory.NewStore(nil)
	p := single(t, "write", inproc.FlowConfig[note]{}, func(_ context.Context, n note) (note, error) { return n, nil })
	e := executorOf(t, s, p, nil)
	completed(t, began(t, e, "x-1", "inproc:write", `{"text":"once, and not again"}`))
	var out bytes.Buffer
	if count, err := e.ExportAccount(t.Context(), "acme", &out); err != nil || count != 1 {
		t.Fatal(count, err)
	}
	var line struct {
		Outcome    struct{ Output note }
		Checkpoint map[string][]byte
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Outcome.Output.Text != "once, and not again" || len(line.Checkpoint) > 0 {
		t.Errorf("exported is %s", out.String())
	}
}

// What the store is given is packed, if the box can do that.
func TestSeal_WhatIsKeptIsPacked(t *testing.T) {
	text := strings.Repeat("the same again and ", 200)
	for name, test := range map[string]struct {
		box  func(executor.Sealer) executor.Sealer
		most int
	}{
		"a box that packs":         {func(b executor.Sealer) executor.Sealer { return b }, 500},
		"a box that can only seal": {func(b executor.Sealer) executor.Sealer { return struct{ executor.Sealer }{b} }, 5000},
	} {
		t.Run(name, func(t *testing.T) {
			s := memory.NewStore(nil)
			p := single(t, "write", inproc.FlowConfig[note]{}, func(_ context.Context, n note) (note, error) { return n, nil })
			e := executorOf(t, s, p, func(c *executor.Config) { c.Sealer = test.box(c.Sealer) })
			input, err := json.Marshal(note{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			if got := completed(t, began(t, e, "x-1", "inproc:write", string(input))); !bytes.Contains(got.Output, []byte(text)) {
				t.Errorf("it came to %s", got.Output)
			}
			run := newest(t, s)
			for what, sealed := range map[string][]byte{"input": run.Input, "outcome": run.Outcome} {
				if len(sealed) > test.most || len(sealed) < test.most/100 {
					t.Errorf("the %s takes %d bytes, want at most %d", what, len(sealed), test.most)
				}
			}
		})
	}
}
