package compat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/store/sqlite"
)

// Names of the files of one installation.
const (
	databaseFile   = "fermata.db"
	sealKeyFile    = "test-seal.key"
	auditKeyFile   = "test-audit.key"
	principalsFile = "test-principals.json"
)

const rules = `version: "compat-1"
default: deny
rules:
- id: small-transfers
  when: req.tool == "transfer" && args.cents <= 100
  then: allow
- id: blocked-target
  when: req.tool == "transfer" && args.to == "blocked"
  then: deny
  reason: the target is blocked
- id: large-transfers
  when: req.tool == "transfer" && args.cents > 100 && !args.to.startsWith("grant-")
  then: ask
  reason: large transfers need two groups
  ask:
    groups: [{from: ["group:finance"]}, {from: ["group:owners"]}]
    separation_of_duties: [requester]
    editable: ["/cents"]
    deadline: 12h
- id: grantable-transfers
  when: req.tool == "transfer" && args.cents > 100 && args.to.startsWith("grant-")
  then: ask
  ask: {groups: [{from: ["group:owners"]}], deadline: 12h, remember_max: 8h}
- id: bookings
  when: req.tool == "book"
  then: ask
  ask: {groups: [{from: ["group:finance", "group:owners"]}], deadline: 12h}
- id: short
  when: req.tool == "short"
  then: ask
  ask: {groups: [{from: ["group:finance"]}], deadline: 1m}
`

var directory = desk.StaticDirectory{"group:finance": {"ana", "bob"}, "group:owners": {"eve"}}

func routes() map[string]desk.Route {
	return map[string]desk.Route{"default": {
		Name: "default", Version: "1",
		Steps: []desk.Step{
			{Notify: []string{desk.TargetInbox}},
			{At: desk.Duration(30 * time.Minute), Remind: []string{desk.TargetApprovers}, SkipIf: []desk.SkipCondition{desk.SkipIfViewed}},
			{At: desk.Duration(time.Hour), Notify: []string{brokenTarget}},
			{At: desk.Duration(24 * time.Hour), Expire: "stale"},
		},
		Cap: desk.Duration(7 * 24 * time.Hour),
	}}
}

// brokenTarget is a notification target that fails, so that the outbox keeps its notice.
const brokenTarget = "email:broken"

func notify(_ context.Context, _ string, notice desk.Notice) error {
	if slices.Contains(notice.Targets, brokenTarget) {
		return errors.New("mail server unavailable")
	}
	return nil
}

// A principal is a caller of the HTTP API.
type principal struct {
	Account string     `json:"account"`
	Role    authn.Role `json:"role"`
	Key     string     `json:"key,omitempty"`    // API key
	Cookie  string     `json:"cookie,omitempty"` // session
}

// people are the principals with API keys, by name.
func people() map[string]*principal {
	return map[string]*principal{
		"robot":   {Account: "acme", Role: authn.RoleAgent},
		"ana":     {Account: "acme", Role: authn.RoleApprover},
		"bob":     {Account: "acme", Role: authn.RoleApprover},
		"eve":     {Account: "acme", Role: authn.RoleApprover},
		"mallory": {Account: "acme", Role: authn.RoleApprover}, // is in no group
		"olga":    {Account: "acme", Role: authn.RoleAuditor},
		"root":    {Account: "acme", Role: authn.RoleAdmin},
		"other":   {Account: "other", Role: authn.RoleAdmin},
		"revoked": {Account: "acme", Role: authn.RoleAdmin},
	}
}

// browser is the principal that has a session instead of an API key.
const browser = "browser"

// A world is one installation: store, executor, and a server that is reached through memory.
type world struct {
	t          *testing.T
	dir        string
	store      *sqlite.Store
	executor   *executor.Executor
	server     *server.Server
	client     *http.Client
	auditKey   *audit.Key
	principals map[string]*principal
	close      func()
}

// openWorld opens the installation in a directory. It creates what does not exist.
func openWorld(t *testing.T, dir string) *world {
	t.Helper()
	w := &world{t: t, dir: dir}
	var err error
	check := func() {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fresh := false
	if _, missing := os.Stat(filepath.Join(dir, databaseFile)); missing != nil {
		fresh = true
		err = executor.CreateKeyFile(filepath.Join(dir, sealKeyFile))
		check()
		_, err = audit.OpenOrCreateKey(filepath.Join(dir, auditKeyFile))
		check()
	}
	sealer, err := executor.OpenKeyFile(filepath.Join(dir, sealKeyFile))
	check()
	w.auditKey, err = audit.OpenKey(filepath.Join(dir, auditKeyFile))
	check()
	w.store, err = sqlite.Open(filepath.Join(dir, databaseFile))
	check()
	set, err := policy.Load("policy.yaml", []byte(rules), policy.Options{})
	check()
	own, err := inproc.New(graphs(t)...)
	check()
	inner, err := inproc.New(unreliableGraphs(t, fresh)...)
	check()
	others, err := external.New(external.Config{})
	check()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	w.executor, err = executor.New(executor.Config{
		Store: w.store, Sealer: sealer, Log: log, Wait: 20 * time.Second, Poll: 170 * time.Millisecond, Owner: "compat-test",
		Providers: []provider.Provider{own, &unreliable{Provider: inner, broken: fresh}, others},
		Desk:      executor.DeskConfig{Directory: directory, Routes: routes(), Policy: set, Environment: "test", Zone: time.UTC, Channels: []channel.Channel{channel.Notify(notify)}},
		Audit:     executor.AuditConfig{Key: w.auditKey, SignEvery: time.Minute},
	})
	check()
	w.server, err = server.New(server.Config{
		Executor: w.executor, Auth: authn.Keys(w.store), Log: log, Version: "compat",
		SignIn: &authn.SignIn{Credentials: w.store, Sealer: sealer},
		Limits: server.Limits{Rate: 1e6, Burst: 1e6},
	})
	check()
	w.serve()
	w.executor.StartWorkers()
	if fresh {
		w.makePrincipals()
	} else {
		w.readPrincipals()
	}
	return w
}

func (w *world) makePrincipals() {
	w.t.Helper()
	w.principals = people()
	for name, p := range w.principals {
		key, kept, err := authn.NewKey(p.Account, name, p.Role, time.Time{})
		if err == nil {
			err = w.store.AddCredential(w.t.Context(), kept, store.Writes{})
		}
		if err == nil && name == "revoked" {
			err = w.store.RevokeCredential(w.t.Context(), p.Account, kept.ID, store.Writes{})
		}
		if err != nil {
			w.t.Fatal(err)
		}
		p.Key = key
	}
	w.signIn()
	data, err := json.MarshalIndent(w.principals, "", "\t")
	if err == nil {
		err = os.WriteFile(filepath.Join(w.dir, principalsFile), append(data, '\n'), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) readPrincipals() {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, principalsFile))
	if err == nil {
		err = json.Unmarshal(data, &w.principals)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// signIn makes a session.
func (w *world) signIn() {
	w.t.Helper()
	who := authn.Principal{Account: "acme", ID: "dana", Roles: []authn.Role{authn.RoleAuditor}}
	link, err := w.server.DevLink(loopback, who, "/")
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := w.client.Get(link)
	if err != nil {
		w.t.Fatal(err)
	}
	response.Body.Close()
	var pairs []string
	for _, cookie := range response.Cookies() {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	if response.StatusCode != http.StatusSeeOther || len(pairs) == 0 {
		w.t.Fatalf("sign-in: status %d, cookies %q", response.StatusCode, pairs)
	}
	w.principals[browser] = &principal{Account: who.Account, Role: authn.RoleAuditor, Cookie: strings.Join(pairs, "; ")}
}

// allowDevSessions lets the server accept sessions that were made by a link.
func (w *world) allowDevSessions() {
	w.t.Helper()
	if _, err := w.server.DevLink(loopback, authn.Principal{Account: "acme", ID: "dana", Roles: []authn.Role{authn.RoleAuditor}}, "/"); err != nil {
		w.t.Fatal(err)
	}
}

// serve lets the server listen in memory.
func (w *world) serve() {
	l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	h := &http.Server{Handler: w.server, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.Serve(l)
	}()
	w.client = &http.Client{
		Transport:     &http.Transport{DialContext: l.dial, DisableKeepAlives: true, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.close = sync.OnceFunc(func() {
		w.t.Helper()
		if err := w.executor.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
		h.Close()
		<-done
		if err := w.store.Close(); err != nil {
			w.t.Error(err)
		}
	})
}

var loopback = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}

// A pipeListener accepts connections that are made in memory, which a synctest bubble can wait for.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, serving := net.Pipe()
	select {
	case l.conns <- localConn{serving}:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*pipeListener) Addr() net.Addr { return loopback }

// A localConn is a connection from this machine.
type localConn struct{ net.Conn }

func (localConn) LocalAddr() net.Addr  { return loopback }
func (localConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: loopback.IP, Port: 50000} }
