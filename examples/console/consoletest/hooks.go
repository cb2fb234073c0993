package consoletest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/target"
	"github.com/fermata-go/fermata/store"
)

// testHooks is what a program under test has in the place of its own parts.
func testHooks(kill string) console.TestHooks {
	calls := target.Open(".", callsLog)
	s := console.TestHooks{Model: func(m agent.Model) agent.Model { return &recordedModel{m.(agent.Streamer), calls} }}
	if kill != "" {
		s.Store = func(inner store.Checkpoints) store.Checkpoints { return newKiller(inner, kill) }
	}
	return s
}

const callsLog = "model-calls"

// recordedModel is a model whose calls are written down.
type recordedModel struct {
	agent.Streamer
	calls *target.Log
}

func (w *recordedModel) Generate(ctx context.Context, request *agent.Request) (*agent.Response, error) {
	if err := w.calls.Do("", request.Messages); err != nil {
		return nil, err
	}
	return w.Streamer.Generate(ctx, request)
}

func (w *recordedModel) Stream(ctx context.Context, request *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		if err := w.calls.Do("", request.Messages); err != nil {
			yield(nil, err)
			return
		}
		w.Streamer.Stream(ctx, request)(yield)
	}
}

// modelCalls is what models were asked by programs in this directory: the conversation of each call.
func modelCalls(t testing.TB, dir string) [][]agent.Message {
	t.Helper()
	lines, err := target.Open(dir, callsLog).Entries()
	if err != nil {
		t.Fatal(err)
	}
	calls := make([][]agent.Message, len(lines))
	for i, line := range lines {
		if err := json.Unmarshal(line.What, &calls[i]); err != nil {
			t.Fatal(err)
		}
	}
	return calls
}

// On which side of a save a process dies.
const (
	before = "before" // what the save holds is lost
	after  = "after"  // it is kept, but nobody knows yet
)

// killingStore is a store whose process dies at a save.
type killingStore struct {
	store.Checkpoints
	when  string
	at    int64
	saves atomic.Int64
}

func newKiller(inner store.Checkpoints, kill string) *killingStore {
	k := &killingStore{Checkpoints: inner}
	if _, err := fmt.Sscanf(kill, "%s %d", &k.when, &k.at); err != nil {
		panic(fmt.Sprintf("%s=%q: %v", envKill, kill, err))
	}
	return k
}

func (k *killingStore) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	now := k.saves.Add(1) == k.at
	if now && k.when == before {
		die()
	}
	version, err := k.Checkpoints.Save(ctx, key, base, delta)
	if now && k.when == after && err == nil {
		die()
	}
	return version, err
}

// die is kill -9 from the inside: nothing that is deferred runs.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// copyOf is a copy of a directory that no program works in.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	dup := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return dup
}
