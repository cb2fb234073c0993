// Dataops plans an operation on a data warehouse and holds before irreversible work: the graph
// stops before a node, and a person grants, denies or returns the plan, perhaps with a narrower
// one. The runtime writes into the state who granted it; the answer cannot change that. No process
// runs while it waits: each of these commands is a separate process.
//
//	go run ./examples/dataops -request "forget customer 42"          # plans, and stops
//	go run ./examples/dataops -answer grant -by ann                  # continues
//	go run ./examples/dataops -answer grant -by ann -where customer=42,archived=yes
//	go run ./examples/dataops -answer deny -by ann -reason "they have an open order"
//	go run ./examples/dataops -answer return -by ann -reason "keep what is not archived"
//
// The last one returns the plan for redesign, which is neither a grant nor a denial: the planner
// gets the reason and makes a more careful plan. On a server, people approve, reject and return the
// hold in the inbox, in Slack or with the command "fermata": see "fermata demo --slack".
//
// Other requests are "drop column phone" and "export orders to us-east".
//
// A hold is the simplest gate: it needs no code in the node, but the node must check the approval,
// and a process that dies between the deletion and the next save deletes again. Where that matters,
// let the node ask with fermata.Approve, which binds the approval to the exact arguments, and act
// with fermata.Effect, which records the intent first; examples/contentreview publishes that way.
// Package gate has approvals that route the run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/examples/dataops/ops"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/sqlite"
)

type config struct {
	data, run, request string
	answer, by         string
	where, reason      string
}

func main() {
	var c config
	flag.StringVar(&c.data, "data", ".demo", "`directory` for the run")
	flag.StringVar(&c.run, "run", "dataops-1", "run `name`")
	flag.StringVar(&c.request, "request", "forget customer 42", "request, if the run is new")
	flag.StringVar(&c.answer, "answer", "", "grant, deny or return the waiting operation")
	flag.StringVar(&c.by, "by", "", "who answers")
	flag.StringVar(&c.reason, "reason", "", "why it is denied or returned")
	flag.StringVar(&c.where, "where", "", "use this condition instead, for example customer=42,archived=yes")
	flag.Parse()
	if err := work(context.Background(), c, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "dataops:", err)
		os.Exit(1)
	}
}

// work advances the run to its next hold, or to its end.
func work(ctx context.Context, c config, out io.Writer) error {
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return err
	}
	file, err := sqlite.Open(filepath.Join(c.data, "dataops.db"))
	if err != nil {
		return err
	}
	defer file.Close()
	warehouse := ops.NewWarehouse() // each process has its own; it simulates a remote one
	flow, err := ops.New(warehouse)
	if err != nil {
		return err
	}
	if err := move(ctx, flow, c, graph.WithStore(file)); err != nil {
		return err
	}
	saved, err := flow.Inspect(ctx, c.run, graph.WithStore(file))
	if err != nil {
		return err
	}
	for _, statement := range warehouse.Statements() {
		fmt.Fprintln(out, "ran:", statement)
	}
	show(out, saved)
	return nil
}

var errNothingHeld = errors.New("there is nothing to answer: the run does not wait")

func move(ctx context.Context, flow *graph.Flow[ops.State], c config, kept graph.Option) error {
	saved, err := flow.Inspect(ctx, c.run, kept)
	switch {
	case err == nil && saved.Status == graph.StatusWaiting && c.answer != "":
		err = answer(ctx, flow, c, saved.Interrupts[0], kept)
	case c.answer != "" && (err == nil || errors.Is(err, graph.ErrUnknownRun)):
		err = errNothingHeld
	case errors.Is(err, graph.ErrUnknownRun):
		_, err = flow.Run(ctx, ops.State{Request: c.request}, kept, graph.WithRun(c.run))
	case err == nil && saved.Status != graph.StatusWaiting && saved.Status != graph.StatusFinished:
		// The run was interrupted, perhaps because its process died. Only one process at a time
		// works here, so taking over is safe.
		_, err = flow.Resume(ctx, c.run, kept, graph.TakeOver())
	}
	if _, waits := fermata.ExtractInterruptInfo(err); waits {
		return nil
	}
	return err
}

// answer answers the hold: nil grants the plan as it is, a state the edited plan.
func answer(ctx context.Context, flow *graph.Flow[ops.State], c config, held *fermata.InterruptCtx, kept graph.Option) error {
	if c.by == "" {
		return errors.New("set the approver with -by")
	}
	var reply any
	switch c.answer {
	case "grant":
		if c.where != "" {
			state, err := fermata.InfoAs[ops.State](held)
			if err != nil {
				return err
			}
			if state.Where, err = parseWhere(c.where); err != nil {
				return err
			}
			reply = state
		}
	case "deny", "return":
		if c.reason == "" {
			return errors.New("say why with -reason")
		}
		verb := map[string]fermata.Verb{"deny": fermata.VerbReject, "return": fermata.VerbReturn}[c.answer]
		reply = fermata.Refusal{Decision: fermata.Decision{Verb: verb, Reason: c.reason}}
	default:
		return fmt.Errorf("invalid answer %q: use grant, deny or return", c.answer)
	}
	by := fermata.Attestation{By: c.by, At: time.Now()} // on a server, the server knows who answers
	_, err := flow.Resume(ctx, c.run, kept, graph.Answer(held.ID, fermata.AttestedAnswer{Answer: reply, Attestation: by}))
	return err
}

func parseWhere(text string) (ops.Where, error) {
	where := ops.Where{}
	for term := range strings.SplitSeq(text, ",") {
		column, value, ok := strings.Cut(term, "=")
		if !ok || column == "" || value == "" {
			return nil, fmt.Errorf("invalid condition %q: use column=value", term)
		}
		where[column] = value
	}
	return where, nil
}

func show(out io.Writer, saved *graph.Snapshot[ops.State]) {
	s := saved.State
	if saved.Status == graph.StatusFinished {
		fmt.Fprintf(out, "Run %s is finished (start another one with -run NAME):\n%s\n", saved.Run, s.Report)
		return
	}
	fmt.Fprintf(out, "⏸ Run %s holds before %s\n", saved.Run, s.Operation)
	fmt.Fprintf(out, "  request  %s\n", s.Request)
	for _, line := range [][2]string{{"where", s.Where.String()}, {"column", s.Column}, {"region", s.Region}} {
		if line[1] != "" {
			fmt.Fprintf(out, "  %-8s %s\n", line[0], line[1])
		}
	}
	for _, line := range s.Log {
		fmt.Fprintf(out, "  before   %s\n", line)
	}
	fmt.Fprintln(out, "Answer with: -answer grant|deny|return -by NAME [-reason TEXT] [-where column=value,…]")
}
