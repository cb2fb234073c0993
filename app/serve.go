package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/fermata-go/fermata/app/sample"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
	"github.com/fermata-go/fermata/server"
	"github.com/fermata-go/fermata/store"
)

// service is a server on a store.
type service struct {
	place
	Addr           string        `help:"Where to listen." default:"127.0.0.1:8080" placeholder:"HOST:PORT" env:"FERMATA_ADDR"`
	Timeout        time.Duration `help:"How long a question may be open." default:"24h" env:"FERMATA_TIMEOUT"`
	Retention      time.Duration `help:"How long a run is kept after it is over; for ever by default." env:"FERMATA_RETENTION"`
	WebhookSecrets []string      `help:"What webhooks are signed with, whsec_…, the newest first." env:"FERMATA_WEBHOOK_SECRETS" placeholder:"SECRET"`
	WebhookAllow   []string      `help:"Hosts and prefixes that webhooks may go to although they are not public." env:"FERMATA_WEBHOOK_ALLOW" placeholder:"HOST"`
}

// drainPatience is how long what is under way may take after somebody asked the server to end.
const drainPatience = 20 * time.Second

// running is a service at work.
type running struct {
	*executor.Executor
	store    openStore
	url      string
	listener net.Listener
	http     *http.Server
}

// start opens everything and listens. Nothing is served yet.
func (s service) start(ctx context.Context, p *program, log *slog.Logger) (*running, error) {
	first := s.isNew()
	box, _, err := s.openBox(first)
	if err != nil {
		return nil, err
	}
	st, err := s.openStore(ctx, false)
	if err != nil {
		return nil, err
	}
	r, err := s.wire(p, st, box, log)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return r, nil
}

func (s service) wire(p *program, st openStore, box executor.Box, log *slog.Logger) (*running, error) {
	own, err := inproc.New(p.graphs...)
	if err != nil {
		return nil, err
	}
	others, err := external.New(external.Config{Allow: s.WebhookAllow, Secrets: func(context.Context, string) ([]string, error) { return s.WebhookSecrets, nil }})
	if err != nil {
		return nil, err
	}
	e, err := executor.New(executor.Config{
		Store: st, Box: box, Providers: append([]provider.Provider{own, others}, p.others...), Timeout: s.Timeout, Retention: s.Retention, Log: log,
	})
	if err != nil {
		return nil, err
	}
	h, err := server.New(server.Config{Executor: e, Auth: server.Keys(st), Log: log, Version: version()})
	if err == nil {
		var listener net.Listener
		if listener, err = net.Listen("tcp", s.Addr); err == nil {
			return &running{Executor: e, store: st, url: "http://" + listener.Addr().String(), listener: listener, http: httpServer(h)}, nil
		}
	}
	return nil, errors.Join(err, e.Stop(context.Background()))
}

// httpServer has the patience of a server on the open network: none for those who do not speak.
func httpServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
}

// serve serves until ctx ends, and then lets what is under way end.
func (r *running) serve(ctx context.Context) error {
	r.Start()
	failed := make(chan error, 1)
	go func() { failed <- r.http.Serve(r.listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainPatience)
	defer cancel()
	// The executor first: whoever waits for an outcome gets it, or hears that it is under way.
	stopped := r.Stop(patience)
	if r.http.Shutdown(patience) != nil { // those who follow events do not go by themselves
		_ = r.http.Close()
	}
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return errors.Join(err, stopped, r.store.Close())
}

type serveCommand struct{ service }

// Run serves until somebody ends it.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	log := slog.New(slog.NewTextHandler(p.err, nil))
	r, err := c.start(ctx, p, log)
	if err != nil {
		return err
	}
	log.Info("serving", "url", r.url, "version", version())
	return r.serve(ctx)
}

type demoCommand struct {
	Data string `help:"Where to keep everything." default:".fermata" placeholder:"DIR"`
	Addr string `help:"Where to listen; 127.0.0.1:0 takes a free port." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	JSON bool   `name:"json" help:"Print one line of JSON when it is ready: url, token, account."`
}

// demoAccount is whose runs the demo shows.
const demoAccount = "demo"

// Run serves the samples on a SQLite file, with a fresh key for whoever sees the output.
func (c *demoCommand) Run(ctx context.Context, p *program) error {
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	graphs, err := sample.Graphs()
	if err != nil {
		return err
	}
	p.graphs = append(p.graphs, graphs...)
	log := slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s := service{place: place{Store: sqliteScheme + filepath.Join(c.Data, "fermata.db")}, Addr: c.Addr}
	r, err := s.start(ctx, p, log)
	if err != nil {
		return err
	}
	token, err := demoKey(ctx, r.store)
	if err == nil {
		err = demoRuns(ctx, r.Executor)
	}
	if err != nil {
		return errors.Join(err, r.Stop(ctx), r.listener.Close(), r.store.Close())
	}
	c.announce(p, r.url, token)
	return r.serve(ctx)
}

// demoKey makes a new admin key, and ends that of the demo before: nobody has it any more.
func demoKey(ctx context.Context, credentials store.Credentials) (string, error) {
	old, err := credentials.Credentials(ctx, demoAccount)
	if err != nil {
		return "", err
	}
	for _, c := range old {
		if c.Name == "you" {
			if err := credentials.RevokeCredential(ctx, demoAccount, c.ID); err != nil {
				return "", err
			}
		}
	}
	key, kept, err := server.NewKey(demoAccount, "you", server.Admin, time.Time{})
	if err != nil {
		return "", err
	}
	return key, credentials.AddCredential(ctx, kept)
}

// demoRuns starts some runs, in different states. Started again they are as they were.
func demoRuns(ctx context.Context, e *executor.Executor) error {
	for key, run := range map[string]struct{ graph, input, answer string }{
		"article-tea":    {"inproc:content-review", `{"topic":"tea"}`, ""},
		"article-coffee": {"inproc:content-review", `{"topic":"coffee"}`, `{"action":"revise","feedback":"a picture"}`},
		"article-cocoa":  {"inproc:content-review", `{"topic":"cocoa"}`, `{"action":"approve"}`},
		"article-mud":    {"inproc:content-review", `{"topic":"mud"}`, `{"action":"reject","feedback":"nobody drinks it"}`},
		"drop-users":     {"inproc:drop-table", `{"name":"users","rows":48213}`, ""},
	} {
		if _, err := e.Run(ctx, executor.Request{Account: demoAccount, StateKey: key, Graph: run.graph, Input: json.RawMessage(run.input)}); err != nil {
			return err
		}
		if run.answer == "" {
			continue
		}
		if _, err := e.Run(ctx, executor.Request{Account: demoAccount, StateKey: key, ResumeID: "demo-" + key, Actor: "ann", Via: "demo", Value: json.RawMessage(run.answer)}); err != nil {
			return err
		}
	}
	return nil
}

func (c *demoCommand) announce(p *program, url, token string) {
	if c.JSON {
		_ = json.NewEncoder(p.out).Encode(map[string]string{"url": url, "token": token, "account": demoAccount})
		return
	}
	fmt.Fprintf(p.out, `Fermata is ready at %[1]s; everything is kept in %[3]s. End it with Ctrl-C.

In another terminal:

  export FERMATA_URL=%[1]s FERMATA_TOKEN=%[2]s
  fermata inbox                                  what people are asked
  fermata run inproc:content-review '{"topic":"tea"}'

Or without any client:

  curl -s $FERMATA_URL/api/v1/ai/chat -H "Authorization: Bearer $FERMATA_TOKEN" -H 'Content-Type: application/json' \
    -d '{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"tea"}}'
  curl -s $FERMATA_URL/api/v1/ai/chat -H "Authorization: Bearer $FERMATA_TOKEN" -H 'Content-Type: application/json' \
    -d '{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}'

`, url, token, c.Data)
}
