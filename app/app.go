// Package app is the program fermata, to be built with graphs of your own:
//
//	func main() { os.Exit(app.Main(app.Graphs(inproc.Flow(refunds, inproc.FlowConfig[Refund]{})))) }
//
// Without any it is the command in cmd/fermata.
package app

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Option changes what the program can do.
type Option func(*program)

// Graphs adds graphs and agents that can be run by name, as "inproc:name".
func Graphs(graphs ...inproc.Graph) Option {
	return func(p *program) { p.graphs = append(p.graphs, graphs...) }
}

// Provider adds a provider beside our own engine.
func Provider(other provider.Provider) Option {
	return func(p *program) { p.others = append(p.others, other) }
}

// Notify has a function told what people have to be told: that they are asked something, reminded of it, paged. What it fails to tell comes again;
// what it has told may come once more, under the same key. See [executor.DeskConfig].
func Notify(tell func(ctx context.Context, account string, notice desk.Notice) error) Option {
	return func(p *program) { p.notify = tell }
}

// program is what the commands share.
type program struct {
	graphs []inproc.Graph
	others []provider.Provider
	notify func(context.Context, string, desk.Notice) error

	out, err io.Writer
	json     bool // programs read what it prints
	parser   *kong.Kong
	command  string // which it is, as keys create; "" if it is none
	screen   bool   // the whole terminal is its own
}

// commands is the command line.
type commands struct {
	JSON bool `name:"json" help:"Print JSON, for programs: data on standard output, errors on standard error."`

	Demo  demoCommand  `cmd:"" group:"server" help:"Serve sample graphs on a SQLite file; nothing else to install."`
	Serve serveCommand `cmd:"" group:"server" help:"Serve."`

	Run     runCommand     `cmd:"" group:"people" help:"Start a run."`
	Runs    runsCommand    `cmd:"" group:"people" help:"List runs."`
	Graphs  graphsCommand  `cmd:"" group:"people" help:"List what can be run, or draw it, and where a run of it waits."`
	Watch   watchCommand   `cmd:"" group:"people" help:"Print what happens to a run until it is over."`
	Cancel  cancelCommand  `cmd:"" group:"people" help:"End a run."`
	Inbox   inboxCommand   `cmd:"" group:"people" help:"What people are asked, to look at and to decide."`
	Show    showCommand    `cmd:"" group:"people" help:"Show a request."`
	Approve approveCommand `cmd:"" group:"people" help:"Say yes to a request."`
	Reject  rejectCommand  `cmd:"" group:"people" help:"Say no to a request."`
	Answer  answerCommand  `cmd:"" group:"people" help:"Answer a request with JSON."`
	requestCommands

	Config  configCommands `cmd:"" group:"operators" help:"The settings of the server."`
	Check   checkCommand   `cmd:"" group:"operators" help:"List open runs that this program could not go on with. Before a deploy."`
	Migrate migrateCommand `cmd:"" group:"operators" help:"Bring the schema of the store up to date."`
	Keys    keysCommands   `cmd:"" group:"operators" help:"What programs sign in with."`
	Key     keyCommands    `cmd:"" group:"operators" help:"The key with which everything in the store is sealed."`
	Store   storeCommands  `cmd:"" group:"operators" help:"What is kept: how much, for how long, of whom."`

	Audit auditCommands `cmd:"" group:"operators" help:"The audit log: verify it, sign it, prove a decision, export it, compare it with what was done."`

	Help       helpCommand       `cmd:"" group:"more" help:"Show the help of a command, or this."`
	Completion completionCommand `cmd:"" group:"more" help:"Print a script that lets a shell complete commands and flags."`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:"" help:"What could come next on a command line; for the scripts of completion."`
	Version    versionCommand    `cmd:"" group:"more" help:"Print the version."`
}

var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "server", Title: "A server"},
	{Key: "people", Title: "For people, on a server (FERMATA_URL, FERMATA_TOKEN)"},
	{Key: "rules", Title: "For those who say how it is decided, on files"},
	{Key: "operators", Title: "For operators, on the store of a server"},
	{Key: "more", Title: "More"},
})

const description = "Lets agents and workflows stop for a person, and go on exactly where they stopped.\n\nNew here? Start with: fermata demo"

// Main runs the program with the arguments of this process, and returns its exit code.
func Main(options ...Option) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		ends = append(ends, syscall.SIGHUP) // the terminal is gone, or somebody takes it for a reload: what is under way ends well
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop) // who asks twice does not want to wait
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr, options...)
}

func run(ctx context.Context, args []string, out, errOut io.Writer, options ...Option) int {
	p := &program{out: out, err: errOut, json: wantsJSON(args)}
	for _, option := range options {
		option(p)
	}
	var c commands
	left := -1
	parser, err := kong.New(&c, kong.Name("fermata"), kong.Description(description), kong.Writers(out, errOut),
		kong.Exit(func(code int) { left = code }), groups, kong.Help(help), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p))
	if err != nil {
		return p.fail(err)
	}
	p.parser = parser
	addDetails(parser.Model.Node)
	if len(args) == 0 {
		args = []string{"help"}
	}
	// The parser would put other characters in the place of what is no text, and they would be what a person is said to have answered.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return p.fail(usage("%q is not UTF-8", args[i]))
	}
	parsed, err := parser.Parse(args)
	if left >= 0 { // it showed a help text
		return left
	}
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = wrong.Context
	}
	if parsed != nil && parsed.Selected() != nil {
		p.command = parsed.Selected().Path()
	}
	if err != nil {
		return p.fail(negativeNumberHint(err))
	}
	if server := serverOf(parsed); server != "" && !p.json {
		waiting, stop := p.noticeWhenSlow(ctx, server)
		defer stop()
		parsed.BindTo(waiting, (*context.Context)(nil))
	}
	return p.fail(parsed.Run())
}

var numberFlag = regexp.MustCompile(`^unknown flag (-[0-9])`)

// negativeNumberHint says what to do about a number below zero, which is an answer as any other.
func negativeNumberHint(err error) error {
	if number := numberFlag.FindStringSubmatch(err.Error()); number != nil {
		return usage("%s… is taken for a flag: put -- before it if it is none", number[1])
	}
	return &usageError{err}
}

// wantsJSON reports whether errors are for programs, also if the rest of the command line is wrong.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}
