// Package server serves your graphs and agents with policies, a web inbox and an HTTP API, on one
// store.
//
//	st, err := sqlite.Open("fermata.db")
//	if err != nil {
//		return err
//	}
//	defer st.Close()
//	srv, err := server.New(server.Config{Executor: executor.Config{
//		Store: st, KeyFile: "fermata.key", PolicyFile: "policy.yaml", Graphs: []inproc.Graph{inproc.Flow(refund, inproc.FlowConfig[Refund]{})},
//	}})
//	if err != nil {
//		return err
//	}
//	return srv.ListenAndServe(ctx, "localhost:8080")
//
// Several replicas need postgres.Open in the first line, the same key file, and nothing else.
//
// Programs authenticate with an API key of [Server.CreateKey]. People sign in through an OpenID
// Connect provider ([Config.OIDC]), or with an invitation of an administrator and a passkey; see
// docs/auth.md. Package client calls the API from Go.
//
// Package app is the alternative with command line, configuration file and all settings.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/embedded"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/web"
)

// Config configures a server.
type Config struct {
	// Executor configures the store, the graphs and the rules. Set its PublicURL if people use the
	// server from other machines: passkeys are bound to it.
	Executor executor.Config
	// OIDC is the identity provider with which people sign in; nil for none.
	OIDC *OIDC
	// Version is the version of your program, for /healthz.
	Version string
}

// OIDC configures an OpenID Connect provider. People sign in with the authorization code flow.
type OIDC struct {
	// Issuer is the provider's URL, exactly as in its tokens. ClientSecret may be empty for a
	// public client.
	Issuer, ClientID, ClientSecret string
	// RedirectURL is the callback URL registered at the provider: https://HOST/signin/callback.
	RedirectURL string
	// Account is the account of all people.
	Account string
	// Roles maps groups of the claim "groups" to roles; see [Server.CreateKey]. A person in none of
	// the groups is rejected.
	Roles map[string][]string
}

// Server is an http.Handler of the pages and the API.
type Server struct {
	executor *executor.Executor
	parts    embedded.Parts
	api      *server.Server
	handler  http.Handler
	desk     channel.Desk
	log      *slog.Logger

	once  sync.Once
	stop  context.CancelFunc
	ctx   context.Context
	loops sync.WaitGroup
}

// New opens a server with its executor. Call ListenAndServe, or Start and Stop if the program
// serves it with its own http.Server.
func New(config Config) (*Server, error) {
	e, err := executor.New(config.Executor)
	if err != nil {
		return nil, err
	}
	s, err := open(e, config)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), e.Stop(context.Background()))
	}
	return s, nil
}

func open(e *executor.Executor, config Config) (*Server, error) {
	s := &Server{executor: e, parts: embedded.PartsOf(e), log: cmp.Or(config.Executor.Log, slog.Default())}
	s.ctx, s.stop = context.WithCancel(context.Background())
	var err error
	s.api, err = server.New(server.Config{
		Executor: s.parts.Executor, Dialog: s.parts.Dialog, Auth: authn.Keys(s.parts.Store), Log: s.log, Version: config.Version, WebPush: webPush(s.parts.Channels),
		SignIn: &authn.SignIn{Credentials: s.parts.Store, Sealer: s.parts.Sealer, PublicURL: config.Executor.PublicURL, OIDC: config.OIDC.internal()},
	})
	if err != nil {
		return nil, err
	}
	address := config.Executor.PublicURL
	if config.OIDC != nil {
		address = cmp.Or(address, config.OIDC.RedirectURL)
	}
	site, err := web.New(web.Config{API: s.api, PublicURL: address, Log: s.log, Chat: s.parts.Dialog != nil})
	if err != nil {
		return nil, err
	}
	s.desk = s.api.Desk(config.Executor.PublicURL)
	s.handler = s.api.ChannelHandler(site, s.parts.Channels, s.desk)
	return s, nil
}

func (o *OIDC) internal() *authn.OIDC {
	if o == nil {
		return nil
	}
	roles := make(map[string][]authn.Role)
	for group, names := range o.Roles {
		for _, name := range names {
			roles[group] = append(roles[group], authn.Role(name))
		}
	}
	return &authn.OIDC{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: o.ClientSecret, RedirectURL: o.RedirectURL, Account: o.Account, Roles: roles}
}

func webPush(channels []channel.Channel) *webpush.Channel {
	for _, ch := range channels {
		if found, ok := ch.(*webpush.Channel); ok {
			return found
		}
	}
	return nil
}

// Executor returns the executor, with which the program starts and decides runs in this process.
func (s *Server) Executor() *executor.Executor { return s.executor }

// ServeHTTP serves the pages under /, and the API under /api/v1/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Metrics serves the metrics in Prometheus' format. Serve it on an address of its own.
func (s *Server) Metrics() http.Handler { return s.api.Metrics() }

// CreateKey creates an API key of an account and returns it. It cannot be read again. The role is
// agent, approver, auditor, user, admin or frontend. The key of an administrator invites people:
// fermata invite.
func (s *Server) CreateKey(ctx context.Context, account, name, role string) (string, error) {
	key, kept, err := authn.NewKey(account, name, authn.Role(role), time.Time{})
	if err != nil {
		return "", err
	}
	line, err := audit.NewLine(account, audit.Actor{Principal: "program", Kind: audit.ActorSystem, Via: "program"}, audit.Location{},
		audit.APIKeyMade{Key: kept.ID, Name: kept.Name, Role: kept.Role})
	if err != nil {
		return "", err
	}
	return key, s.parts.Store.AddCredential(ctx, kept, store.Writes{Audit: [][]byte{line}})
}

// Start begins the work in the background: that of the executor, and of the channels. It returns at
// once, and may be called several times.
func (s *Server) Start() {
	s.once.Do(func() {
		s.executor.Start()
		s.loops.Go(func() { s.api.RunChannels(s.ctx, s.parts.Channels, s.desk) })
	})
}

// Stop ends the work in the background, as [executor.Executor.Stop] does.
func (s *Server) Stop(ctx context.Context) error {
	err := s.executor.Stop(ctx)
	s.stop()
	s.loops.Wait()
	return err
}

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeader         = 16 << 10
	drainTimeout      = 20 * time.Second
)

// ListenAndServe serves on an address, such as "localhost:8080", until ctx ends. Then it finishes
// what is in progress, for up to 20 s, stops the executor and returns nil. It has no TLS: put a
// proxy in front of it, or serve it with your own http.Server.
func (s *Server) ListenAndServe(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	h := &http.Server{
		Handler: s, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	l = s.api.LimitIdleConns(h, l)
	s.Start()
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	s.log.Info("serving", "url", "http://"+l.Addr().String())
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err = errors.Join(err, s.Stop(drain)) // callers that wait get an outcome
	if h.Shutdown(drain) != nil {
		_ = h.Close() // event streams
	}
	return err
}
