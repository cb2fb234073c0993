package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/internal/cli"
)

type helpCommand struct {
	Command []string `arg:"" optional:"" help:"The command, for example: keys create."`
}

// Run shows the help of a command.
func (c *helpCommand) Run(p *cli.Program) error {
	at, err := kong.Trace(p.Parser, c.Command)
	if err != nil {
		return err
	}
	if at.Error != nil {
		p.Command = "" // show the general help, not that of help
		return cli.InvalidUsage(at.Error)
	}
	return at.PrintUsage(false)
}

// help prints the help of the selected command; that of the program ends with the exit codes.
func help(options kong.HelpOptions, ctx *kong.Context) error {
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || ctx.Selected() != nil {
		return err
	}
	return printExitCodes(ctx.Stdout)
}

func printExitCodes(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\nExit codes:\n")
	for _, e := range cli.ExitCodes {
		fmt.Fprintf(&b, "  %3d  %s\n", e.Code, e.Meaning)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// addDetails adds the detailed help text to every command.
func addDetails(at *kong.Node) {
	for _, child := range at.Children {
		child.Detail = details[child.Path()]
		addDetails(child)
	}
}

// details are those texts, by command. Indented lines are printed unchanged.
var details = map[string]string{
	"demo": `All data is kept in --data and used again on the next start. Each start creates a new API key and revokes the previous one. With --json it prints one line on standard output when it is ready:
{"url":…,"token":…,"account":…}.

With --slack the requests are also posted to a fake Slack workspace, whose page has the buttons of Slack. One person there is linked to the person of the demo, the other is not. The next demo posts open requests again.

Examples:

  fermata demo
  fermata demo --slack
  fermata demo --data demo-data --addr 127.0.0.1:0 --json`,

	"serve": `The configuration comes from a file, the environment and the command line; later sources override earlier ones. On SIGINT and SIGTERM the server finishes in-flight work and exits.

Examples:

  fermata serve
  fermata serve --config fermata.yaml
  fermata serve --store postgres://fermata@db/fermata --key-file fermata.key --addr :8080
  FERMATA_LISTEN_ADDR=:8080 FERMATA_LOG_FORMAT=json fermata serve`,

	"channels list": `It lists the channels of the server and those of earlier deliveries, with the last delivery. It needs the role approver, auditor or admin.

Examples:

  fermata channels list
  fermata channels list --json`,

	"channels test": `It reads the configuration file of the server and sends a message that says that it is a test. A page is sent with severity info and resolved at once. A webhook is tested by the server (FERMATA_URL, FERMATA_TOKEN).

In Slack the message has a button. The command waits for the click, which the running server receives, stores and answers like the click of a decision. The exit code is 8 if the message cannot be sent, and 6 if there was no click within --timeout.

Examples:

  fermata channels test slack:#ops --config fermata.yaml
  fermata channels test slack:U0ANN --config fermata.yaml --timeout 10m
  fermata channels test email:ann@example.com --config fermata.yaml
  fermata channels test pagerduty:db --config fermata.yaml
  fermata channels test teams:ops --config fermata.yaml --json
  fermata channels test webhook:wh_4f1c`,

	"channels webpush-key": `It creates the VAPID private key for channels.webpush.keyFile, and prints the public key. All replicas use the same file. With another key, people have to turn on notifications again.

Examples:

  fermata channels webpush-key webpush.key`,

	"slack doctor": `It checks the tokens and their scopes, that the channels exist and are private, their other readers, and that the endpoint of the server accepts requests that Slack signed and rejects others. It posts nothing. The exit code is 8 if something does not work.

Examples:

  fermata slack doctor --config fermata.yaml C0EMEA C0APAC
  fermata slack doctor --config fermata.yaml --url https://fermata.example.com C0EMEA`,

	"run": `It prints the outcome: what the run waits for, or its result. The same start with the same --key is applied once.

Examples:

  fermata run inproc:content-review '{"topic":"tea"}'
  fermata run inproc:content-review '{"topic":"tea"}' --key article-7 --json
  fermata run inproc:content-review @topic.json`,

	"runs list": `Examples:

  fermata runs list
  fermata runs list --status waiting --json`,

	"runs show": `It also prints what a waiting or parked run needs to continue.

Examples:

  fermata runs show article-7
  fermata runs show article-7 --json`,

	"retry": `A parked or failed run has stopped because of an error. Remove the cause first. The run continues from its last saved step: recorded
effects and accepted answers are kept. A run that was rejected, expired or had invalid input cannot be retried.

Examples:

  fermata retry article-7`,

	"graphs": `Examples:

  fermata graphs
  fermata graphs inproc:content-review
  fermata graphs --run article-7
  fermata graphs --run article-7 --as svg > article-7.svg`,

	"watch": `With --json each event is a line, and the outcome is the last one.

Examples:

  fermata watch article-7
  fermata watch article-7 --timeout 10m`,

	"receipt": `The server compares the receipt with the decision: fermata audit reconcile reports an action that
was not approved, differs from the approved one, or was never executed.

Examples:

  fermata receipt drop-1 --outcome done --digest 3f0a1c5f7d0b2e9a4c6d8e1f3a5b7c9d1e3f5a7b9c1d3e5f7a9b1c3d5e7f9a1b
  fermata receipt drop-1 --outcome not_done --result '{"reason":"the table is gone"}' --digest 3f0a1c5f7d0b2e9a4c6d8e1f3a5b7c9d1e3f5a7b9c1d3e5f7a9b1c3d5e7f9a1b`,

	"adopt langgraph": `Each paused thread becomes a run of the graph langgraph:GRAPH, and its interrupts appear in the inbox. The server of Fermata continues the threads, so its configuration must name the same LangGraph server and the graphs as assistants. The command watches for new threads until it is interrupted. It needs a key with the role agent.

Examples:

  fermata adopt langgraph http://127.0.0.1:2024
  fermata adopt langgraph https://agents.example.com --api-key-file langgraph.key --once`,

	"cancel": `Open requests of the run are withdrawn. Effects that were executed are not undone.

Example:

  fermata cancel article-7`,

	"inbox": `In a terminal it is an interactive screen; with --list, --json or a pipe it prints a list.

Examples:

  fermata inbox
  fermata inbox --list --kind content-review
  fermata inbox --all --json`,

	"show": `Sensitive values are masked. --reveal shows them to people who may decide the request, and to admins and auditors; the audit log records it.

Examples:

  fermata show int_…
  fermata show --reveal int_…`,

	"approve": `The approval is for the request as the server shows it now; if it has changed when the decision arrives, nothing is decided. In a terminal, an action of medium or high risk is approved after you typed yes.
A run held before or after a node continues unchanged.
The conditions --until, --only-if and --up-to are checked again when the action begins. If they do not hold then, the action is not performed and the approvers are asked again.

Examples:

  fermata approve int_…
  fermata approve int_… --reason "checked with Ann" --args '{"amount":20}'
  fermata approve int_… --until 2h --up-to amount=100
  fermata approve int_… --only-if 'args.region == "eu" && local.hour < 18'`,

	"reject": `Example:

  fermata reject int_… --reason "too expensive"`,

	"answer": `The answer must match the schema that fermata show prints. An invalid answer changes nothing.
For a held run the answer is its edited state, or null to continue unchanged.

Examples:

  fermata answer int_… '{"action":"revise","feedback":"shorter"}'
  fermata answer int_… @state.json`,

	"config": `Examples:

  fermata config example > fermata.yaml
  fermata config check fermata.yaml`,

	"config example": `With --json: every key with its variable, its default and its description.

Example:

  fermata config example > fermata.yaml`,

	"config check": `It also checks the environment, as a server would load both. All errors are reported at once, each with its line or variable.

Example:

  fermata config check fermata.yaml`,

	"check": `Run it with the new build on the store of the running one: it lists the open runs whose graph, node, state or kind no longer exists.
It executes and changes nothing. It cannot detect that an existing node would ask something else. The exit code is 8 if
there are such runs.

Examples:

  fermata check --store sqlite:fermata.db
  fermata check --config fermata.yaml --json`,

	"migrate": `A server migrates at startup, unless store.migrate is false. A missing SQLite file is created,
with its key. Migrations cannot be undone: keep a backup.

Examples:

  fermata migrate --dry-run --config fermata.yaml
  fermata migrate --store postgres://fermata@db/fermata`,

	"keys": `Example:

  fermata keys create acme bot agent`,

	"setup": `Run it on the host of a running server that has no identity provider. It creates an API key for five
minutes, invites the administrator with it, prints the link, and revokes the key.

Example:

  fermata setup acme ann --config fermata.yaml --url https://fermata.example.com`,

	"invite": `The link works once and is valid for three days. It is for servers without an identity provider, and needs the API key of an administrator. An
invitation for a member replaces the password.

Example:

  fermata invite bob --role approver`,

	"keys create": `Roles: an agent starts runs and creates requests, an approver decides, an auditor reads, an admin does everything.

Examples:

  fermata keys create acme bot agent --store sqlite:fermata.db
  fermata keys create acme ann approver --for 30d`,

	"keys list": `fermata keys revoke also revokes sessions.

Examples:

  fermata keys list acme --json
  fermata keys list acme --sessions`,

	"keys revoke": `Example:

  fermata keys revoke acme 1a2b3c4d5e6f7g8h`,

	"key": `Example:

  fermata key make fermata.key`,

	"key make": `Keep it safe and apart from the backups of the store: without it the data in the store cannot be decrypted.

Example:

  fermata key make fermata.key`,

	"key rotate": `Servers that use the file reload it automatically.

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

	"audit verify": `Without --account it reads the log of your account from the server; an API key with the role auditor suffices. The checkpoints of the server count only
with --pub, from another channel.

Examples:

  fermata audit verify --pub acme.pub
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

	"audit trail": `Examples:

  fermata audit trail int_… --account acme
  fermata audit trail article-7 --account acme --json`,

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
