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

// testHooks returns the hooks of a program under test.
func testHooks(kill string) console.TestHooks {
	calls := target.Open(".", callsLog)
	s := console.TestHooks{Model: func(m agent.Model) agent.Model { return &recordedModel{m.(agent.Streamer), calls} }}
	if kill != "" {
		s.Store = func(inner store.Checkpoints) store.Checkpoints { return newKiller(inner, kill) }
	}
	return s
}

const callsLog = "model-calls"

// recordedModel is a model whose calls are recorded.
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

// modelCalls returns the conversation of each model call of programs in this directory.
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

// Whether a process is killed before or after a save.
const (
	before = "before" // the save is lost
	after  = "after"  // the save is stored, but not confirmed
)

// killingStore is a store that kills its process at a save.
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

// die is kill -9 from inside: deferred calls do not run.
func die() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// copyOf returns a copy of a directory that no program uses.
func copyOf(t testing.TB, dir string) string {
	t.Helper()
	dup := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return dup
}
