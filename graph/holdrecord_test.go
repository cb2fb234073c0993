package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store/memory"
)

type recorded struct {
	Table    string             `json:"table"`
	Releases []graph.HoldRecord `json:"releases"`
}

func recordingFlow(t *testing.T) *graph.Flow[recorded] {
	t.Helper()
	g := graph.New[recorded]("recording")
	g.Node("drop", func(_ context.Context, s recorded) (recorded, error) { return s, nil })
	g.Edge(graph.Start, "drop")
	g.Edge("drop", graph.End)
	g.HoldBefore("drop")
	g.HoldAfter("drop")
	g.RecordHolds(func(s *recorded) *[]graph.HoldRecord { return &s.Releases })
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return flow
}

func heldID(t *testing.T, err error) string {
	t.Helper()
	info, ok := fermata.ExtractInterruptInfo(err)
	if !ok || len(info.Interrupts) != 1 {
		t.Fatalf("the run does not wait at one hold: %v", err)
	}
	return info.Interrupts[0].ID
}

func TestRecordHolds_TheRuntimeRecordsWhoReleased(t *testing.T) {
	flow, st := recordingFlow(t), memory.New()
	_, err := flow.Run(t.Context(), recorded{Table: "users"}, graph.WithStore(st), graph.WithRun("r"))
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ann := fermata.Attestation{By: "ann", At: noon, Auth: "sso"}
	_, err = flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(heldID(t, err), fermata.AttestedAnswer{Answer: recorded{Table: "orders"}, Attestation: ann}))
	rule := fermata.Attestation{By: "policy r1", At: noon.Add(time.Hour), Rule: "r1"}
	end, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(heldID(t, err), fermata.AttestedAnswer{Attestation: rule}))
	if err != nil {
		t.Fatal(err)
	}
	want := recorded{Table: "orders", Releases: []graph.HoldRecord{
		{Node: "drop", When: "before", By: "ann", At: noon, Auth: "sso", Edited: true},
		{Node: "drop", When: "after", By: "policy r1", At: noon.Add(time.Hour), Rule: "r1"},
	}}
	if diff := cmp.Diff(want, end); diff != "" {
		t.Error(diff)
	}
}

func TestRecordHolds_AnEditOfTheRecordsIsRejected(t *testing.T) {
	flow, st := recordingFlow(t), memory.New()
	if _, err := flow.Run(t.Context(), recorded{Releases: []graph.HoldRecord{{By: "eve"}}}); !errors.Is(err, fermata.ErrForgedIdentity) {
		t.Errorf("an input with records: %v", err)
	}
	_, err := flow.Run(t.Context(), recorded{Table: "users"}, graph.WithStore(st), graph.WithRun("r"))
	id := heldID(t, err)
	forged := json.RawMessage(`{"table":"users","releases":[{"node":"drop","when":"before","by":"eve","at":"2026-01-02T12:00:00Z"}]}`)
	_, err = flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, forged))
	if _, bad := errors.AsType[*fermata.AnswerError](err); !bad || !errors.Is(err, fermata.ErrForgedIdentity) {
		t.Fatalf("a forged record: %v", err)
	}
	_, err = flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(id, json.RawMessage(`{"table":"users","releases":null}`)))
	end, err := flow.Resume(t.Context(), "r", graph.WithStore(st), graph.Answer(heldID(t, err), nil))
	if err != nil || len(end.Releases) != 2 || end.Releases[0].By != "" || end.Releases[0].At.IsZero() || end.Releases[0].Edited {
		t.Errorf("without an attestation: %+v, %v", end, err)
	}
}
