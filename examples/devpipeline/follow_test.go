package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/gate"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// pipelineServer serves the pipeline and records the requests that it receives.
type pipelineServer struct {
	*client.Client
	mu       sync.Mutex
	requests []string
}

func newPipelineServer(t *testing.T) *pipelineServer {
	t.Helper()
	flow, err := New()
	if err != nil {
		t.Fatal(err)
	}
	graphs, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[State]{}))
	if err != nil {
		t.Fatal(err)
	}
	st := memory.NewStore(nil)
	key, kept, err := authn.NewKey("acme", "ann", authn.RoleAdmin, time.Time{})
	if err == nil {
		err = st.AddCredential(t.Context(), kept, store.Writes{})
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "keys")
	if err := encrypted.CreateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	sealer, err := encrypted.OpenKeyFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e, err := executor.New(executor.Config{Store: st, Sealer: sealer, Providers: []provider.Provider{graphs}, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	api, err := server.New(server.Config{Executor: e, Auth: authn.Keys(st)})
	if err != nil {
		t.Fatal(err)
	}
	s := new(pipelineServer)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.Close()
		if err := e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if s.Client, err = client.New(h.URL, key); err != nil {
		t.Fatal(err)
	}
	return s
}

// The consumer learns of each gate from an event. It opens one stream, and for each gate it reads
// and decides one request: nothing is polled.
func TestFollow_EachGateIsAnnouncedByAnEventWithoutPolling(t *testing.T) {
	s := newPipelineServer(t)
	key, err := submit(t.Context(), s.Client, "a todo list")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out strings.Builder
	if err := follow(ctx, s.Client, key, &script{out: &out, seen: map[string]bool{}}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"changed after review: name the risks", "built: 4 tests (after 3)",
		"design_approval rejected by ann: name the risks", "dag_approval    approved by ann",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := regexp.MustCompile(`/requests/[^/]+`)
	var got []string
	for _, r := range s.requests {
		got = append(got, id.ReplaceAllString(strings.Replace(r, key, "KEY", 1), "/requests/ID"))
	}
	want := []string{"POST /api/v1/ai/chat", "GET /api/v1/runs/KEY/events"}
	for range 4 {
		want = append(want, "GET /api/v1/requests/ID", "POST /api/v1/requests/ID/decision")
	}
	if !slices.Equal(got, want) {
		t.Errorf("the server received\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A consumer that connects later skips the gates that were decided before.
func TestFollow_ALaterConsumerIsAskedOnlyAboutOpenGates(t *testing.T) {
	s := newPipelineServer(t)
	key, err := submit(t.Context(), s.Client, "a todo list")
	if err != nil {
		t.Fatal(err)
	}
	var first, second strings.Builder
	leaves := &leaving{script: script{out: &first, seen: map[string]bool{"design_approval": true}}}
	if err := follow(t.Context(), s.Client, key, leaves, &first); err == nil {
		t.Fatal("the first consumer did not leave")
	}
	if err := follow(t.Context(), s.Client, key, &script{out: &second, seen: map[string]bool{"dag_approval": true}}, &second); err != nil {
		t.Fatal(err)
	}
	if text := second.String(); strings.Contains(text, "⏸ design_approval") || strings.Count(text, "⏸ dag_approval") != 1 {
		t.Errorf("the second consumer was shown\n%s", text)
	}
}

// leaving decides once and leaves at the next gate.
type leaving struct {
	script
	asked int
}

func (l *leaving) decide(q gate.Question) (gate.Signal, error) {
	if l.asked++; l.asked > 1 {
		return gate.Signal{}, errNoInput
	}
	return l.script.decide(q)
}
