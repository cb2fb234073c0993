package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

type draft struct {
	Topic string `json:"topic"`
	Text  string `json:"text,omitempty"`
}

type verdict struct {
	Action   string `json:"action"`
	Feedback string `json:"feedback,omitempty"`
}

var review = fermata.NewKind[string, verdict]("content-review")

// reviewProvider has one graph, which asks about a draft.
func reviewProvider(t *testing.T) provider.Provider {
	t.Helper()
	p, err := inproc.New(reviewGraph(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reviewGraph asks about a draft until it is approved.
func reviewGraph(t *testing.T) inproc.Graph {
	t.Helper()
	g := graph.New[draft]("content-review")
	g.Node("human_review", func(ctx context.Context, d draft) (draft, error) {
		v, err := review.Ask(ctx, "about "+d.Topic+d.Text)
		if err != nil {
			return d, err
		}
		d.Text = map[string]string{"revise": ", " + v.Feedback, "approve": "!"}[v.Action]
		return d, nil
	})
	g.Edge(graph.Start, "human_review")
	g.Branch("human_review", func(d draft) string {
		if strings.HasPrefix(d.Text, ",") {
			return "human_review"
		}
		return graph.End
	}, "human_review", graph.End)
	return compiled(t, g, inproc.FlowConfig[draft]{Content: func(d draft) string { return d.Topic + d.Text }})
}

func compiled[S any](t *testing.T, g *graph.Graph[S], config inproc.FlowConfig[S]) inproc.Graph {
	t.Helper()
	flow, err := g.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Flow(flow, config)
}

// single is a graph with one node.
func single[S any](t *testing.T, name string, node graph.Func[S]) inproc.Graph {
	t.Helper()
	g := graph.New[S](name)
	g.Node("only", node)
	g.Edge(graph.Start, "only")
	g.Edge("only", graph.End)
	return compiled(t, g, inproc.FlowConfig[S]{})
}

// clerkAgent is an agent whose model streams its answer in chunks.
func clerkAgent(t *testing.T) inproc.Graph {
	t.Helper()
	a, err := agent.NewChat(agent.Chat{Name: "clerk", Description: "Answers.", Model: script.New(script.Say("Good morning to you."))})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a, EnableStreaming: true})
}

// testTokens are the tokens of these tests: role@account.
var testTokens = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	role, account, good := strings.Cut(token, "@")
	if !ok || !good {
		return authn.Principal{}, authn.ErrUnauthenticated
	}
	return authn.Principal{Account: account, ID: role, Roles: []authn.Role{authn.Role(role)}}, nil
})

// site is a running server. All its responses are validated against its OpenAPI document, and its
// log and metrics are searched for canaries.
type site struct {
	*testing.T
	url     string
	e       *executor.Executor
	api     *huma.OpenAPI
	server  *server.Server
	handler http.Handler
	log     *logBuffer
}

func open(t *testing.T, change func(*server.Config)) *site {
	t.Helper()
	return openWith(t, change, nil)
}

// openWith opens a server with more graphs, or another store.
func openWith(t *testing.T, change func(*server.Config), changeExecutor func(*executor.Config), graphs ...inproc.Graph) *site {
	t.Helper()
	s := &site{T: t, log: new(logBuffer)}
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b, err := seal.New(seal.Key{1})
	if err != nil {
		t.Fatal(err)
	}
	own, err := inproc.New(append([]inproc.Graph{reviewGraph(t), clerkAgent(t)}, graphs...)...)
	if err != nil {
		t.Fatal(err)
	}
	others, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ec := executor.Config{Store: memory.NewStore(nil), Sealer: b, Providers: []provider.Provider{own, others}, Poll: 5 * time.Millisecond, Wait: time.Minute, Log: log}
	if changeExecutor != nil {
		changeExecutor(&ec)
	}
	if s.e, err = executor.New(ec); err != nil {
		t.Fatal(err)
	}
	config := server.Config{Executor: s.e, Auth: testTokens, Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: log}
	if change != nil {
		change(&config)
	}
	if s.server, err = server.New(config); err != nil {
		t.Fatal(err)
	}
	s.api = s.server.OpenAPI()
	s.handler = checked(t, s.server, s.api)
	h := httptest.NewUnstartedServer(s.handler)
	h.Listener = s.server.LimitIdleConns(h.Config, h.Listener)
	h.Start()
	s.url = h.URL
	t.Cleanup(func() {
		if err := s.e.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		h.Close()
		s.checkNoCanary("the log", s.log.String())
		s.checkNoCanary("the metrics", s.metrics())
	})
	return s
}

// canary marks data that must not leak.
const canary = "CANARY"

func (s *site) checkNoCanary(where, text string) {
	s.Helper()
	if i := strings.Index(text, canary); i >= 0 {
		s.Errorf("in %s: …%s…", where, text[max(0, i-100):min(len(text), i+100)])
	}
}

// metrics returns the exported metrics.
func (s *site) metrics() string {
	w := httptest.NewRecorder()
	s.server.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// logBuffer records what is written to it.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *logBuffer) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *logBuffer) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   string
}

// field is a member of the body.
func (a answer) field(name string) any {
	var members map[string]any
	if json.Unmarshal([]byte(a.body), &members) != nil {
		return nil
	}
	return members[name]
}

func (s *site) request(token, method, path, body string, headers ...string) *http.Request {
	s.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, content)
	if err != nil {
		s.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

func (s *site) call(token, method, path, body string, headers ...string) answer {
	s.Helper()
	response, err := http.DefaultClient.Do(s.request(token, method, path, body, headers...))
	return answerOf(s, response, err)
}

// answerOf reads a response, if there is one.
func answerOf(t testing.TB, response *http.Response, err error) answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

func (s *site) chat(token, body string, headers ...string) answer {
	s.Helper()
	return s.call(token, "POST", "/api/v1/ai/chat", body, headers...)
}

const startDemo = `{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"tea"}}`

// openRequests returns the open requests of an account.
func (s *site) openRequests(account string) []executor.RequestView {
	s.Helper()
	list, err := s.e.ListRequests(s.Context(), account, store.InboxFilter{State: store.InterruptPending})
	if err != nil {
		s.Fatal(err)
	}
	return list
}

// streamingModel is a model that produces output until it is stopped.
type streamingModel struct {
	*script.Model
	stop <-chan struct{}
}

func (m *streamingModel) Stream(ctx context.Context, request *agent.Request) iter.Seq2[*agent.Chunk, error] {
	return func(yield func(*agent.Chunk, error) bool) {
		for {
			select {
			case <-m.stop:
				response, err := m.Generate(ctx, request)
				yield(&agent.Chunk{Response: response}, err)
				return
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			default:
			}
			if !yield(&agent.Chunk{Text: strings.Repeat("bla ", 1000)}, nil) {
				return
			}
			runtime.Gosched()
		}
	}
}

// talkingAgent is an agent with such a model.
func talkingAgent(t *testing.T, stop <-chan struct{}) inproc.Graph {
	t.Helper()
	a, err := agent.NewChat(agent.Chat{Name: "talker", Model: &streamingModel{script.New(script.Say("That is all.")), stop}})
	if err != nil {
		t.Fatal(err)
	}
	return inproc.Agent(agent.RunnerConfig{Agent: a, EnableStreaming: true})
}
