package app

import "maps"

func init() { maps.Copy(details, requestDetails) }

// requestDetails are the texts behind the help of the commands in this part of the program, as in details.
var requestDetails = map[string]string{
	"claim": `Who looks after a request is shown to the others. It binds nobody: whoever may decide still can.

Example:

  fermata claim int_…`,

	"release": `Example:

  fermata release int_…`,

	"comment": `Example:

  fermata comment int_… "the backup is of last night"`,

	"ask": `The run, or whoever it works for, answers with fermata reply. Until then the request says that it waits for an answer.

Example:

  fermata ask int_… "is there a backup?"`,

	"reply": `Examples:

  fermata reply int_… "yes, of last night"
  fermata reply int_… "on the second disk" --question 2`,

	"delegate": `Nobody passes on a right that is not theirs: whoever it is delegated to must be among those who may decide.

Example:

  fermata delegate int_… eve --reason "she knows the table"`,

	"remember": `The same action with the same arguments, at the same place and for the same requester, is allowed without asking again. It needs a request that one person
can decide, and rules that let it be remembered (remember_max).

Examples:

  fermata remember int_… --for 8h --uses 10
  fermata remember int_… --for 8h --uses 10 --budget cost=5000
  fermata remember int_… --for 8h --uses 10 --relax /path='{"op":"prefix","value":"s3://b/2026/"}'`,

	"grants list": `Example:

  fermata grants list`,

	"grants revoke": `Example:

  fermata grants revoke grt_…`,

	"snooze": `Nobody is reminded or paged meanwhile; then the route begins anew. The deadline stays.

Examples:

  fermata snooze int_… 30m
  fermata snooze int_… 2026-11-16T09:00:00Z`,

	"extend": `Only as far as the cap of the route and the policy permit.

Example:

  fermata extend int_… 2d`,

	"escalate": `Example:

  fermata escalate int_… --reason "the shop is down"`,

	"escape": `What the run asks is withdrawn, and the run is cancelled. That is neither a yes nor a no: the run does not go on, as it may after a reject.

Example:

  fermata escape int_… --reason "we do it by hand"`,

	"stats": `People are shown by name to auditors and admins, and to themselves. SUSPECT marks whoever nearly always says yes, and often faster than anybody
reads: that is no proof. A proposal is a rule that history would bear out; try it with fermata policy simulate.

Examples:

  fermata stats
  fermata stats --days 7 --zone Europe/Zurich --json`,

	"policy": `A policy is a file of rules, see docs/policy.md. These commands read files; explain --tool, simulate --replay and show ask a server.

Example:

  fermata policy test policy.yaml cases.yaml`,

	"policy test": `The exit code is 8 if a case fails, and 2 if one of the files cannot be loaded.

Example:

  fermata policy test policy.yaml cases.yaml`,

	"policy lint": `Mistakes, which keep a file from being used, end with 2; what can be loaded but is probably not meant ends with 8. With --groups and --routes it is also
said which groups are empty, unknown or too small, and which routes are not there. That ends with 8,
too, because the next file of groups may be better; but a server does not start with these files.

Examples:

  fermata policy lint policy.yaml
  fermata policy lint policy.yaml --groups groups.yaml --routes routes.yaml`,

	"policy explain": `With two files: an input is {"tool": …, "args": …, "account": …, "at": …}, as in docs/policy.md; without "at" it is asked now, and
"effects", "cost", "risk" and "revision" that are left out are not known, unless the file of rules tells them of the tool. With --tool the server says
what its own rules would say. Nothing is done in either case.

Examples:

  fermata policy explain policy.yaml input.json
  fermata policy explain --tool refund --args '{"cents":2500}' --requester bob`,

	"policy diff": `The exit code is 8 if the new file lets anything through more easily: have a person look at that. Inputs are recorded by whoever calls the
rules, as lines of JSON. What a server has ruled is asked of it with fermata policy simulate --replay.

Examples:

  fermata policy diff policy.yaml new.yaml
  fermata policy diff policy.yaml new.yaml --inputs inputs.jsonl --json`,

	"policy simulate": `Nothing is done, and nobody is asked. With --inputs what the rules say is counted: inputs are recorded by whoever calls the rules, as lines of JSON. With
--replay the server compares what it has ruled with what this file would have said: how much stays, gets stricter or looser, by which rule, with examples, and without
arguments. The exit code is 8 if anything would have been easier. It is for auditors and admins.

Examples:

  fermata policy simulate --replay 30d new.yaml
  fermata policy simulate policy.yaml --inputs inputs.jsonl`,

	"policy show": `The text is that of the file, byte for byte. A server keeps every policy by which an action of your account was judged, so that what a digest in a request or
in the audit log stands for can be read years later.

Examples:

  fermata policy show
  fermata policy show sha256:4f1c… --json`,

	"routes": `A route says who is told of a request, and when, see docs/routes.md. These commands read files.

Example:

  fermata routes check routes.yaml`,

	"routes check": `Everything that is wrong is said at once, and the exit code is 2.

Example:

  fermata routes check routes.yaml`,

	"routes simulate": `What is sent is taken to arrive at once, and nobody to look at it.

Examples:

  fermata routes simulate routes.yaml
  fermata routes simulate routes.yaml db-prod --at "2026-11-16 23:00" --zone Europe/Zurich`,
}
