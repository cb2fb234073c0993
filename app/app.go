// Package app is the fermata program as a library, to build it with your own graphs:
//
//	func main() { os.Exit(app.Main(app.Graphs(inproc.Flow(refunds, inproc.FlowConfig[Refund]{})))) }
//
// Without options it is the command in cmd/fermata.
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

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Option adds something to the program.
type Option func(*program)

// Graphs adds graphs and agents that can be run by name, as "inproc:name".
func Graphs(graphs ...inproc.Graph) Option {
	return func(p *program) { p.graphs = append(p.graphs, graphs...) }
}

// Provider adds a provider to the in-process engine.
func Provider(other provider.Provider) Option {
	return func(p *program) { p.others = append(p.others, other) }
}

// Notify sets a function that delivers notices to people: new requests, reminders, pages. A failed
// delivery is retried; a successful one may be repeated with the same key. See
// [channel.Notify].
func Notify(deliver func(ctx context.Context, account string, notice desk.Notice) error) Option {
	return Channel(channel.Notify(deliver))
}

// Channel adds a channel that delivers notices to people.
func Channel(ch channel.Channel) Option {
	return func(p *program) { p.channels = append(p.channels, ch) }
}

// program is the state shared by the commands.
type program struct {
	graphs   []inproc.Graph
	others   []provider.Provider
	channels []channel.Channel
	dialog   *DialogConfig // nil: no conversations

	out, err io.Writer
	json     bool // the output is JSON
	parser   *kong.Kong
	command  string // the selected command, such as keys create; "" if there is none
	screen   bool   // the command uses the whole terminal
	tour     bool   // the pages suggest what to try
}

// commands is the command line.
type commands struct {
	JSON bool `name:"json" help:"Print JSON: data on standard output, errors on standard error."`

	Demo  demoCommand  `cmd:"" group:"server" help:"Serve sample graphs on a SQLite file; nothing else to install."`
	Serve serveCommand `cmd:"" group:"server" help:"Run the server."`

	Run     runCommand     `cmd:"" group:"people" help:"Start a run."`
	Runs    runsCommand    `cmd:"" group:"people" help:"List runs, or show one."`
	Graphs  graphsCommand  `cmd:"" group:"people" help:"List graphs, or draw one and mark where a run waits."`
	Watch   watchCommand   `cmd:"" group:"people" help:"Print the events of a run until it ends."`
	Cancel  cancelCommand  `cmd:"" group:"people" help:"Cancel a run."`
	Retry   retryCommand   `cmd:"" group:"people" help:"Retry a parked or failed run."`
	Adopt   adoptCommands  `cmd:"" group:"people" help:"Continue runs that other clients have started."`
	Receipt receiptCommand `cmd:"" group:"people" help:"Say what an external agent did after the decision."`
	Hook    claudeHook     `cmd:"" name:"claude-hook" group:"people" help:"Ask for approval of the tool calls of your own Claude Code sessions, as a hook command."`
	Inbox   inboxCommand   `cmd:"" group:"people" help:"Show open requests and decide them."`
	Show    showCommand    `cmd:"" group:"people" help:"Show a request."`
	Approve approveCommand `cmd:"" group:"people" help:"Approve a request."`
	Reject  rejectCommand  `cmd:"" group:"people" help:"Reject a request."`
	Answer  answerCommand  `cmd:"" group:"people" help:"Answer a request with JSON."`
	requestCommands

	Config   configCommands   `cmd:"" group:"operators" help:"Print and check the server configuration."`
	Check    checkCommand     `cmd:"" group:"operators" help:"List open runs that this build could not resume. Use it before a deploy."`
	Migrate  migrateCommand   `cmd:"" group:"operators" help:"Migrate the schema of the store."`
	Keys     keysCommands     `cmd:"" group:"operators" help:"Manage API keys."`
	Invite   inviteCommand    `cmd:"" group:"operators" help:"Print a link with which a person sets a password and signs in."`
	Key      keyCommands      `cmd:"" group:"operators" help:"Manage the encryption key of the store."`
	Channels channelsCommands `cmd:"" group:"operators" help:"List channels and send test messages."`
	Slack    slackCommands    `cmd:"" group:"operators" help:"Check the Slack app."`
	Store    storeCommands    `cmd:"" group:"operators" help:"Show size, vacuum, export, erase and retry on the store."`

	Audit auditCommands `cmd:"" group:"operators" help:"Verify, sign, prove, export and reconcile the audit log."`

	Help       helpCommand       `cmd:"" group:"more" help:"Show help for a command."`
	Completion completionCommand `cmd:"" group:"more" help:"Print a shell completion script."`
	Complete   completeCommand   `cmd:"" name:"__complete" hidden:"" help:"Print completions; used by the completion scripts."`
	Version    versionCommand    `cmd:"" group:"more" help:"Print the version."`
}

var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "server", Title: "Server"},
	{Key: "people", Title: "Client commands (FERMATA_URL, FERMATA_TOKEN)"},
	{Key: "rules", Title: "Policies and routes, on files"},
	{Key: "operators", Title: "Operator commands, on the store of a server"},
	{Key: "more", Title: "More"},
})

const description = "Lets agents and workflows wait for a person and continue exactly where they stopped.\n\nNew here? Start with: fermata demo"

// Main runs the program with the arguments of this process, and returns its exit code.
func Main(options ...Option) int {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		// the terminal was closed, or the signal is meant as a reload: shut down cleanly
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
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
	// The parser would replace invalid UTF-8 by other characters, which would be recorded as a
	// person's answer.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return p.fail(usage("%q is not UTF-8", args[i]))
	}
	parsed, err := parser.Parse(args)
	if left >= 0 { // it printed a help text
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

// negativeNumberHint explains how to pass a negative number as an argument.
func negativeNumberHint(err error) error {
	if number := numberFlag.FindStringSubmatch(err.Error()); number != nil {
		return usage("%s… is parsed as a flag; put -- before it to pass a value", number[1])
	}
	return &usageError{err}
}

// wantsJSON reports whether --json is set, even if the rest of the command line is invalid.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}
