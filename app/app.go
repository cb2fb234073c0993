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
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/clientcmd"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/cli/rulescmd"
	"github.com/fermata-go/fermata/internal/demo"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/inproc"
)

// Option adds something to the program.
type Option func(*serve.Program)

// Graphs adds graphs and agents that can be run by name, as "inproc:name".
func Graphs(graphs ...inproc.Graph) Option {
	return func(p *serve.Program) { p.Graphs = append(p.Graphs, graphs...) }
}

// Provider adds a provider to the in-process engine.
func Provider(other provider.Provider) Option {
	return func(p *serve.Program) { p.Providers = append(p.Providers, other) }
}

// Notify sets a function that delivers notices to people: new requests, reminders, pages. A failed
// delivery is retried; a successful one may be repeated with the same key. See
// [channel.Notify].
func Notify(deliver func(ctx context.Context, account string, notice desk.Notice) error) Option {
	return Channel(channel.Notify(deliver))
}

// Channel adds a channel that delivers notices to people.
func Channel(ch channel.Channel) Option {
	return func(p *serve.Program) { p.Channels = append(p.Channels, ch) }
}

// commands is the command line.
type commands struct {
	JSON bool `name:"json" help:"Print JSON: data on standard output, errors on standard error."`

	Demo  demo.Command  `cmd:"" group:"server" help:"Serve sample graphs on a SQLite file; nothing else to install."`
	Serve serve.Command `cmd:"" group:"server" help:"Run the server."`

	Run     clientcmd.RunCommand     `cmd:"" group:"people" help:"Start a run."`
	Runs    clientcmd.RunsCommand    `cmd:"" group:"people" help:"List runs, or show one."`
	Graphs  clientcmd.GraphsCommand  `cmd:"" group:"people" help:"List graphs, or draw one and mark where a run waits."`
	Watch   clientcmd.WatchCommand   `cmd:"" group:"people" help:"Print the events of a run until it ends."`
	Cancel  clientcmd.CancelCommand  `cmd:"" group:"people" help:"Cancel a run."`
	Retry   clientcmd.RetryCommand   `cmd:"" group:"people" help:"Retry a parked or failed run."`
	Adopt   clientcmd.AdoptCommands  `cmd:"" group:"people" help:"Continue runs that other clients have started."`
	Receipt clientcmd.ReceiptCommand `cmd:"" group:"people" help:"Say what an external agent did after the decision."`
	Hook    clientcmd.ClaudeHook     `cmd:"" name:"claude-hook" group:"people" help:"Ask for approval of the tool calls of your own Claude Code sessions, as a hook command."`
	Inbox   clientcmd.InboxCommand   `cmd:"" group:"people" help:"Show open requests and decide them."`
	Show    clientcmd.ShowCommand    `cmd:"" group:"people" help:"Show a request."`
	Approve clientcmd.ApproveCommand `cmd:"" group:"people" help:"Approve a request."`
	Reject  clientcmd.RejectCommand  `cmd:"" group:"people" help:"Reject a request."`
	Answer  clientcmd.AnswerCommand  `cmd:"" group:"people" help:"Answer a request with JSON."`
	requestCommands

	Config   operatorcmd.ConfigCommands   `cmd:"" group:"operators" help:"Print and check the server configuration."`
	Check    operatorcmd.CheckCommand     `cmd:"" group:"operators" help:"List open runs that this build could not resume. Use it before a deploy."`
	Migrate  operatorcmd.MigrateCommand   `cmd:"" group:"operators" help:"Migrate the schema of the store."`
	Keys     operatorcmd.KeysCommands     `cmd:"" group:"operators" help:"Manage API keys."`
	Setup    operatorcmd.SetupCommand     `cmd:"" group:"operators" help:"Invite the first administrator of an account."`
	Invite   operatorcmd.InviteCommand    `cmd:"" group:"operators" help:"Print a link with which a person sets a password and signs in."`
	Key      operatorcmd.KeyCommands      `cmd:"" group:"operators" help:"Manage the encryption key of the store."`
	Channels operatorcmd.ChannelsCommands `cmd:"" group:"operators" help:"List channels and send test messages."`
	Slack    operatorcmd.SlackCommands    `cmd:"" group:"operators" help:"Check the Slack app."`
	Store    operatorcmd.StoreCommands    `cmd:"" group:"operators" help:"Show size, vacuum, export, erase and retry on the store."`

	Audit operatorcmd.AuditCommands `cmd:"" group:"operators" help:"Verify, sign, prove, export and reconcile the audit log."`

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

const description = "Lets agents and workflows wait for a person and continue exactly where they stopped.\n\nNew here? Start with: "

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
	own := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr, append([]Option{binaryName(own)}, options...)...)
}

// binaryName sets the name of the binary in help texts.
func binaryName(name string) Option { return func(p *serve.Program) { p.Name = name } }

func run(ctx context.Context, args []string, out, errOut io.Writer, options ...Option) int {
	p := &serve.Program{Program: &cli.Program{Out: out, Err: errOut, JSON: wantsJSON(args)}}
	for _, option := range options {
		option(p)
	}
	var c commands
	left := -1
	name := p.ProgramName()
	parser, err := kong.New(&c, kong.Name(name), kong.Description(description+name+" demo"), kong.Writers(out, errOut),
		kong.Exit(func(code int) { left = code }), groups, kong.Help(help), kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 120}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(p, p.Program))
	if err != nil {
		return p.Fail(err)
	}
	p.Parser = parser
	addDetails(parser.Model.Node)
	if len(args) == 0 {
		args = []string{"help"}
	}
	// The parser would replace invalid UTF-8 by other characters, which would be recorded as a
	// person's answer.
	if i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) }); i >= 0 {
		return p.Fail(cli.Usagef("%q is not UTF-8", args[i]))
	}
	parsed, err := parser.Parse(args)
	if left >= 0 { // it printed a help text
		return left
	}
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = wrong.Context
	}
	if parsed != nil && parsed.Selected() != nil {
		p.Command = parsed.Selected().Path()
	}
	if err != nil {
		return p.Fail(negativeNumberHint(err))
	}
	if server := cli.ServerOf(parsed); server != "" && !p.JSON {
		waiting, stop := p.NoticeWhenSlow(ctx, server)
		defer stop()
		parsed.BindTo(waiting, (*context.Context)(nil))
	}
	return p.Fail(parsed.Run())
}

var numberFlag = regexp.MustCompile(`^unknown flag (-[0-9])`)

// negativeNumberHint explains how to pass a negative number as an argument.
func negativeNumberHint(err error) error {
	if number := numberFlag.FindStringSubmatch(err.Error()); number != nil {
		return cli.Usagef("%s… is parsed as a flag; put -- before it to pass a value", number[1])
	}
	return cli.InvalidUsage(err)
}

// wantsJSON reports whether --json is set, even if the rest of the command line is invalid.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}

// requestCommands are the actions on requests other than deciding, and the commands for policies
// and routes.
type requestCommands struct {
	Claim      clientcmd.ClaimCommand       `cmd:"" group:"people" help:"Claim a request. Other approvers can still decide."`
	Release    clientcmd.ReleaseCommand     `cmd:"" group:"people" help:"Release your claim on a request."`
	Undo       clientcmd.UndoCommand        `cmd:"" group:"people" help:"Withdraw your vote, while its undo window is open."`
	Comment    clientcmd.CommentCommand     `cmd:"" group:"people" help:"Add a comment to a request."`
	Clarify    clientcmd.ClarifyCommand     `cmd:"" group:"people" help:"Ask the agent a question. The request stays open."`
	Reply      clientcmd.ReplyCommand       `cmd:"" group:"people" help:"Reply to a question that an approver asked the agent."`
	Delegate   clientcmd.DelegateCommand    `cmd:"" group:"people" help:"Delegate a request to another eligible approver."`
	Snooze     clientcmd.SnoozeCommand      `cmd:"" group:"people" help:"Snooze notifications. The deadline does not change."`
	Extend     clientcmd.ExtendCommand      `cmd:"" group:"people" help:"Extend the deadline of a request."`
	Escalate   clientcmd.EscalateCommand    `cmd:"" group:"people" help:"Escalate a request: run the next step of its route now, or return it for redesign if its rules say so."`
	Abandon    clientcmd.AbandonCommand     `cmd:"" group:"people" help:"Cancel the run that a request belongs to."`
	Grants     clientcmd.GrantsCommands     `cmd:"" group:"people" help:"Create, list and revoke grants."`
	Deliveries clientcmd.DeliveriesCommands `cmd:"" group:"people" help:"List the messages about requests, and send them again."`
	Decisions  clientcmd.DecisionsCommand   `cmd:"" group:"people" help:"Report who decided what, as a table or CSV."`
	Stats      clientcmd.StatsCommand       `cmd:"" group:"people" help:"Report decision times, counts, approvers and rules."`

	Webhooks operatorcmd.WebhooksCommands `cmd:"" group:"people" help:"Subscribe URLs to events of requests, runs and effects."`

	Policy rulescmd.PolicyCommands `cmd:"" group:"rules" help:"Test, explain and compare approval policies."`
	Routes rulescmd.RoutesCommands `cmd:"" group:"rules" help:"Check and simulate notification routes."`
}

// Dialog has the server hold conversations with end users: with the API at /api/v1/conversations,
// and with the page /chat. Add its graph with [Graphs] or [Provider].
func Dialog(config executor.DialogConfig) Option {
	return func(p *serve.Program) { p.Dialog = &config }
}
