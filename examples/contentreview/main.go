// Contentreview drafts a text, stops for your review, and continues with your decision. It shows a
// question with a typed answer ([Review]), a bounded loop, an action on the outside world that
// needs approval, and a run that survives crashes of its process.
//
//	go run ./examples/contentreview                  # or: make demo-terminal
//	go run ./examples/contentreview -topic "tea" -run tea
//	go run ./examples/contentreview -draw            # the graph as Mermaid, with the waiting node
//	go run ./examples/contentreview -json            # for programs: an answer per line in, an outcome per line out
//
// All data is in the directory .demo. Leave at the question with Ctrl-C, or kill the process: when
// started again it shows the same question. The graph is in graph.go and does not depend on the
// terminal.
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
	exitInterrupted = 130 // as in a shell
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
	flags.StringVar(&c.data, "data", ".demo", "`directory` for all data")
	flags.StringVar(&c.topic, "topic", "agents that wait for people", "topic of the text, if a new run starts")
	flags.StringVar(&c.run, "run", "", "run `name`; the default is the waiting run, or a new one")
	flags.BoolVar(&c.json, "json", false, "use JSON lines for input and output")
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
	case errors.Is(err, io.EOF): // there is no one to answer; the run waits
		return 0
	case ctx.Err() != nil:
		return exitInterrupted
	case err != nil:
		fmt.Fprintln(os.Stderr, "contentreview:", err)
		return exitFailed
	}
	return 0
}

// review advances one run until it ends or the person leaves.
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

// reviewer asks a person or a program for answers.
type reviewer interface {
	// Ask shows the question and returns the answer, or io.EOF if the input has ended.
	Ask(ctx context.Context, saved *graph.Snapshot[State]) (answer any, err error)
	// Refused shows why an answer was rejected.
	Refused(err error)
	// Done shows the end of the run, Left how to continue one that waits.
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

// pick returns the first unfinished run, or the name of a new one.
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

// work inspects the run and takes the next step, until it is finished. It keeps no state between
// two iterations: another process could do the next one.
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
			// The run stopped, failed, or is marked as running although its process is gone. In
			// this demo one process executes a run, so the previous one is dead and taking over is
			// safe. A server would need to check that.
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
		d.reviewer.Refused(err) // the next iteration asks again, if there is still an open question
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
