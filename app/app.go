// Package app is the program fermata, to be built with graphs of your own:
//
//	func main() { os.Exit(app.Main(app.Graphs(inproc.Flow(refunds, inproc.FlowConfig[Refund]{})))) }
//
// Without any it is the command in cmd/fermata.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// The exit codes.
const (
	exitOK    = 0
	exitError = 1 // it did not work; what went wrong is on standard error
	exitUsage = 2 // the command line is wrong
)

// Option changes what the program can do.
type Option func(*program) error

// Graphs adds graphs and agents that can be run by name, as "inproc:name".
func Graphs(graphs ...inproc.Graph) Option {
	return func(p *program) error {
		p.graphs = append(p.graphs, graphs...)
		return nil
	}
}

// Provider adds a provider beside our own engine.
func Provider(other provider.Provider) Option {
	return func(p *program) error {
		p.others = append(p.others, other)
		return nil
	}
}

// program is what the commands share.
type program struct {
	graphs []inproc.Graph
	others []provider.Provider

	out, err io.Writer
}

// commands is the command line.
type commands struct {
	Demo  demoCommand  `cmd:"" help:"Serve sample graphs on a SQLite file; nothing else to install."`
	Serve serveCommand `cmd:"" help:"Serve."`

	Run     runCommand     `cmd:"" group:"people" help:"Start a run."`
	Runs    runsCommand    `cmd:"" group:"people" help:"List runs."`
	Watch   watchCommand   `cmd:"" group:"people" help:"Print what happens to a run until it is over."`
	Cancel  cancelCommand  `cmd:"" group:"people" help:"End a run."`
	Inbox   inboxCommand   `cmd:"" group:"people" help:"List what people are asked."`
	Show    showCommand    `cmd:"" group:"people" help:"Show a request."`
	Approve approveCommand `cmd:"" group:"people" help:"Say yes to a request."`
	Reject  rejectCommand  `cmd:"" group:"people" help:"Say no to a request."`
	Answer  answerCommand  `cmd:"" group:"people" help:"Answer a request with JSON."`

	Keys  keysCommands  `cmd:"" group:"operators" help:"What programs sign in with."`
	Key   keyCommands   `cmd:"" group:"operators" help:"The key with which everything in the store is sealed."`
	Store storeCommands `cmd:"" group:"operators" help:"What is kept: how much, for how long, of whom."`

	Version versionCommand `cmd:"" help:"Print the version."`
}

// Main runs the program with the arguments of this process, and returns its exit code.
func Main(options ...Option) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr, options...)
}

func run(ctx context.Context, args []string, out, errOut io.Writer, options ...Option) int {
	p := &program{out: out, err: errOut}
	for _, option := range options {
		if err := option(p); err != nil {
			fmt.Fprintln(errOut, "fermata:", err)
			return exitError
		}
	}
	var c commands
	left := -1
	parser, err := kong.New(&c, kong.Name("fermata"), kong.Description("Lets agents and workflows stop for a person, and go on exactly where they stopped."),
		kong.Writers(out, errOut), kong.Exit(func(code int) { left = code }), kong.ExplicitGroups([]kong.Group{{Key: "people", Title: "For people"}, {Key: "operators", Title: "For operators"}}), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		fmt.Fprintln(errOut, "fermata:", err)
		return exitError
	}
	parsed, err := parser.Parse(args)
	if left >= 0 { // it showed a help text
		return left
	}
	if err != nil {
		fmt.Fprintln(errOut, "fermata:", err)
		return exitUsage
	}
	if err := parsed.Run(); err != nil {
		if errors.Is(err, context.Canceled) {
			err = errors.New("stopped; it can be called again")
		}
		fmt.Fprintln(errOut, "fermata:", err)
		return exitError
	}
	return exitOK
}
