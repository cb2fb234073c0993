// Contentreview drafts a text, stops for your review, and goes on with what you decide. It shows a question with a typed
// answer ([Review]), a loop that ends, an action on the outside world that waits for a yes, and a run that survives whatever
// happens to its process.
//
//	go run ./examples/contentreview                  # or: make demo-terminal
//	go run ./examples/contentreview -topic "tea" -run tea
//	go run ./examples/contentreview -draw            # the graph as Mermaid, with the node that waits
//	go run ./examples/contentreview -json            # for programs: an answer per line in, an outcome per line out
//
// Everything is kept in the directory .demo. Leave at the question with Ctrl-C, kill the process, pull the plug: started
// again it is at the same question. The graph is in graph.go, and knows nothing of the terminal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/graph"
	"github.com/fermata-go/fermata/store/sqlite"
)

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell says it
)

type config struct {
	data, topic, run string
	json, draw       bool
	topicGiven       bool
}

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	var c config
	flags := flag.NewFlagSet("contentreview", flag.ContinueOnError)
	flags.StringVar(&c.data, "data", ".demo", "keep everything in this `directory`")
	flags.StringVar(&c.topic, "topic", "agents that wait for people", "write about this, if a new run begins")
	flags.StringVar(&c.run, "run", "", "the run's `name`; without it the one that waits, or a new one")
	flags.BoolVar(&c.json, "json", false, "speak JSON, a line at a time")
	flags.BoolVar(&c.draw, "draw", false, "print the graph as Mermaid and exit")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return exitUsage
	}
	flags.Visit(func(f *flag.Flag) { c.topicGiven = c.topicGiven || f.Name == "topic" })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := review(ctx, c)
	switch {
	case errors.Is(err, io.EOF): // nobody is there to answer; the run waits
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "contentreview:", err)
		return exitFailed
	}
	return 0
}

// review takes one run from where it is to its end, or to where the person leaves.
func review(ctx context.Context, c config) error {
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return err
	}
	kept, err := sqlite.Open(filepath.Join(c.data, "contentreview.db"))
	if err != nil {
		return err
	}
	defer kept.Close()
	flow, err := New()
	if err != nil {
		return err
	}
	d := &session{flow: flow, options: []graph.Option{graph.WithStore(kept), graph.WithPolicy(Reviewed)}}
	if d.run = c.run; d.run == "" {
		if d.run, err = d.pick(ctx); err != nil {
			return err
		}
	}
	if c.draw {
		return d.draw(ctx, os.Stdout)
	}
	file, err := filepath.Abs(filepath.Join(c.data, "published", url.PathEscape(d.run)+".md"))
	if err != nil {
		return err
	}
	d.input = State{Topic: c.topic, File: file}
	if c.json {
		d.reviewer = &jsonLines{in: lines(os.Stdin), out: os.Stdout}
	} else {
		d.reviewer = newTerminal(os.Stdin, os.Stdout, c)
	}
	err = d.work(ctx)
	if ctx.Err() != nil || errors.Is(err, io.EOF) {
		d.reviewer.Left(d.run)
	}
	return err
}

// reviewer is whoever answers, and how.
type reviewer interface {
	// Ask shows the question and returns the answer, or io.EOF if nobody answers any more.
	Ask(ctx context.Context, saved *graph.Snapshot[State]) (answer any, err error)
	// Refused says why an answer was not taken.
	Refused(err error)
	// Done shows the end of the run, Left how to go on with one that waits.
	Done(saved *graph.Snapshot[State])
	Left(run string)
}

type session struct {
	flow     *graph.Flow[State]
	options  []graph.Option
	run      string
	input    State
	reviewer reviewer
}

// pick returns the first run that is not finished, or the name of a new one.
func (d *session) pick(ctx context.Context) (string, error) {
	for n := 1; ; n++ {
		name := fmt.Sprintf("review-%d", n)
		saved, err := d.flow.Inspect(ctx, name, d.options...)
		switch {
		case errors.Is(err, graph.ErrUnknownRun):
			return name, nil
		case err != nil:
			return "", err
		case saved.Status != graph.StatusFinished:
			return name, nil
		}
	}
}

// work looks where the run stands and takes the next step, until it is finished. Nothing is remembered between two rounds:
// another process could do every other one.
func (d *session) work(ctx context.Context) error {
	for {
		saved, err := d.flow.Inspect(ctx, d.run, d.options...)
		switch {
		case errors.Is(err, graph.ErrUnknownRun):
			_, err = d.flow.Run(ctx, d.input, append(d.options, graph.WithRun(d.run))...)
		case err != nil:
		case saved.Status == graph.StatusFinished:
			d.reviewer.Done(saved)
			return nil
		case saved.Status == graph.StatusWaiting:
			err = d.ask(ctx, saved)
		default:
			// The run stopped, failed, or is marked as running although its process is gone. In this demo one process works
			// on a run, so whoever had it is dead, and it is safe to take it over. A server would need to know that.
			_, err = d.flow.Resume(ctx, d.run, append(d.options, graph.TakeOver())...)
		}
		if _, waits := fermata.ExtractInterruptInfo(err); err != nil && !waits {
			return err
		}
	}
}

func (d *session) ask(ctx context.Context, saved *graph.Snapshot[State]) error {
	answer, err := d.reviewer.Ask(ctx, saved)
	if err != nil {
		return err
	}
	_, err = d.flow.Resume(ctx, d.run, append(d.options, graph.Answer(saved.Interrupts[0].ID, answer))...)
	_, bad := errors.AsType[*fermata.AnswerError](err)
	if bad || errors.Is(err, graph.ErrAlreadyAnswered) || errors.Is(err, graph.ErrFinished) {
		d.reviewer.Refused(err) // and the next round asks again, if there is still something to ask
		return nil
	}
	return err
}

func (d *session) draw(ctx context.Context, out io.Writer) error {
	saved, err := d.flow.Inspect(ctx, d.run, d.options...)
	if errors.Is(err, graph.ErrUnknownRun) {
		saved, err = new(graph.Snapshot[State]), nil
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, d.flow.Draw(saved.Interrupts...).Mermaid())
	return err
}
