// Package console is the terminal that the agent examples share. An example defines its agent; this
// package provides flags, the model, the store, the display of events, questions to the person, and
// resuming after a crash.
//
//	func main() { console.Main(console.Example{Name: "ticket", About: "…", Task: "Book me …", Build: build}) }
//
//	func build(kit *console.Kit) (agent.Agent, error) {
//		return agent.NewChat(agent.Chat{Name: "clerk", Model: kit.Model(script.Say("Hello.")), …})
//	}
//
// A question shows the asking agent, the arguments, and the possible answers. Answers are read line
// by line, from a person or from a pipe; a line that begins with "{" is an answer as JSON, for any
// kind. [FormFor] adds a form for the example's own kind.
package console

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
	"slices"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/script"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/sqlite"
)

// Exit codes.
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitInterrupted = 130 // as in a shell
)

// Example is an agent and its terminal settings.
type Example struct {
	// Name is the directory below examples/. The first run is also named after it.
	Name string
	// About describes the example in one line.
	About string
	// Task is the default task of the agent; -task overrides it.
	Task string
	// Build creates the agent.
	Build func(kit *Kit) (agent.Agent, error)
	// Forms are for kinds that only this example has.
	Forms []Form
}

// Kit provides what an example needs to build its agent.
type Kit struct {
	// Data is the directory for the example's own data.
	Data   string
	model  func(lines []script.Line) agent.Model
	atExit []func() error
}

// Model returns the model that the user chose, or one with these scripted lines.
func (k *Kit) Model(lines ...script.Line) agent.Model { return k.model(lines) }

// AtExit registers a function that is called when the program ends normally, to close resources.
func (k *Kit) AtExit(fn func() error) { k.atExit = append(k.atExit, fn) }

func (k *Kit) close() error {
	var errs []error
	for _, fn := range slices.Backward(k.atExit) {
		errs = append(errs, fn())
	}
	return errors.Join(errs...)
}

// TestHooks lets tests replace parts of a program. The zero value changes nothing.
type TestHooks struct {
	Store func(store.Checkpoints) store.Checkpoints
	Model func(agent.Model) agent.Model
}

type config struct {
	data, run, task string
	model, url      string
	by              string
	calls           int
	taskGiven       bool
}

// Main runs the program.
func Main(e Example) { os.Exit(Run(e, os.Args[1:], os.Stdin, os.Stdout, TestHooks{})) }

// Run is [Main] with explicit arguments. It returns the exit code.
func Run(e Example, args []string, in io.Reader, out io.Writer, seams TestHooks) int {
	c, err := parse(e, args)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return ExitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // the second Ctrl-C ends the program immediately
	err = work(ctx, e, c, newScreen(in, out), seams)
	switch {
	case err == nil, errors.Is(err, errInputEnded): // then the run waits
		return 0
	case ctx.Err() != nil:
		return ExitInterrupted
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", e.Name, err)
	if errors.As(err, new(*modelFlagError)) {
		return ExitUsage
	}
	return ExitFailed
}

func parse(e Example, args []string) (*config, error) {
	c := new(config)
	flags := flag.NewFlagSet(e.Name, flag.ContinueOnError)
	flags.StringVar(&c.data, "data", ".demo", "`directory` for all data")
	flags.StringVar(&c.run, "run", e.Name+"-1", "run `name`: an existing run continues, a new one starts")
	flags.StringVar(&c.task, "task", e.Task, "task of the agent, if the run starts")
	flags.StringVar(&c.model, "model", "", "script, anthropic[/NAME] or openai[/NAME]; the default depends on the API key in the environment, else script")
	flags.StringVar(&c.url, "url", "", "base `URL` of the model service, for your own server; requires -model")
	flags.StringVar(&c.by, "by", os.Getenv("USER"), "who answers")
	flags.IntVar(&c.calls, "calls", 40, "ask before the run exceeds this number of model calls")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintf(flags.Output(), "unexpected %q: set the task with -task\n", flags.Arg(0))
		return nil, errors.New("unexpected argument")
	}
	flags.Visit(func(f *flag.Flag) { c.taskGiven = c.taskGiven || f.Name == "task" })
	return c, nil
}

// work advances one run until it ends or the person leaves.
func work(ctx context.Context, e Example, c *config, s *screen, seams TestHooks) (err error) {
	runner, kit, err := open(e, c, seams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kit.close()) }()
	d := &session{
		runner: runner, screen: s, config: c, example: e,
		forms:    formsOf(e.Forms),
		lockFile: filepath.Join(c.data, e.Name+"-"+url.PathEscape(c.run)+".lock"),
	}
	s.begin(e, c)
	return d.work(ctx)
}

// open creates the runner and opens its store.
func open(e Example, c *config, seams TestHooks) (*agent.Runner, *Kit, error) {
	model, err := chooseModel(c, os.Getenv)
	if err != nil {
		return nil, nil, err
	}
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return nil, nil, err
	}
	kit := &Kit{Data: c.data, model: func(lines []script.Line) agent.Model {
		if seams.Model != nil {
			return seams.Model(model(lines))
		}
		return model(lines)
	}}
	runner, err := kit.runner(e, c, seams)
	if err != nil {
		return nil, nil, errors.Join(err, kit.close())
	}
	return runner, kit, nil
}

func (k *Kit) runner(e Example, c *config, seams TestHooks) (*agent.Runner, error) {
	built, err := e.Build(k)
	if err != nil {
		return nil, err
	}
	kept, err := sqlite.Open(filepath.Join(c.data, e.Name+".db"))
	if err != nil {
		return nil, err
	}
	k.AtExit(kept.Close)
	var checkpoints store.Checkpoints = kept
	if seams.Store != nil {
		checkpoints = seams.Store(kept)
	}
	return agent.NewRunner(agent.RunnerConfig{
		Agent: built, Store: checkpoints, EnableStreaming: true, Limits: agent.Limits{ModelCalls: c.calls},
	})
}

// Inspect reads a run from an example's data directory. It must not be called while this process
// executes the run.
func Inspect(ctx context.Context, e Example, data, run string) (saved *agent.Snapshot, err error) {
	runner, kit, err := open(e, &config{data: data, model: modelScript}, TestHooks{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, kit.close()) }()
	return runner.Inspect(ctx, run)
}
