package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	slackchannel "github.com/fermata-go/fermata/channel/slack"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/slackfake"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The scenarios slack/… measure decisions by clicks in Slack next to the same decisions through the
// JSON API, both over HTTP on one server. The clicks are signed payloads as Slack sends them. The
// requests are not posted: Slack allows one message a second in a channel.

// slackResult is the result on one kind of database.
type slackResult struct {
	Name      string `json:"name"`
	Database  string `json:"database"`
	Decisions int    `json:"decisions"`
	// Clicks and Calls are decisions per second of 16 people, in Slack and through the API, until
	// each run has continued: the best of the rounds.
	Clicks float64 `json:"clicks"`
	Calls  float64 `json:"calls"`
	// Acks are the times until a click is acknowledged, Resumed until its run has continued: one
	// click after the other.
	Acks    latencies `json:"acks"`
	Resumed latencies `json:"resumed"`
}

// latencies are percentiles.
type latencies struct {
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
}

func latenciesOf(all []time.Duration) latencies {
	slices.Sort(all)
	return latencies{P50: percentile(all, 50), P99: percentile(all, 99)}
}

func slackName(database string) string { return "slack/" + database }

const (
	slackAccount = "acme"
	slackPeople  = 16
)

// slackPlan says how many decisions each part has.
type slackPlan struct{ rounds, decisions, single, outage int }

var (
	slackFull  = slackPlan{rounds: 3, decisions: 640, single: 200, outage: 1_000}
	slackQuick = slackPlan{rounds: 1, decisions: 16, single: 2, outage: 60}
)

func (p slackPlan) measure(ctx context.Context, name string, progress io.Writer) (r slackResult, err error) {
	r = slackResult{Name: slackName(name), Decisions: p.decisions}
	st, version, remove, err := openDatabase(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	r.Database = version
	defer func() { err = errors.Join(err, st.Close()) }()
	w, err := openSlackRig(ctx, st)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	for round := range p.rounds {
		fmt.Fprintf(progress, "%s: round %d of %d\n", r.Name, round+1, p.rounds)
		clicks, err := w.rate(ctx, p.decisions, w.click)
		if err != nil {
			return r, err
		}
		calls, err := w.rate(ctx, p.decisions, w.call)
		if err != nil {
			return r, err
		}
		r.Clicks, r.Calls = max(r.Clicks, clicks), max(r.Calls, calls)
	}
	var acks, resumed []time.Duration
	for range p.single {
		one, err := w.ask(ctx)
		if err != nil {
			return r, err
		}
		began := time.Now()
		if err := w.click(ctx, one); err != nil {
			return r, err
		}
		acks = append(acks, time.Since(began))
		if err := one.wait(ctx); err != nil {
			return r, err
		}
		resumed = append(resumed, one.done.Sub(began))
	}
	r.Acks, r.Resumed = latenciesOf(acks), latenciesOf(resumed)
	return r, nil
}

// slackRig is a server with a Slack channel.
type slackRig struct {
	fake    *slackfake.Slack
	runs    *slackRuns
	stop    func() error
	api     *client.Client
	target  string
	user    string
	actions atomic.Int64
}

// slackRuns are runs whose effect reports its time.
type slackRuns struct {
	mu      sync.Mutex
	waiting map[int]*slackRun
	next    int
}

// slackRun is a run that waits for an approval.
type slackRun struct {
	request api.Request
	done    time.Time
	ended   chan struct{}
}

func (r *slackRun) wait(ctx context.Context) error {
	select {
	case <-r.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("request %s has not continued after a minute", r.request.ID)
	}
}

// slackProvider has a graph whose approved action ends the wait of its run.
func (r *slackRuns) provider() (provider.Provider, error) {
	g := graph.New[payment]("pay")
	g.Node("pay", func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[int]{Name: payTool, Args: p.Amount})
		if err != nil {
			return p, err
		}
		p.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, amount int, _ string) (string, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if run := r.waiting[amount]; run != nil {
				run.done = time.Now()
				close(run.ended)
				delete(r.waiting, amount)
			}
			return fmt.Sprint("paid ", amount), nil
		})
		return p, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return inproc.New(inproc.Flow(flow, inproc.FlowConfig[payment]{}))
}

func openSlackRig(ctx context.Context, st store.Store) (w *slackRig, err error) {
	fake, err := slackfake.Start(slackfake.Config{Rates: map[string]slackfake.Rate{"channel": {}, "chat.postEphemeral": {}, "auth.test": {}}})
	if err != nil {
		return nil, err
	}
	w = &slackRig{fake: fake, user: fake.AddUser("ann"), runs: &slackRuns{waiting: make(map[int]*slackRun)}}
	log := slog.New(slog.DiscardHandler)
	workspace, err := slackchannel.New(slackchannel.Config{Account: slackAccount, BotToken: fake.BotToken(), SigningSecret: fake.SigningSecret(), APIURL: fake.APIURL(), Log: log})
	if err != nil {
		return nil, err
	}
	p, err := w.runs.provider()
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer()
	if err != nil {
		return nil, err
	}
	e, err := executor.New(executor.Config{Store: st, Sealer: sealer, Providers: []provider.Provider{p}, Poll: 50 * time.Millisecond, Wait: time.Minute, Log: log})
	if err != nil {
		return nil, err
	}
	web, err := server.New(server.Config{Executor: e, Auth: authn.Keys(st), Limits: server.Limits{Rate: 1e6, Burst: 1e6}, Log: log})
	if err != nil {
		return nil, err
	}
	key, kept, err := authn.NewKey(slackAccount, "ann", authn.RoleAdmin, time.Time{})
	if err == nil {
		err = st.AddCredential(ctx, kept, store.Writes{})
	}
	if err != nil {
		return nil, err
	}
	token, err := e.NewLinkToken(ctx, channel.Sender{Account: slackAccount, Channel: slackchannel.Kind, ID: fake.Team() + "/" + w.user, Name: "ann"})
	if err == nil {
		_, err = e.UseLinkToken(ctx, slackAccount, token, desk.From{Actor: desk.PersonActor("ann", requirement.AuthSSO)}, []string{string(authn.RoleApprover)})
	}
	if err != nil {
		return nil, err
	}
	e.StartWorkers()
	running, cancel := context.WithCancel(context.Background())
	d, channels := web.Desk("https://fermata.example"), []channel.Channel{workspace}
	var group sync.WaitGroup
	group.Go(func() { web.RunChannels(running, channels, d) })
	listener := httptest.NewServer(server.ChannelHandler(web, channels, d))
	w.target = listener.URL + "/channels/slack/interactivity"
	w.stop = func() error {
		cancel()
		group.Wait()
		listener.Close()
		return errors.Join(e.Stop(context.Background()), fake.Close())
	}
	w.api, err = client.New(listener.URL, key)
	return w, err
}

func (w *slackRig) close() error { return w.stop() }

// ask starts a run that waits.
func (w *slackRig) ask(ctx context.Context) (*slackRun, error) {
	run := &slackRun{ended: make(chan struct{})}
	w.runs.mu.Lock()
	w.runs.next++
	amount := w.runs.next
	w.runs.waiting[amount] = run
	w.runs.mu.Unlock()
	key := fmt.Sprint("run-", amount)
	outcome, err := w.api.Start(ctx, payGraph, key, json.RawMessage(fmt.Sprintf(`{"amount":%d}`, amount)))
	if err != nil {
		return nil, err
	}
	waits, ok := outcome.(fermata.NeedsInput)
	if !ok {
		return nil, fmt.Errorf("%s: outcome %T", key, outcome)
	}
	run.request, err = w.api.Request(ctx, waits.Interrupts[0].ID)
	return run, err
}

// click sends a signed click on Approve, and returns when it is acknowledged.
func (w *slackRig) click(ctx context.Context, run *slackRun) error {
	value, err := json.Marshal(map[string]any{"r": run.request.ID, "v": run.request.Activity.Revision, "d": run.request.Shown})
	if err != nil {
		return err
	}
	payload, err := json.Marshal(map[string]any{
		"type": "block_actions", "team": map[string]any{"id": w.fake.Team()}, "user": map[string]any{"id": w.user, "username": "ann", "team_id": w.fake.Team()},
		"channel": map[string]any{"id": "C0OPS"}, "container": map[string]any{"message_ts": "1.1", "channel_id": "C0OPS"},
		"actions": []any{map[string]any{"block_id": "fermata_actions", "action_id": "approve", "action_ts": fmt.Sprint(w.actions.Add(1)), "value": string(value)}},
	})
	if err != nil {
		return err
	}
	body := []byte(url.Values{"payload": {string(payload)}}.Encode())
	d, err := w.fake.Post(ctx, w.target, w.fake.Sign(body, time.Now(), w.fake.SigningSecret()), body)
	if err == nil && d.Status != http.StatusOK {
		err = fmt.Errorf("a click was answered with status %d", d.Status)
	}
	return err
}

// call decides through the API.
func (w *slackRig) call(ctx context.Context, run *slackRun) error {
	_, err := w.api.Decide(ctx, run.request.ID, api.Decide{Answer: json.RawMessage(`{"verb":"approve"}`), Shown: run.request.Shown})
	return err
}

// rate decides requests by several people at once, and returns the decisions per second.
func (w *slackRig) rate(ctx context.Context, count int, decide func(context.Context, *slackRun) error) (float64, error) {
	all := make([]*slackRun, count)
	if err := atOnce(count, func(i int) (err error) {
		all[i], err = w.ask(ctx)
		return err
	}); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := atOnce(count, func(i int) error { return decide(ctx, all[i]) }); err != nil {
		return 0, err
	}
	last := began
	for _, run := range all {
		if err := run.wait(ctx); err != nil {
			return 0, err
		}
		if run.done.After(last) {
			last = run.done
		}
	}
	return float64(count) / last.Sub(began).Seconds(), nil
}

// atOnce calls do for each index, from slackPeople goroutines.
func atOnce(count int, do func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, slackPeople)
	var group sync.WaitGroup
	for n := range slackPeople {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count && errs[n] == nil; i = int(next.Add(1)) - 1 {
				errs[n] = do(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
