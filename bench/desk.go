package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The scenarios desk/… measure the cost of rules, routes and several approvers: the same graph,
// with an action that a person approves and that is then executed once, on three executors in
// alternation, each with its own database. All of them write documents and an audit log.
const (
	sideNoRules = "alone" // no rules and no routes: any one person approves
	// a hundred rules; one requires a person of a group; a route of four steps
	sideRules  = "rules"
	sideQuorum = "quorum" // the same, and a person of another group must approve
)

var deskSides = []string{sideNoRules, sideRules, sideQuorum}

func deskScenarios() (list []holdScenario) {
	for _, ground := range []string{onSQLite, onPostgres} {
		for _, callers := range []int{1, 4, 16} {
			list = append(list, holdScenario{kind: "desk", database: ground, callers: callers})
		}
	}
	return list
}

// deskReport is the result of the scenarios.
type deskReport struct{ holdReport }

// measureDesk measures scenarios, one database after the other.
func (p holdPlan) measureDesk(ctx context.Context, list []holdScenario, progress io.Writer) (found deskReport, err error) {
	for _, on := range []string{onSQLite, onPostgres} {
		for _, s := range list {
			if s.database == on {
				if err := p.deskOn(ctx, on, list, progress, &found); err != nil {
					return found, fmt.Errorf("desk/%s: %w", on, err)
				}
				break
			}
		}
	}
	return found, nil
}

func (p holdPlan) deskOn(ctx context.Context, name string, list []holdScenario, progress io.Writer, found *deskReport) (err error) {
	db, err := newDatabase(ctx, name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	version, err := db.version(ctx)
	if err != nil {
		return err
	}
	found.Databases, found.Rounds = append(found.Databases, version), p.rounds
	f := &comparison{plan: p, database: db, progress: progress, names: deskSides, targets: make(map[string]loadTarget)}
	defer func() { err = errors.Join(err, f.close()) }()
	for _, side := range deskSides {
		d, err := newDeskRunner(ctx, db, side)
		if err != nil {
			return fmt.Errorf("%s: %w", side, err)
		}
		f.targets[side] = &callerPool{runKeeper: d}
		if err := f.warm(ctx, side); err != nil {
			return err
		}
	}
	for _, s := range list {
		if s.database != name {
			continue
		}
		rows, err := f.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%d callers: %w", s.callers, err)
		}
		found.Rows = append(found.Rows, rows...)
	}
	return nil
}

// payment is the state of the graph, and payTool its action.
type payment struct {
	Amount  int    `json:"amount"`
	Receipt string `json:"receipt,omitempty"`
}

const (
	payTool   = "pay"
	payGraph  = inproc.Name + ":pay"
	payInput  = `{"amount":40}`
	payOutput = `{"amount":40,"receipt":"paid 40"}`
)

func payProvider() (*inproc.Provider, error) {
	g := graph.New[payment]("pay")
	g.Node("pay", func(ctx context.Context, p payment) (payment, error) {
		yes, err := fermata.Approve(ctx, fermata.Action[int]{Name: payTool, Args: p.Amount})
		if err != nil {
			return p, err
		}
		p.Receipt, err = fermata.Effect(ctx, yes, func(_ context.Context, amount int, _ string) (string, error) {
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

// otherRules is the number of rules for other tools.
const otherRules = 99

// payRules requires approval by each of some groups.
func payRules(groups ...string) (policy.Source, error) {
	var text strings.Builder
	text.WriteString("default: allow\nrules:\n")
	for i := range otherRules {
		fmt.Fprintf(&text, "- {id: r%d, when: 'req.tool == \"tool.%d\" && args[?\"amount\"].orValue(0) > 10', then: deny}\n", i, i)
	}
	var from []string
	for _, g := range groups {
		from = append(from, fmt.Sprintf(`{from: ["group:%s"]}`, g))
	}
	fmt.Fprintf(&text, "- id: pay\n  when: req.tool == %q\n  then: ask\n  ask:\n    groups: [%s]\n    separation_of_duties: [requester]\n    deadline: 24h\n", payTool, strings.Join(from, ", "))
	set, err := policy.Load("policy.yaml", []byte(text.String()), policy.Options{})
	return fixedRules{set}, err
}

// fixedRules never change.
type fixedRules struct{ *policy.Set }

func (r fixedRules) Current() *policy.Set { return r.Set }

// deskRunner is a runKeeper: an executor and its approvers.
type deskRunner struct {
	*executorSide
	people []string
	asked  sync.Map // the open interrupt by the key of a run: a decision on an action names it
}

func newDeskRunner(ctx context.Context, db database, side string) (*deskRunner, error) {
	groups := map[string][]string{sideNoRules: nil, sideRules: {"finance"}, sideQuorum: {"finance", "owners"}}[side]
	config := executor.Config{Wait: time.Minute, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	d := &deskRunner{people: []string{benchActor}}
	if groups != nil {
		rules, err := payRules(groups...)
		if err != nil {
			return nil, err
		}
		d.people = []string{"fay", "olga"}[:len(groups)]
		config.Desk = executor.DeskConfig{
			Policy: rules, Environment: "prod", Routes: map[string]desk.Route{"default": desk.DefaultRoute()},
			Directory: desk.StaticDirectory{"group:finance": {"fay", "fred"}, "group:owners": {"olga", "otto"}},
			Channels:  []channel.Channel{channel.Notify(func(context.Context, string, desk.Notice) error { return nil })},
		}
	}
	p, err := payProvider()
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer()
	if err != nil {
		return nil, err
	}
	place, err := db.create()
	if err != nil {
		return nil, err
	}
	st, err := db.open(ctx, place)
	if err != nil {
		return nil, err
	}
	config.Store, config.Providers, config.Sealer = st, []provider.Provider{p}, sealer
	e, err := executor.New(config)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	e.StartWorkers()
	d.executorSide = &executorSide{executor: e, store: st, closing: st.Close}
	return d, nil
}

func (d *deskRunner) start(ctx context.Context, key string) error {
	outcome, err := d.executor.Run(ctx, executor.RunRequest{Account: benchAccount, StateKey: key, Graph: payGraph, Input: json.RawMessage(payInput), Actor: "rita"})
	if err != nil {
		return err
	}
	waiting, ok := outcome.(fermata.NeedsInput)
	if !ok || len(waiting.Interrupts) != 1 {
		return fmt.Errorf("the run should wait for one answer, but its outcome is %T", outcome)
	}
	d.asked.Store(key, waiting.Interrupts[0].ID)
	return nil
}

// decide lets each of the people approve. The action is executed with the last vote, and not
// before.
func (d *deskRunner) decide(ctx context.Context, key string) error {
	id, ok := d.asked.LoadAndDelete(key)
	if !ok {
		return errors.New("there is no open request")
	}
	yes := map[string]executor.Answer{id.(string): {Value: json.RawMessage(`{"verb":"approve"}`)}}
	for n, who := range d.people {
		outcome, err := d.executor.Run(ctx, executor.RunRequest{
			Account: benchAccount, StateKey: key, ResumeID: key + "/" + who, Actor: who, Via: "bench", Targets: yes,
		})
		if err != nil {
			return err
		}
		if done, ok := outcome.(fermata.Completed); ok != (n == len(d.people)-1) || ok && string(done.Output) != payOutput {
			return fmt.Errorf("after %d votes the outcome is %T", n+1, outcome)
		}
	}
	return nil
}
