package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/lockfile"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider/inproc"
)

type Command struct {
	Data  string        `help:"The data directory; .fermata by default, with --slack .fermata-slack." default:"" placeholder:"DIR"`
	Slack bool          `help:"Also start a fake Slack workspace, and print the link of its page."`
	Every time.Duration `help:"How often a sample agent asks something new, 25s by default; 0 for never." default:"25s"`
	Addr  string        `help:"The listen address; 127.0.0.1:8080 by default, 127.0.0.1:0 uses a free port." default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
}

// Account is the account of the demo's runs, and demoPerson the person who decides.
const (
	Account = "demo"
	Person  = "dana"
)

// demoContact is what push services see as the operator of a demo.
const demoContact = "https://github.com/fermata-go/fermata"

// Run serves the samples on a SQLite file, with a new API key that it prints.
func (c *Command) Run(ctx context.Context, p *serve.Program) error {
	if c.Data == "" {
		c.Data = ".fermata"
		if c.Slack {
			c.Data = ".fermata-slack"
		}
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return err
	}
	// A demo revokes the key of the previous one, so only one can run at a time.
	release, err := lockfile.Try(filepath.Join(c.Data, "demo.lock"))
	if errors.Is(err, lockfile.ErrLocked) {
		return fmt.Errorf("a demo is already running on the directory %s: use that one, or choose another directory with --data", c.Data)
	}
	if err != nil {
		return err
	}
	defer release()
	graphs, err := sample.Graphs()
	if err != nil {
		return err
	}
	press, err := sample.Press()
	if err != nil {
		return err
	}
	p.Tour = true
	p.Graphs, p.Providers = append(p.Graphs, graphs...), append(p.Providers, press)
	if err := addDialog(p, c.Data); err != nil {
		return err
	}
	files, err := sample.WriteFiles(c.Data)
	if err != nil {
		return err
	}
	// One of the samples is parked, which a server logs as an error. It should not be the first
	// thing a new user sees.
	level := new(slog.LevelVar)
	level.Set(slog.LevelError + 1)
	log := slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: level}))
	var fake *demoSlack
	public, routes := "", ""
	if c.Slack {
		if public, c.Addr, err = PublicURL(c.Addr); err != nil {
			return err
		}
		if fake, err = startDemoSlack(c.Data, log); err != nil {
			return err
		}
		defer func() { _ = fake.Close() }()
		p.Channels, routes = append(p.Channels, fake.channel), fake.routesFile
	}
	pushKey := filepath.Join(c.Data, "webpush.key")
	if _, err := operatorcmd.MakeWebPushKey(pushKey); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// the environment is ignored, so that a demo is the same everywhere
	settings, err := config.Load(config.Source{Flags: map[string]string{
		"store.url": config.SQLiteScheme + filepath.Join(c.Data, "fermata.db"), "listen.addr": c.Addr, "metrics.addr": config.Off,
		"desk.policyFile": files.Policy, "desk.groupsFile": files.Groups,
		"desk.routesFile": routes, "listen.publicURL": public,
		"channels.webpush.keyFile": pushKey, "channels.webpush.subject": demoContact,
	}})
	if err != nil {
		return err
	}
	r, err := serve.Start(ctx, p, settings, log)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: --addr 127.0.0.1:0 uses a free port", err)
	}
	if err != nil {
		return err
	}
	ready, err := c.Prepare(ctx, r)
	if err == nil && fake != nil {
		ready.Slack = fake.page()
		err = fake.prepare(ctx, r.Executor)
	}
	if err != nil {
		return errors.Join(err, r.Close(context.WithoutCancel(ctx)))
	}
	level.Set(slog.LevelWarn)
	ready.Announce(p, c.Data)
	ctx, stop := context.WithCancel(ctx)
	var agents sync.WaitGroup
	agents.Go(func() { demoAgents(ctx, r.Executor, c.Every) })
	defer agents.Wait()
	defer stop()
	return r.Serve(ctx)
}

// Ready is what a client needs to use the demo; its JSON is the output for programs.
type Ready struct {
	URL     string `json:"url"`
	Token   string `json:"token"`
	Account string `json:"account"`

	// SignIn is a link that signs a browser in; empty if other machines could use it.
	SignIn string `json:"signIn,omitempty"`
	// Slack is the page of the fake Slack workspace; empty without --slack.
	Slack string `json:"slack,omitempty"`
}

// Prepare creates the API key and the runs of the demo.
func (c *Command) Prepare(ctx context.Context, r *serve.Server) (Ready, error) {
	ready := Ready{URL: r.URL, Account: Account}
	var err error
	if ready.Token, err = demoKey(ctx, r.Store); err != nil {
		return ready, err
	}
	ready.SignIn, err = r.API.DevLink(r.Addr(), authn.Principal{Account: Account, ID: Person, Roles: []authn.Role{authn.RoleAdmin}}, "/inbox")
	if err != nil && !errors.Is(err, authn.ErrNotLoopback) {
		return ready, err
	}
	return ready, CreateRuns(ctx, r.Executor)
}

// demoKey creates a new admin key, and revokes that of the previous demo.
func demoKey(ctx context.Context, credentials store.Credentials) (string, error) {
	old, err := credentials.Credentials(ctx, Account)
	if err != nil {
		return "", err
	}
	for _, c := range old {
		// browser sessions expire by themselves
		if c.Name == Person && c.Expires.IsZero() && c.Revoked.IsZero() {
			if err := operatorcmd.RevokeKey(ctx, credentials, Account, c.ID); err != nil {
				return "", err
			}
		}
	}
	key, kept, err := authn.NewKey(Account, Person, authn.RoleAdmin, time.Time{})
	if err != nil {
		return "", err
	}
	return key, operatorcmd.AddKey(ctx, credentials, kept)
}

// Announce prints that the demo is ready; with --json on exactly one line.
func (d Ready) Announce(p *serve.Program, data string) {
	if p.JSON {
		_ = json.NewEncoder(p.Out).Encode(d)
		return
	}
	link := "(none: other machines can reach this address)"
	if d.SignIn != "" {
		link = d.SignIn
	}
	fakeSlack := ""
	if d.Slack != "" {
		fakeSlack = "Decide the same requests in a fake Slack workspace:\n\n  " + d.Slack + "\n\n"
	}
	// Indented lines can be typed.
	fmt.Fprintf(p.Out, `Fermata is ready at %[1]s; its data is in %[3]s. Stop it with Ctrl-C.

Open the inbox in your browser:

  %[4]s

%[6]sIn another terminal, list open requests and start one more run:

  export FERMATA_URL=%[1]s FERMATA_TOKEN=%[2]s
  %[5]s inbox
  %[5]s run inproc:content-review '{"topic":"tea"}'

Or with curl only:

  curl -s $FERMATA_URL/api/v1/ai/chat -H "Authorization: Bearer $FERMATA_TOKEN" -H 'Content-Type: application/json' \
    -d '{"graphId":"inproc:content-review","stateKey":"demo-1","input":{"topic":"tea"}}'
  curl -s $FERMATA_URL/api/v1/ai/chat -H "Authorization: Bearer $FERMATA_TOKEN" -H 'Content-Type: application/json' \
    -d '{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}'

`, d.URL, d.Token, data, link, programName(), fakeSlack)
}

// programName returns how to call this program in any terminal: by its name if it is on the path,
// which it is not after make demo.
func programName() string {
	self, err := os.Executable()
	if err != nil {
		return filepath.Base(os.Args[0])
	}
	found, _ := exec.LookPath(filepath.Base(self))
	if a, err := os.Stat(found); err == nil {
		if b, err := os.Stat(self); err == nil && os.SameFile(a, b) {
			return filepath.Base(self)
		}
	}
	if strings.ContainsAny(self, " '") {
		return "'" + strings.ReplaceAll(self, "'", `'\''`) + "'"
	}
	return self
}

// addDialog gives the demo the assistant of examples/assistant, unless the program has its own.
func addDialog(p *serve.Program, dir string) error {
	if p.Dialog != nil {
		return nil
	}
	assistant, err := office.New(filepath.Clean(dir), office.Script())
	if err != nil {
		return err
	}
	p.Graphs = append(p.Graphs, inproc.Agent(agent.RunnerConfig{Agent: assistant}))
	p.Dialog = &executor.DialogConfig{Graph: "inproc:assistant", Machine: dialog.Machine{HandOver: true}}
	return nil
}
