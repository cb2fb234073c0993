package channeltest_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/channel/channeltest"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pgtest"
	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/postgres"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/timespan"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// onStores runs a test on SQLite and on PostgreSQL. Each call of open is a replica.
func onStores(t *testing.T, test func(t *testing.T, open func() store.Store)) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "fermata.db")
		test(t, func() store.Store {
			s, err := sqlite.Open(path)
			must(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
	t.Run("postgres", func(t *testing.T) {
		database := pgtest.Prepared(t, func(empty string) error {
			s, err := postgres.Open(t.Context(), empty, postgres.Config{})
			if err != nil {
				return err
			}
			return s.Close()
		})
		test(t, func() store.Store {
			s, err := postgres.Open(t.Context(), database, postgres.Config{})
			must(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
}

// refund is the state of a graph that asks for an approval.
type refund struct {
	Amount int    `json:"amount"`
	Done   string `json:"done,omitempty"`
}

// replicas are two executors on one store, which send through the same channels.
type replicas struct {
	all []*executor.Executor
}

func openReplicas(t *testing.T, open func() store.Store, route []desk.Step, through ...channel.Channel) replicas {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	g := graph.New[refund]("refund")
	g.Node("pay", func(ctx context.Context, s refund) (refund, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[int]{Name: "refund", Args: s.Amount})
		if err != nil {
			return s, err
		}
		s.Done, err = fermata.Effect(ctx, yes, func(context.Context, int, string) (string, error) { return "paid", nil })
		return s, err
	})
	g.Edge(graph.Start, "pay")
	g.Edge("pay", graph.End)
	flow, err := g.Compile()
	must(err)
	var r replicas
	for range 2 {
		p, err := inproc.New(inproc.Flow(flow, inproc.FlowConfig[refund]{}))
		must(err)
		sealer, err := seal.New(seal.Key{1})
		must(err)
		e, err := executor.New(executor.Config{
			Store: open(), Sealer: sealer, Providers: []provider.Provider{p}, Poll: 5 * time.Millisecond, Wait: time.Minute, Log: slog.New(slog.DiscardHandler),
			Desk: executor.DeskConfig{Channels: through, BaseURL: "https://fermata.example", Environment: "prod", Routes: map[string]desk.Route{
				"default": {Name: "default", DeadlineFrom: desk.DeadlineFromCreated, Steps: append(route, desk.Step{At: timespan.Duration(time.Hour), Expire: "stale"})},
			}},
		})
		must(err)
		t.Cleanup(func() { must(e.Stop(context.Background())) })
		r.all = append(r.all, e)
	}
	for _, e := range r.all {
		e.StartWorkers()
	}
	return r
}

// ask starts a run and returns its request.
func (r replicas) ask(t *testing.T, key string) string {
	t.Helper()
	outcome, err := r.all[0].Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, Graph: "inproc:refund", Input: json.RawMessage(`{"amount":120}`)})
	if err != nil {
		t.Fatal(err)
	}
	waits, ok := outcome.(fermata.NeedsInput)
	if !ok {
		t.Fatalf("outcome %#v", outcome)
	}
	return waits.Interrupts[0].ID
}

// approve decides on the other replica.
func (r replicas) approve(t *testing.T, key, id string) {
	t.Helper()
	outcome, err := r.all[1].Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: key, ResumeID: "1", Actor: "ann", Targets: map[string]executor.Answer{id: {Value: json.RawMessage(`{"verb":"approve"}`)}}})
	if _, ok := outcome.(fermata.Completed); !ok || err != nil {
		t.Fatalf("outcome %#v, %v", outcome, err)
	}
}

func (r replicas) request(t *testing.T, id string) desk.Request {
	t.Helper()
	request, err := r.all[1].RequestDocument(t.Context(), "acme", id)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not after a minute: %s", what)
		}
	}
}

// targetOf returns the target of a route for a channel.
func targetOf(s channeltest.Subject) string {
	if s.Channel.Kind() == channel.AnyKind {
		return s.To
	}
	return s.Channel.Kind() + ":" + s.To
}

// Two replicas send a request once and its end once. Everything that is open at the peer closes.
func TestReplicas_SendOnceAndCloseEachCopy(t *testing.T) {
	onStores(t, func(t *testing.T, open func() store.Store) {
		var subjects []channeltest.Subject
		var through []channel.Channel
		var step desk.Step
		for _, name := range []string{"slack", "email", "pagerduty", "alertmanager", "teams", "notify"} {
			s := channels[name](t)
			subjects, through = append(subjects, s), append(through, s.Channel)
			step.Notify = append(step.Notify, targetOf(s))
		}
		r := openReplicas(t, open, []desk.Step{step}, through...)
		id := r.ask(t, "refund-1")
		until(t, "each channel has a copy", func() bool {
			return !slices.ContainsFunc(subjects, func(s channeltest.Subject) bool { return len(s.Copies()) == 0 })
		})
		until(t, "the request knows the deliveries", func() bool { return len(r.request(t, id).Deliveries) == len(subjects) })
		r.approve(t, "refund-1", id)
		for _, s := range subjects {
			want := 1
			if s.NoReplace {
				want = 2
			}
			until(t, s.Channel.Kind()+" shows the end", func() bool {
				all := s.Copies()
				return s.NoState || len(all) >= want && all[len(all)-1].Ended
			})
			if all := s.Copies(); len(all) != want {
				t.Errorf("%s has %d copies; want %d: %+v", s.Channel.Kind(), len(all), want, all)
			}
		}
	})
}

// A route continues when a channel fails for good or for a while, and the request names the target
// that was not reached.
func TestReplicas_RouteMovesOnWhenAChannelFails(t *testing.T) {
	for _, kind := range []channeltest.FailureKind{channeltest.Permanent, channeltest.Temporary} {
		t.Run(string(kind), func(t *testing.T) {
			onStores(t, func(t *testing.T, open func() store.Store) {
				down, page := openTeams(t), openPagerDuty(t)
				down.Fail(channeltest.Failure{Kind: kind})
				r := openReplicas(t, open, []desk.Step{
					{Notify: []string{targetOf(down)}}, {At: timespan.Duration(50 * time.Millisecond), Page: []string{targetOf(page)}},
				}, down.Channel, page.Channel)
				id := r.ask(t, "refund-1")
				until(t, "the pager is called", func() bool { return len(page.Copies()) == 1 })
				until(t, "the request names the target", func() bool {
					return slices.ContainsFunc(r.request(t, id).Log, func(e desk.Event) bool {
						return e.Type == desk.EventNoticeFailed && strings.Contains(e.Text, "could not reach "+targetOf(down))
					})
				})
				if kind == channeltest.Temporary {
					until(t, "the message is sent again", func() bool { return len(down.Copies()) == 1 })
				}
				r.approve(t, "refund-1", id)
				until(t, "the page is resolved", func() bool { return page.Copies()[0].Ended })
			})
		})
	}
}
