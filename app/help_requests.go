package app

import (
	"maps"
)

func init() { maps.Copy(details, requestDetails) }

// requestDetails are the help texts of the commands in this file, as in details.
var requestDetails = map[string]string{
	"claude-hook": `Claude Code runs it before and after tool calls and passes the event on standard input. Before a call it creates an approval request, waits for the
decision, and answers allow or deny. After the call it sends the receipt. It needs a key with the role agent. docs/claude.md has the guide.

If there is no decision in time, or the server does not respond, --on-error deny denies the call, and --on-error ask lets Claude Code ask the person at
the terminal. A denied call has exit code 0; an invalid event or command line has exit code 2, which also blocks the call.

Examples:

  fermata claude-hook --print-settings > hooks.json
  fermata claude-hook --print-settings --wait 1h --matcher 'Bash|mcp__.*'
  fermata claude-hook --wait 10m --on-error ask`,

	"claim": `A claim shows others who is working on a request. It is not exclusive: any eligible approver can still decide.

Example:

  fermata claim int_…`,

	"release": `Example:

  fermata release int_…`,

	"undo": `A policy rule can give each decision an undo window (undo: 30s). The decision takes effect at the end of it; until then the voter can withdraw the vote.

Example:

  fermata undo int_…`,

	"comment": `Example:

  fermata comment int_… "the backup is of last night"`,

	"clarify": `The run, or the person it works for, replies with fermata reply. Until then the request shows an open clarification request.

Example:

  fermata clarify int_… "is there a backup?"`,

	"reply": `Examples:

  fermata reply int_… "yes, of last night"
  fermata reply int_… "on the second disk" --question 2`,

	"delegate": `The delegate must be an eligible approver: a delegation cannot extend rights.

Example:

  fermata delegate int_… eve --reason "she knows the table"`,

	"grants create": `The same action with the same arguments, at the same address and for the same requester, is then allowed without asking again. It needs a request that
one person can decide, and a policy that allows grants (remember_max).

Examples:

  fermata grants create int_… --for 8h --uses 10
  fermata grants create int_… --for 8h --uses 10 --budget cost=5000
  fermata grants create int_… --for 8h --uses 10 --relax /path='{"op":"prefix","value":"s3://b/2026/"}'`,

	"webhooks add": `The server posts each selected event to the URL, as a CloudEvent that is signed as a Standard Webhook. Failed events are sent again for three days;
then the subscription is disabled. The URL must be https and public, unless webhooks.allow names its host. It needs an admin's key.

Examples:

  fermata webhooks add https://hooks.example.com/fermata --type 'request.*'
  fermata webhooks add https://hooks.example.com/paid --type effect.ended --graph inproc:refund`,

	"webhooks list": `Example:

  fermata webhooks list`,

	"webhooks remove": `Example:

  fermata webhooks remove wh_…`,

	"webhooks rotate": `For 24 hours messages have two signatures, so that the receiver can change its secret without losing events.

Example:

  fermata webhooks rotate wh_…`,

	"webhooks test": `The command fails if the receiver does not accept the event.

Example:

  fermata webhooks test wh_…`,

	"deliveries list": `A delivery is one message to one address. Its state is queued, sent, seen, failed (it is tried again), dead (it is not), or obsolete (the request was over before).

Examples:

  fermata deliveries list --state dead
  fermata deliveries list --channel slack --json`,

	"deliveries send-again": `It needs the role admin. The state of a delivery that was given up becomes queued.

Example:

  fermata deliveries send-again 'int_4f1c/1#slack:C0EMEA'`,

	"grants list": `Example:

  fermata grants list`,

	"grants revoke": `Example:

  fermata grants revoke grt_…`,

	"snooze": `Until then no reminders or pages are sent; afterwards the route starts again. The deadline does not change.

Examples:

  fermata snooze int_… 30m
  fermata snooze int_… 2026-11-16T09:00:00Z`,

	"extend": `The route and the policy limit how far a deadline can be extended.

Example:

  fermata extend int_… 2d`,

	"escalate": `If the rules of the request say on_escalate: return, this returns it for redesign: the request ends, and the run gets the reason.

Example:

  fermata escalate int_… --reason "the shop is down"`,

	"abandon": `The open requests are withdrawn, and the run is cancelled. This is neither an approval nor a rejection: the run does not continue, as it may after a
rejection.

Example:

  fermata abandon int_… --reason "we do it by hand"`,

	"decisions": `Each line is a decision with the arguments that were approved; sensitive values are masked. The table is shortened, CSV and JSON are complete.

Examples:

  fermata decisions --days 7
  fermata decisions --days 90 --csv > decisions.csv`,

	"stats": `Names of other people are shown to auditors and admins only. SUSPECT marks people who approve nearly everything, and often faster than it can be read;
that is an indication, not a proof. A proposal is a rule that would have matched past decisions; try it with fermata policy simulate.

Examples:

  fermata stats
  fermata stats --days 7 --zone Europe/Zurich --json`,

	"policy": `A policy is a file of rules, see docs/policy.md. These commands read files; explain --tool, simulate --replay and show query a server.

Example:

  fermata policy test policy.yaml cases.yaml`,

	"policy test": `The exit code is 8 if a case fails, and 2 if a file cannot be loaded.

Example:

  fermata policy test policy.yaml cases.yaml`,

	"policy lint": `The exit code is 2 for errors that prevent loading, and 8 for rules that can be loaded but are probably wrong. With --groups and --routes it also
reports groups that are empty, unknown or too small, and missing routes. Those have exit code 8,
because the next groups file may be correct; but a server does not start with these files.

Examples:

  fermata policy lint policy.yaml
  fermata policy lint policy.yaml --groups groups.yaml --routes routes.yaml`,

	"policy explain": `With two files: an input is {"tool": …, "args": …, "account": …, "at": …}, as in docs/policy.md. "at" defaults to now. Omitted "effects", "cost",
"risk" and "revision" are unknown, unless the policy file defines them for the tool. With --tool the server evaluates its own policy.
Nothing is executed in either case.

Examples:

  fermata policy explain policy.yaml input.json
  fermata policy explain --tool refund --args '{"cents":2500}' --requester bob`,

	"policy diff": `The exit code is 8 if the new file allows anything more easily: have a person review that. Inputs are JSON lines recorded by the program that evaluates
the policy. To compare with the rulings of a server, use fermata policy simulate --replay.

Examples:

  fermata policy diff policy.yaml new.yaml
  fermata policy diff policy.yaml new.yaml --inputs inputs.jsonl --json`,

	"policy simulate": `Nothing is executed, and no request is created. With --inputs the results are counted; inputs are JSON lines recorded by the program that evaluates the
policy. With --replay the server compares its past rulings with those of this file: how many are equal, stricter or looser, by rule, with examples, and
without arguments. The exit code is 8 if anything would have been easier. It is for auditors and admins.

Examples:

  fermata policy simulate --replay 30d new.yaml
  fermata policy simulate policy.yaml --inputs inputs.jsonl`,

	"policy show": `The text is that of the file, byte for byte. A server keeps every policy that decided an action of your account, so that a digest in a request or in the
audit log can be resolved years later.

Examples:

  fermata policy show
  fermata policy show sha256:4f1c… --json`,

	"routes": `A route defines who is notified of a request and when, see docs/routes.md. These commands read files.

Example:

  fermata routes check routes.yaml`,

	"routes check": `All errors are reported at once, with exit code 2. The targets are those of the channels in the configuration; see channels in fermata config example.

Example:

  fermata routes check routes.yaml --config fermata.yaml`,

	"routes simulate": `The simulation assumes that notices arrive at once and that no person reacts.

Examples:

  fermata routes simulate routes.yaml
  fermata routes simulate routes.yaml db-prod --at "2026-11-16 23:00" --zone Europe/Zurich`,
}
