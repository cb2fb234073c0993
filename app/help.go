package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, as: keys create."`
}

// Run shows the help of a command.
func (c *helpCommand) Run(p *program) error {
	at, err := kong.Trace(p.parser, c.Command)
	if err != nil {
		return err
	}
	if at.Error != nil {
		p.command = "" // the help of help would not help
		return &usageError{at.Error}
	}
	return at.PrintUsage(false)
}

// help prints the help of what was selected; that of the program has the exit codes at its end.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	return printExitCodes(ctx.Stdout)
}

func printExitCodes(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\nExit codes:\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", e.code, e.meaning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// addDetails gives every command the text that stands behind its help.
func addDetails(at *kong.Node) {
	for _, child := range at.Children {
		child.Detail = details[child.Path()]
		addDetails(child)
	}
}

// details are those texts, by command. What is indented is shown as it is.
var details = map[string]string{
	"demo": `Everything is kept in --data, and is there again on the next start; but each start makes a new key, and the one before counts no longer. With --json there is one line on standard output when it is ready:
{"url":…,"token":…,"account":…}.

Examples:

  fermata demo
  fermata demo --data demo-data --addr 127.0.0.1:0 --json`,

	"serve": `The settings come from a file, the environment and the command line; the later counts. It ends on SIGINT and SIGTERM, after what is under way.

Examples:

  fermata serve
  fermata serve --config fermata.yaml
  fermata serve --store postgres://fermata@db/fermata --key-file fermata.key --addr :8080
  FERMATA_LISTEN_ADDR=:8080 FERMATA_LOG_FORMAT=json fermata serve`,

	"run": `It prints how far the run has come: what it waits for, or what it came to. The same start with the same --key counts once.

Examples:

  fermata run inproc:content-review '{"topic":"tea"}'
  fermata run inproc:content-review '{"topic":"tea"}' --key article-7 --json
  fermata run inproc:content-review @topic.json`,

	"runs": `Examples:

  fermata runs
  fermata runs --status waiting --json`,

	"graphs": `Examples:

  fermata graphs
  fermata graphs inproc:content-review
  fermata graphs --run article-7
  fermata graphs --run article-7 --as svg > article-7.svg`,

	"watch": `With --json each event is a line, and what the run came to is the last.

Examples:

  fermata watch article-7
  fermata watch article-7 --timeout 10m`,

	"cancel": `What the run asks is withdrawn. What it did stays done.

Example:

  fermata cancel article-7`,

	"inbox": `In a terminal it is a screen to work with; --list, --json and a pipe get a list.

Examples:

  fermata inbox
  fermata inbox --list --kind content-review
  fermata inbox --all --json`,

	"show": `Example:

  fermata show int_…`,

	"approve": `What is approved is what the server shows at this moment; if it shows something else when the word arrives, nothing is decided.
A run that is held before or after a node goes on as it is.

Examples:

  fermata approve int_…
  fermata approve int_… --reason "checked with Ann" --args '{"amount":20}'`,

	"reject": `Example:

  fermata reject int_… --reason "too dear"`,

	"answer": `The answer has to fit the schema that fermata show prints. A wrong one changes nothing.
A run that is held takes all of its state, edited, or null, to go on as it is.

Examples:

  fermata answer int_… '{"action":"revise","feedback":"shorter"}'
  fermata answer int_… @state.json`,

	"config": `Examples:

  fermata config example > fermata.yaml
  fermata config check fermata.yaml`,

	"config example": `With --json: every key with its variable, its default and what it is for.

Example:

  fermata config example > fermata.yaml`,

	"config check": `The environment is checked with it, as a server would see both. Everything that is wrong is said at once, each with its line or variable.

Example:

  fermata config check fermata.yaml`,

	"check": `Run it with the new program on the store of the running one: it lists the open runs whose graph, node, state or kind of question is gone.
It runs and changes nothing. That a node which is still there would ask something else cannot be known before it runs. The exit code is 8 if
there are such runs.

Examples:

  fermata check --store sqlite:fermata.db
  fermata check --config fermata.yaml --json`,

	"migrate": `A server does so by itself when it starts, unless store.migrate is false. A SQLite file that is not there yet is made,
with its key. A schema is never brought back to an older one: keep a backup.

Examples:

  fermata migrate --dry-run --config fermata.yaml
  fermata migrate --store postgres://fermata@db/fermata`,

	"keys": `Example:

  fermata keys create acme bot agent`,

	"keys create": `Roles: an agent starts runs and asks, an approver decides, an auditor reads, an admin does everything.

Examples:

  fermata keys create acme bot agent --store sqlite:fermata.db
  fermata keys create acme ann approver --for 30d`,

	"keys list": `fermata keys revoke ends a session as it ends a key.

Examples:

  fermata keys list acme --json
  fermata keys list acme --sessions`,

	"keys revoke": `Example:

  fermata keys revoke acme 1a2b3c4d5e6f7g8h`,

	"key": `Example:

  fermata key make fermata.key`,

	"key make": `Keep it safe and apart from the backups of the store: without it nothing in the store can be opened.

Example:

  fermata key make fermata.key`,

	"key rotate": `Servers that use the file notice the new key by themselves.

Example:

  fermata key rotate --config fermata.yaml`,

	"store": `Example:

  fermata store size`,

	"store size": `Example:

  fermata store size --store sqlite:fermata.db --json`,

	"store vacuum": `Example:

  fermata store vacuum --store sqlite:fermata.db`,

	"store export": `Example:

  fermata store export acme -o acme.jsonl`,

	"store erase": `Example:

  fermata store erase acme --yes`,

	"store retry": `Example:

  fermata store retry acme article-7`,

	"audit": `Example:

  fermata audit verify --account acme`,

	"audit verify": `Examples:

  fermata audit verify --account acme --config fermata.yaml
  fermata audit verify --account acme --kept /mnt/checkpoints
  fermata audit verify --account acme --json`,

	"audit sign": `Example:

  fermata audit sign --account acme --key audit.key > acme.checkpoint`,

	"audit checkpoints": `Examples:

  fermata audit checkpoints > acme.checkpoint
  fermata audit checkpoints --dir /mnt/checkpoints`,

	"audit prove": `Example:

  fermata audit prove int_… --account acme --pub audit.pub > proof.json`,

	"audit check": `Example:

  fermata audit check proof.json --pub audit.pub`,

	"audit export": `Example:

  fermata audit export --account acme > acme.audit.jsonl`,

	"audit reconcile": `Example:

  fermata audit reconcile --account acme`,

	"help": `Example:

  fermata help keys create`,

	"completion": `Examples:

  source <(fermata completion bash)
  fermata completion zsh > "${fpath[1]}/_fermata"
  fermata completion fish > ~/.config/fish/completions/fermata.fish`,

	"version": `Example:

  fermata version --json`,
}
