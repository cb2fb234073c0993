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

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// spent is a result whose output contains the complete state.
var spent = provider.Result{Outcome: provider.Completed{Output: json.RawMessage(`{}`), DiscardState: true}}

// A state that is contained in the outcome is deleted in the transaction that stores the outcome.
// Any other state is kept.
func TestEndExecution_StateContainedInTheOutcomeIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		early, late []string // steps that are saved before the end, and with the end
		came        provider.Result
		want        []string
	}{
		"nothing saved before":            {nil, []string{"a", "b"}, spent, nil},
		"some steps saved before":         {[]string{"a", "b"}, []string{"c"}, spent, nil},
		"all steps saved before":          {[]string{"a"}, nil, spent, nil},
		"no state":                        {nil, nil, spent, nil},
		"state has more than the outcome": {[]string{"a"}, []string{"b"}, done, []string{"a", "b"}},
		"the run failed":                  {[]string{"a"}, []string{"b"}, provider.Result{Outcome: provider.Failed{Code: "bad"}}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := memory.NewStore(nil)
				p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
					if err := savesSteps(t, e, test.early...); err != nil {
						return provider.Result{}, err
					}
					time.Sleep(time.Second) // the steps are saved in this time
					return test.came, savesSteps(t, e, test.late...)
				}}
				mustRun(t, executorOf(t, s, p, nil), scriptedStart())
				if got := stepsOf(t, s, newest(t, s)); !slices.Equal(got, test.want) {
					t.Errorf("kept %q, want %q", got, test.want)
				}
			})
		})
	}
}

// An event between the end of an execution and its commit must find the state unchanged.
func TestEndExecution_StateIsDeletedOnlyWithTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &refusing{Store: memory.NewStore(nil), refusals: 1}
		p := &scripted{execute: func(attempt int64, e provider.Execution) (provider.Result, error) {
			if attempt == 1 {
				return spent, savesSteps(t, e, "a", "b")
			}
			if got := stepsOf(t, e.Run.State, store.Run{ID: e.Run.ID}); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("a retry finds %q", got)
			}
			return spent, nil
		}}
		e := executorOf(t, s, p, nil)
		e.StartWorkers()
		completed(t, mustRun(t, e, scriptedStart()))
		if got := stepsOf(t, s, newest(t, s)); len(got) > 0 {
			t.Errorf("kept %q", got)
		}
	})
}

// refusing is a store whose EndExecution fails for a while.
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

// The complete state of a flow is its output, so it is exported once and deleted with the run.
func TestExport_FinishedFlowHasItsStateInTheOutcome(t *testing.T) {
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
		t.Errorf("exported %s", out.String())
	}
}

// Stored values are compressed if the sealer supports it.
func TestSealer_StoredValuesAreCompressed(t *testing.T) {
	text := strings.Repeat("the same again and ", 200)
	for name, test := range map[string]struct {
		box  func(executor.Sealer) executor.Sealer
		most int
	}{
		"sealer with compression":    {func(b executor.Sealer) executor.Sealer { return b }, 500},
		"sealer without compression": {func(b executor.Sealer) executor.Sealer { return struct{ executor.Sealer }{b} }, 5000},
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
				t.Errorf("output %s", got.Output)
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
