package server_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

func TestCreateRequest_IdenticalOpenRequestIsReturned(t *testing.T) {
	s := open(t, nil)
	ask := func(token, body string) answer { return s.call(token, "POST", "/api/v1/requests", body) }
	first := ask("agent@acme", `{"kind":"refund","data":{"order":17,"cents":5}}`)
	if first.field("status") != "needs_input" || first.field("deduplicated") != nil {
		t.Fatalf("%+v", first)
	}
	again := ask("agent@acme", `{"kind":"refund","data":{"cents":5, "order":17},"timeout":60}`)
	if again.field("deduplicated") != true || again.field("runId") != first.field("runId") || again.field("stateKey") != first.field("stateKey") {
		t.Errorf("%+v", again)
	}
	for _, other := range []string{
		`{"kind":"refund","data":{"order":17,"cents":6}}`, `{"kind":"payment","data":{"order":17,"cents":5}}`, `{"kind":"refund","data":{"order":17,"cents":5},"allowDuplicate":true}`,
		`{"kind":"refund","stateKey":"own","data":{"order":17,"cents":5}}`,
	} {
		if got := ask("agent@acme", other); got.field("status") != "needs_input" || got.field("deduplicated") != nil || got.field("runId") == first.field("runId") {
			t.Errorf("%s: %+v", other, got)
		}
	}
	for _, token := range []string{"agent@other", "admin@acme"} {
		if got := ask(token, `{"kind":"refund","data":{"order":17,"cents":5}}`); got.field("deduplicated") != nil || got.field("runId") == first.field("runId") {
			t.Errorf("%s: %+v", token, got)
		}
	}
	// after the answer it is another request
	s.chat("approver@acme", fmt.Sprintf(`{"stateKey":%q,"resumeId":"1","resumeValue":true}`, first.field("stateKey")))
	next := ask("agent@acme", `{"kind":"refund","data":{"order":17,"cents":5}}`)
	if next.field("status") != "needs_input" || next.field("deduplicated") != nil || next.field("runId") == first.field("runId") {
		t.Errorf("%+v", next)
	}
	if got := ask("agent@acme", `{"kind":"refund","data":{"order":17,"cents":5}}`); got.field("deduplicated") != true || got.field("runId") != next.field("runId") {
		t.Errorf("%+v", got)
	}
}

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// onEachStore runs a test with each kind of store.
func onEachStore(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Run("memory", func(t *testing.T) { test(t, memory.NewStore(nil)) })
	t.Run("sqlite", func(t *testing.T) {
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
	t.Run("postgres", func(t *testing.T) {
		database := pgtest.Prepared(t, func(empty string) error {
			s, err := postgres.Open(t.Context(), empty, postgres.Config{})
			if err != nil {
				return err
			}
			return s.Close()
		})
		s, err := postgres.Open(t.Context(), database, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		test(t, s)
	})
}

func TestCreateRequest_OfIdenticalOnesAtTheSameTimeOneIsCreated(t *testing.T) {
	onEachStore(t, func(t *testing.T, kept store.Store) {
		s := openWith(t, nil, func(c *executor.Config) { c.Store = kept })
		var group sync.WaitGroup
		got := make([]answer, 40)
		for n := range got {
			group.Go(func() {
				got[n] = s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"refund","data":{"order":17}}`)
			})
		}
		group.Wait()
		for _, a := range got {
			if a.field("status") != "needs_input" || a.field("runId") != got[0].field("runId") {
				t.Errorf("%+v", a)
			}
		}
		if list := s.openRequests("acme"); len(list) != 1 {
			t.Errorf("%d are open", len(list))
		}
	})
}

// staleRuns returns a run once as it was before its request was stored, as a read does that began
// earlier.
type staleRuns struct {
	store.Store
	stale atomic.Bool
}

func (s *staleRuns) Get(ctx context.Context, account, stateKey string) (store.Run, error) {
	run, err := s.Store.Get(ctx, account, stateKey)
	if s.stale.CompareAndSwap(true, false) {
		run.Status = store.StatusRunning
	}
	return run, err
}

// A run and its requests are read one after the other: the run can be older than the request.
func TestCreateRequest_RunReadBeforeItsRequestIsNotAnswered(t *testing.T) {
	kept := &staleRuns{Store: memory.NewStore(nil)}
	s := openWith(t, nil, func(c *executor.Config) { c.Store = kept })
	ask := func() answer {
		return s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"refund","data":{"order":17}}`)
	}
	first := ask()
	kept.stale.Store(true)
	if got := ask(); got.field("deduplicated") != true || got.field("runId") != first.field("runId") {
		t.Errorf("%+v", got)
	}
}

// While an answer is delivered to the agent, identical requests are a new one, and also only one.
func TestCreateRequest_OfIdenticalOnesDuringADeliveryOneIsCreated(t *testing.T) {
	var delivering sync.WaitGroup
	delivering.Add(1)
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { delivering.Wait() }))
	t.Cleanup(receiver.Close)
	roots := x509.NewCertPool()
	roots.AddCert(receiver.Certificate())
	remote, err := external.New(external.Config{
		Roots: roots, Allow: []string{"127.0.0.1"},
		Secrets: func(context.Context, string) ([]string, error) { return []string{external.NewSecret()}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s := openWith(t, nil, func(c *executor.Config) { c.Providers = []provider.Provider{remote} })
	t.Cleanup(delivering.Done) // before the executor stops, which waits for deliveries
	body := `{"kind":"refund","data":{"order":17},"callback":{"url":"` + receiver.URL + `"}}`
	first := s.call("agent@acme", "POST", "/api/v1/requests", body)
	s.call("approver@acme", "POST", "/api/v1/ai/chat", fmt.Sprintf(`{"stateKey":%q,"resumeId":"1","resumeValue":true}`, first.field("stateKey")), "Prefer", "respond-async")
	second := s.call("agent@acme", "POST", "/api/v1/requests", body)
	third := s.call("agent@acme", "POST", "/api/v1/requests", body)
	if second.field("status") != "needs_input" || second.field("deduplicated") != nil || second.field("runId") == first.field("runId") {
		t.Errorf("%+v", second)
	}
	if third.field("deduplicated") != true || third.field("runId") != second.field("runId") {
		t.Errorf("%+v", third)
	}
}

// The limit counts in the store, so that all servers share it.
func TestCreateRequest_AnAgentHasALimitPerHour(t *testing.T) {
	var late atomic.Int64
	shared := memory.NewStore(func() time.Time { return time.Now().Add(time.Duration(late.Load())) })
	limited := func() *site {
		return openWith(t, func(c *server.Config) { c.Limits.RequestsPerAgent = 3 }, func(c *executor.Config) { c.Store = shared })
	}
	sites := []*site{limited(), limited()}
	ask := func(n int, token string) answer {
		return sites[n%2].call(token, "POST", "/api/v1/requests", fmt.Sprintf(`{"stateKey":"%s %d","kind":"refund","data":%d}`, token, n, n))
	}
	for n := range 3 {
		if got := ask(n, "agent@acme"); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	if got := ask(2, "agent@acme"); got.status != 200 {
		t.Errorf("a repetition counts: %+v", got)
	}
	got := ask(3, "agent@acme")
	wait, err := strconv.Atoi(got.header.Get("Retry-After"))
	if got.status != 429 || got.field("code") != "agent_limit" || err != nil || wait < 3400 || wait > 3600 {
		t.Errorf("%+v, %v", got, err)
	}
	chat := sites[0].chat("agent@acme", `{"graphId":"external:request","input":{"kind":"refund","data":9}}`)
	if chat.status != 429 || chat.field("code") != "agent_limit" {
		t.Errorf("through the other endpoint: %+v", chat)
	}
	for _, token := range []string{"agent@other", "admin@acme"} {
		if got := ask(4, token); got.status != 200 {
			t.Errorf("%s: %+v", token, got)
		}
	}
	if got := sites[0].chat("agent@acme", startDemo); got.status != 200 {
		t.Errorf("a run of another graph: %+v", got)
	}
	late.Store(int64(time.Duration(wait) * time.Second))
	if got := ask(5, "agent@acme"); got.status != 200 {
		t.Errorf("after an hour: %+v", got)
	}
}

// An agent cannot choose the state key of another agent's deduplicated request, or of a run of a
// conversation.
func TestStateKeys_OfTheServerAreReserved(t *testing.T) {
	s := open(t, nil)
	for _, key := range []string{"same_1", "conversation-c1-1"} {
		for path, body := range map[string]string{
			"/api/v1/requests": `{"stateKey":"` + key + `","kind":"ticket","data":{"n":1}}`,
			"/api/v1/ai/chat":  `{"stateKey":"` + key + `","graphId":"inproc:content-review","input":{"topic":"tea"}}`,
		} {
			if got := s.call("agent@acme", "POST", path, body); got.status != 400 || !strings.Contains(got.body, "reserved") {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
}
