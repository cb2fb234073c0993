//go:build unix && !race

package slack_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	port "github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// A replica is this test binary with this variable set: the JSON of a replicaConfig.
const replicaVariable = "FERMATA_SLACK_REPLICA"

func TestMain(m *testing.M) {
	text := os.Getenv(replicaVariable)
	if text == "" {
		os.Exit(m.Run())
	}
	var config replicaConfig
	err := json.Unmarshal([]byte(text), &config)
	if err == nil {
		err = config.serve()
	}
	fmt.Fprintln(os.Stderr, "replica:", err)
	os.Exit(1)
}

// replicaConfig configures a server with a Slack channel, in its own process.
type replicaConfig struct {
	Store, APIURL, BotToken, Secret, Bank string
	// Channels are Slack channels. The first word of a state key is the index of its channel.
	Channels []string
}

// refund is the state of a graph that pays after an approval.
type refund struct {
	Key  string `json:"key"`
	Desk string `json:"desk"`
	Done string `json:"done,omitempty"`
}

// executor opens an executor on the store.
func (c replicaConfig) executor(channels ...channel.Channel) (*sqlite.Store, *executor.Executor, error) {
	g := graph.New[refund]("refund")
	g.Node("pay", func(ctx context.Context, s refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[refund]{Name: "refund", Args: s})
		if err != nil {
			return s, err
		}
		s.Done, err = fermata.Effect(ctx, yes, func(ctx context.Context, args refund, key string) (string, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Bank+"/pay?for="+args.Key+"&key="+key, nil)
			if err != nil {
				return "", err
			}
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return "", err
			}
			return "paid", answer.Body.Close()
		}, fermata.Idempotent())
		return s, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, nil, err
	}
	p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[refund]{}))
	if err != nil {
		return nil, nil, err
	}
	sealer, err := seal.New(seal.Key{1})
	if err != nil {
		return nil, nil, err
	}
	routes, rules := make(map[string]desk.Route), "default: allow\nrules:\n"
	for i, id := range c.Channels {
		name := fmt.Sprint("r", i)
		routes[name] = desk.Route{Name: name, Steps: []desk.Step{{Notify: []string{"slack:" + id}}, {At: timespan.Duration(12 * time.Hour), Expire: "stale"}}}
		rules += fmt.Sprintf("- {id: %s, when: 'req.tool == \"refund\" && args.desk == %q', then: ask, ask: {groups: [{from: [\"group:finops\"]}], deadline: 12h, route: %s}}\n", name, name, name)
	}
	loaded, err := policy.Load("policy.yaml", []byte(rules), policy.Options{})
	if err != nil {
		return nil, nil, err
	}
	s, err := sqlite.Open(c.Store)
	if err != nil {
		return nil, nil, err
	}
	e, err := executor.New(executor.Config{
		Store: s, Sealer: sealer, Providers: []provider.Provider{p}, Lease: 400 * time.Millisecond, Poll: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Desk: executor.DeskConfig{Policy: loaded, Routes: routes, Directory: desk.StaticDirectory{"group:finops": {"ann"}}, Channels: channels},
	})
	return s, e, err
}

// serve runs a server until its process is killed. It prints its address.
func (c replicaConfig) serve() error {
	workspace, err := slack.New(slack.Config{Account: account, BotToken: c.BotToken, SigningSecret: c.Secret, APIURL: c.APIURL, DigestAbove: 1 << 30, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	s, e, err := c.executor(workspace)
	if err != nil {
		return err
	}
	web, err := server.New(server.Config{Executor: e, Auth: authn.Keys(s), Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	e.StartWorkers()
	d := web.Desk("https://fermata.example")
	go web.RunChannels(context.Background(), []channel.Channel{workspace}, d)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the parent
		os.Exit(1)
	}()
	fmt.Println(listener.Addr())
	return http.Serve(listener, web.ChannelHandler(web, []channel.Channel{workspace}, d))
}

// killedOffice is a server that is killed and started again, and the world around it.
type killedOffice struct {
	*testing.T
	*slackfake.Slack
	config replicaConfig
	alice  string
	key    string

	process *exec.Cmd
	stdin   io.Closer
	api     *client.Client

	mu   sync.Mutex
	paid map[string][]string // the idempotency keys of payments by run
}

func openKilledOffice(t *testing.T) *killedOffice {
	t.Helper()
	fake, err := slackfake.Start(slackfake.Config{Rates: map[string]slackfake.Rate{
		"channel": {}, "chat.update": {}, "chat.postMessage": {}, "chat.postEphemeral": {}, "auth.test": {}, "conversations.history": {}, // the limits have their own tests
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fake.Close() })
	o := &killedOffice{T: t, Slack: fake, alice: fake.AddUser("alice"), paid: make(map[string][]string)}
	bank := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		run, key := r.URL.Query().Get("for"), r.URL.Query().Get("key")
		if !slices.Contains(o.paid[run], key) {
			o.paid[run] = append(o.paid[run], key)
		}
	}))
	t.Cleanup(bank.Close)
	o.config = replicaConfig{Store: filepath.Join(t.TempDir(), "fermata.db"), APIURL: fake.APIURL(), BotToken: fake.BotToken(), Secret: fake.SigningSecret(), Bank: bank.URL}
	for i := range 10 {
		id := fake.AddChannel(slackfake.Channel{Name: fmt.Sprint("ops", i), Private: true})
		fake.Join(id, fake.BotUser(), o.alice)
		o.config.Channels = append(o.config.Channels, id)
	}
	o.prepare()
	o.start()
	t.Cleanup(o.kill)
	return o
}

// prepare links the Slack account of alice to ann, and makes an API key for the requester.
func (o *killedOffice) prepare() {
	o.Helper()
	s, e, err := o.config.executor()
	if err != nil {
		o.Fatal(err)
	}
	ctx := o.Context()
	token, err := e.NewLinkToken(ctx, channel.Sender{Account: account, Channel: slack.Kind, ID: o.Team() + "/" + o.alice, Name: "alice"})
	if err == nil {
		_, err = e.UseLinkToken(ctx, account, token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, []string{string(authn.RoleApprover)})
	}
	var kept port.Credential
	if err == nil {
		o.key, kept, err = authn.NewKey(account, "requester", authn.RoleAdmin, time.Time{})
	}
	if err == nil {
		err = s.AddCredential(ctx, kept, port.Writes{})
	}
	if err == nil {
		err = e.Stop(ctx)
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		o.Fatal(err)
	}
}

// start starts the next process.
func (o *killedOffice) start() {
	o.Helper()
	text, err := json.Marshal(o.config)
	if err != nil {
		o.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		o.Fatal(err)
	}
	o.process = exec.Command(exe)
	o.process.Env, o.process.Stderr = append(os.Environ(), replicaVariable+"="+string(text)), os.Stderr
	out, err := o.process.StdoutPipe()
	if err != nil {
		o.Fatal(err)
	}
	if o.stdin, err = o.process.StdinPipe(); err == nil {
		err = o.process.Start()
	}
	if err != nil {
		o.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		o.Fatalf("the server did not start: %v", err)
	}
	base := "http://" + strings.TrimSpace(line)
	o.SetApp(base+"/channels/slack/interactivity", base+"/channels/slack/commands")
	if o.api, err = client.New(base, o.key); err != nil {
		o.Fatal(err)
	}
}

// kill kills the process and waits for its end.
func (o *killedOffice) kill() {
	_ = o.process.Process.Kill()
	_ = o.process.Wait()
	_ = o.stdin.Close()
}

// endClaims ends the claims of the process that was killed, as a minute would.
func (o *killedOffice) endClaims() {
	o.Helper()
	db, err := sql.Open("sqlite", o.config.Store)
	if err != nil {
		o.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`UPDATE papers SET next_at = ?, revision = revision + 1 WHERE kind IN ('delivery', 'inbound') AND next_at IS NOT NULL`, time.Now().UnixMicro()); err != nil {
		o.Fatal(err)
	}
}

// refundRun is a run whose request is posted.
type refundRun struct{ key, channel, ts string }

// ask starts a run and waits for its message.
func (o *killedOffice) ask(i int) refundRun {
	o.Helper()
	n := i % len(o.config.Channels)
	run := refundRun{key: fmt.Sprint("refund-", i), channel: o.config.Channels[n]}
	input, err := json.Marshal(refund{Key: run.key, Desk: fmt.Sprint("r", n)})
	if err != nil {
		o.Fatal(err)
	}
	if _, err := o.api.Start(o.Context(), "inproc:refund", run.key, input); err != nil {
		o.Fatal(err)
	}
	until(o.T, run.key+" is posted", func() bool {
		for _, m := range o.Messages(run.channel) {
			if strings.Contains(string(m.Blocks), `\n`+run.key+`"`) {
				run.ts = m.TS
			}
		}
		return run.ts != ""
	})
	return run
}

// message returns the message of a run.
func (o *killedOffice) message(run refundRun) slackfake.Message {
	for _, m := range o.Messages(run.channel) {
		if m.TS == run.ts {
			return m
		}
	}
	return slackfake.Message{}
}

// decided returns who decided the request of a run, or "".
func (o *killedOffice) decided(run refundRun) string {
	view, err := o.api.Run(o.Context(), run.key)
	if err != nil || len(view.Requests) != 1 || view.Requests[0].Decision == nil {
		return ""
	}
	return view.Requests[0].Decision.By
}

// click clicks Approve, and reports whether Slack got an acknowledgement.
func (o *killedOffice) click(run refundRun) bool {
	d, err := o.Click(context.Background(), o.alice, run.channel, run.ts, "approve")
	return err == nil && d.Status == http.StatusOK
}

// The process is killed at a random moment after a click was sent: before it is stored, before it
// is acknowledged, before it decides, while the run continues, or before the message is replaced. A
// click that was acknowledged decides after the restart. One that was not is sent again by the
// person, as Slack shows an error. There is one decision and one payment, and no live button.
func TestCrash_ClickIsKilledAtRandomMoments(t *testing.T) {
	rounds := testtier.Count(5, 20, 2000)
	o := openKilledOffice(t)
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	phases := make(map[string]int)
	var runs []refundRun
	for i := range rounds {
		run := o.ask(i)
		runs = append(runs, run)
		acknowledged := make(chan bool, 1)
		click := func() { acknowledged <- o.click(run) }
		switch i {
		case 0:
			o.kill()
			click()
		case 1:
			click()
			o.kill()
		default:
			go click()
			// a third of the kills are before the acknowledgement, most others before the end
			longest := []time.Duration{6, 20, 120}[i%3] * time.Millisecond
			time.Sleep(time.Duration(random.Int64N(int64(longest))))
			o.kill()
		}
		closed := !slices.Contains(labels(t, o.message(run).Blocks), "Approve")
		ok := <-acknowledged
		o.endClaims()
		o.start()
		switch {
		case !ok:
			phases["not acknowledged"]++
			for !o.click(run) {
			}
		case closed:
			phases["complete"]++
		default:
			phases["acknowledged"]++
		}
		until(t, run.key+" is decided", func() bool { return o.decided(run) == "ann" })
		until(t, run.key+" has no live button", func() bool {
			m := o.message(run)
			return !slices.Contains(labels(t, m.Blocks), "Approve") && strings.Contains(string(m.Blocks), "approved by ann")
		})
	}
	t.Logf("kills: %v", phases)
	if phases["not acknowledged"] == 0 || phases["acknowledged"]+phases["complete"] == 0 {
		t.Errorf("the kills did not hit both sides of the acknowledgement: %v", phases)
	}
	o.checkEnd(runs)
}

// checkEnd checks that each run has one decision, one payment and an end.
func (o *killedOffice) checkEnd(runs []refundRun) {
	o.Helper()
	for _, run := range runs {
		until(o.T, run.key+" completes", func() bool {
			view, err := o.api.Run(o.Context(), run.key)
			return err == nil && view.Status == "completed"
		})
	}
	o.kill()
	s, e, err := o.config.executor()
	if err != nil {
		o.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	defer func() { _ = e.Stop(context.Background()) }()
	for _, run := range runs {
		stored, err := s.Get(o.Context(), account, run.key)
		if err != nil {
			o.Fatal(err)
		}
		events, err := e.Events(o.Context(), account, stored.ID, 0)
		if err != nil {
			o.Fatal(err)
		}
		decisions := 0
		for _, event := range events {
			if event.Kind == port.EventDecided {
				decisions++
			}
		}
		if decisions != 1 || len(o.paid[run.key]) != 1 {
			o.Errorf("%s has %d decisions and the payments %v", run.key, decisions, o.paid[run.key])
		}
	}
}
