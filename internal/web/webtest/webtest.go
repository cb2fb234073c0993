// Package webtest runs a server with the web pages for tests.
package webtest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/dialog/conversation"
	"github.com/fermata-go/fermata/internal/dialog/runs"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store/encrypted"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Account is the account of all people and runs.
const Account = "acme"

// Config configures a server.
type Config struct {
	// Graphs can be started; requests of external agents always can.
	Graphs []inproc.Graph
	Desk   executor.DeskConfig
	// WebPush notifies browsers; it is also among the channels of Desk.
	WebPush *webpush.Channel
	// Assistant is the graph that conversations start; "" for no conversations. Unclear replies are
	// handed over to people.
	Assistant string
	// Assistants are further ones.
	Assistants []dialog.Assistant
	// Site wraps the API with the pages.
	Site func(api http.Handler) (http.Handler, error)
}

// Server is a running server with its store in memory.
type Server struct {
	testing.TB
	URL      string
	Executor *executor.Executor
	API      *server.Server
	Dialog   *conversation.Handler // nil: no conversations
	config   Config
	runs     *memory.Store
	http     *httptest.Server
}

// Open starts a server that ends with the test.
func Open(t testing.TB, config Config) *Server {
	t.Helper()
	s := &Server{TB: t, config: config, runs: memory.NewStore(nil)}
	s.start("127.0.0.1:0")
	t.Cleanup(s.stop)
	return s
}

// Restart ends the server, calls a function, and starts the server again at the same address.
func (s *Server) Restart(between func()) {
	s.Helper()
	s.stop()
	between()
	s.start(s.http.Listener.Addr().String())
}

func (s *Server) start(address string) {
	s.Helper()
	sealer, err := seal.New(seal.Key{1})
	s.must(err)
	graphs := s.config.Graphs
	if s.config.Assistant != "" || len(s.config.Assistants) > 0 {
		person, err := runs.HandOver()
		s.must(err)
		graphs = append(graphs[:len(graphs):len(graphs)], person)
	}
	own, err := inproc.New(graphs...)
	s.must(err)
	others, err := external.New(external.Config{})
	s.must(err)
	log := slog.New(slog.NewTextHandler(logWriter{s.TB}, &slog.HandlerOptions{Level: slog.LevelError}))
	s.Executor, err = executor.New(executor.Config{
		Store: s.runs, Sealer: sealer, Providers: []provider.Provider{own, others}, Poll: 5 * time.Millisecond, Wait: time.Minute, Log: log, Desk: s.config.Desk,
	})
	s.must(err)
	s.Dialog = s.openDialog(sealer)
	s.API, err = server.New(server.Config{
		Executor: s.Executor, Dialog: s.Dialog, WebPush: s.config.WebPush, Auth: authn.Keys(s.runs), Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: log,
		SignIn: &authn.SignIn{Credentials: s.runs, Sealer: sealer}, Settings: []api.Setting{{Key: "listen.addr", Value: `":8080"`}, {Key: "store.url", Value: "(secret)", From: "FERMATA_STORE_URL"}},
	})
	s.must(err)
	site, err := s.config.Site(s.API)
	s.must(err)
	listener, err := net.Listen("tcp", address)
	s.must(err)
	s.Executor.StartWorkers()
	s.http = &httptest.Server{Listener: listener, Config: &http.Server{Handler: site}}
	s.http.Start()
	s.URL = s.http.URL
}

func (s *Server) openDialog(sealer encrypted.Sealer) *conversation.Handler {
	s.Helper()
	if s.config.Assistant == "" && len(s.config.Assistants) == 0 {
		return nil
	}
	connected, err := runs.New(runs.Config{Executor: s.Executor, Graph: s.config.Assistant, Assistants: s.config.Assistants, Person: "inproc:" + runs.HandOverGraph})
	s.must(err)
	handler, err := conversation.New(conversation.Config{Store: encrypted.New(s.runs, sealer), Runs: connected, Assistants: connected.Assistants(), Machine: conversation.Machine{HandOver: true}})
	s.must(err)
	return handler
}

func (s *Server) stop() {
	s.http.CloseClientConnections()
	s.http.Close()
	if err := s.Executor.Stop(context.Background()); err != nil {
		s.Error(err)
	}
}

func (s *Server) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// logWriter writes errors of the server to the log of the test.
type logWriter struct{ testing.TB }

func (w logWriter) Write(line []byte) (int, error) {
	w.Log(strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

// SignInLink returns a link that signs a browser in and leads to a path.
func (s *Server) SignInLink(person, path string, roles ...authn.Role) string {
	s.Helper()
	if len(roles) == 0 {
		roles = []authn.Role{authn.RoleAdmin}
	}
	link, err := s.API.DevLink(s.http.Listener.Addr(), authn.Principal{Account: Account, ID: person, Roles: roles}, path)
	s.must(err)
	return link
}

// Invite returns the path of an invitation for an approver.
func (s *Server) Invite(name string) string {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.URL+"/api/v1/invitations", strings.NewReader(`{"name":"`+name+`"}`))
	s.must(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	got := s.SignIn("admin").Do(r)
	var link api.Invitation
	if err := json.Unmarshal([]byte(got.Body), &link); err != nil || link.Path == "" {
		s.Fatalf("%d %s", got.Status, got.Body)
	}
	return link.Path
}

// AtHostName returns the server with a URL that has a host name: browsers have no passkeys for IP
// addresses.
func (s *Server) AtHostName() *Server {
	named := *s
	named.URL = strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	return &named
}

// Browser is a browser of one person, without scripts.
type Browser struct {
	*Server
	// Language is the header Accept-Language; "" for none.
	Language string
	http     *http.Client
}

// Visitor returns a browser that is not signed in.
func (s *Server) Visitor() *Browser {
	jar, err := cookiejar.New(nil)
	s.must(err)
	return &Browser{Server: s, http: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// SignIn returns the browser of a signed-in person; without roles as an admin.
func (s *Server) SignIn(person string, roles ...authn.Role) *Browser {
	s.Helper()
	b := s.Visitor()
	if got := b.Get(strings.TrimPrefix(s.SignInLink(person, "/inbox", roles...), s.URL)); got.Status != http.StatusSeeOther {
		s.Fatalf("sign-in: %d %s", got.Status, got.Body)
	}
	return b
}

// Response is a response to a browser.
type Response struct {
	Status int
	Header http.Header
	Body   string
}

// Get requests a page.
func (b *Browser) Get(path string) Response {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, b.URL+path, nil)
	b.must(err)
	return b.Do(r)
}

// Post sends a form. Its fields are pairs of names and values.
func (b *Browser) Post(path string, fields ...string) Response {
	b.Helper()
	form := make(url.Values)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Add(fields[i], fields[i+1])
	}
	r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, b.URL+path, strings.NewReader(form.Encode()))
	b.must(err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", b.URL)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return b.Do(r)
}

// Do sends a request as a browser does.
func (b *Browser) Do(r *http.Request) Response {
	b.Helper()
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	if b.Language != "" {
		r.Header.Set("Accept-Language", b.Language)
	}
	answer, err := b.http.Do(r)
	b.must(err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	b.must(err)
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}
}

// Follow requests the page that a redirect leads to.
func (b *Browser) Follow(r Response) Response {
	b.Helper()
	if r.Status != http.StatusSeeOther {
		b.Fatalf("not a redirect: %d\n%s", r.Status, r.Body)
	}
	return b.Get(strings.TrimPrefix(r.Header.Get("Location"), b.URL))
}

// WithAnswer returns an API that answers each request for a path with a JSON document.
func WithAnswer(api http.Handler, path string, document any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document) // a disconnected client does not read it
	})
}
