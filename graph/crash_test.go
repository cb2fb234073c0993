package graph_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/storetest"
)

// watched is a store that signals when a part was saved.
type watched struct {
	store.Checkpoints
	t     testing.TB
	once  sync.Once
	part  string
	text  []byte
	saved chan struct{}
}

func (w *watched) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	version, err := w.Checkpoints.Save(ctx, key, base, delta)
	parts := make(map[string][]byte)
	for _, part := range delta.Put {
		parts[part.Name] = part.Data
	}
	if bytes.Contains(unpack(w.t, parts)[w.part], w.text) {
		w.once.Do(func() { close(w.saved) })
	}
	return version, err
}

// wait returns when the part was saved. It times out and fails the test.
func (w *watched) wait(t *testing.T) {
	select {
	case <-w.saved:
	case <-time.After(time.Minute):
		t.Error("it was never saved")
	}
}

func TestI14_FinishedSiblingIsNotRepeatedAfterACrash(t *testing.T) {
	var c counter
	faulty := storetest.NewFaulty(memory.New())
	st := &watched{Checkpoints: faulty, t: t, part: "task node:quick#1", text: []byte(`"finished"`), saved: make(chan struct{})}
	g := graph.New[notes]("siblings")
	g.Node("quick", write(&c, "quick", fieldA))
	g.Node("slow", func(_ context.Context, s notes) (notes, error) {
		c.add("slow")
		if c.of("slow") == 1 {
			st.wait(t) // the other is done, this one is running, and the process dies
			faulty.CrashSave(faulty.Saves()+1, storetest.BeforeWrite)
			return s, errors.New("this error is not reported")
		}
		s.B = "slow"
		return s, nil
	})
	for _, name := range []string{"quick", "slow"} {
		g.Edge(graph.Start, name)
		g.Edge(name, graph.End)
	}
	h := newHarness(t, g)
	h.st = st
	_, err := h.start(notes{})
	wantErr(t, err, storetest.ErrCrashed)
	faulty.Restart()
	out, err := h.resume(graph.TakeOver())
	if err != nil || out.A != "quick" || out.B != "slow" {
		t.Fatalf("got %+v, %v", out, err)
	}
	c.want(t, map[string]int{"quick": 1, "slow": 2})
}
