// Package policy judges actions by rules: whether an action may be done, must not be done, or whom to ask, until when.
//
//	version: "2026-11-14"
//	default: ask
//	defaults:
//	  ask: {groups: [{from: ["group:oncall"]}], deadline: 24h}
//	rules:
//	- id: small-refunds
//	  when: req.tool == "refund" && args.cents <= 2000
//	  then: allow
//	- id: no-refunds-to-ourselves
//	  when: req.tool == "refund" && args.customer.startsWith("staff-")
//	  then: deny
//	  reason: refunds to staff go through payroll
//
// Rules are read by [Load], whole or not at all, and judged by [Set.Decide]:
//
//	set, err := policy.Load("policy.yaml", bytes, policy.Options{})
//	decision, err := set.Decide(policy.Input{Account: "acme", Tool: "refund", Args: args, At: now})
//	decision.Explain(os.Stdout)
//
// All rules are judged. Deny comes before ask, ask before allow, and the default is for what no rule speaks of. Several
// rules that ask become one requirement which is as strict as the strictest of each part. A rule that cannot be judged,
// because an argument is missing or it costs too much, counts as if it had hit if it asks or denies, and not at all if it
// allows: what goes wrong closes.
//
// Everything here is pure. A set has no clock, reads no file and asks nobody: time, and numbers from the past, come in with
// the [Input]. [Set.CounterQueries] says which numbers that are. So a decision can be made again from what was recorded:
//
//	who calls                          policy
//	   │  Demands(input)  ────────────►  which counters, over which window
//	   │  numbers from the store
//	   │  Decide(input + numbers) ────►  Decision: verdict, requirement, trace, charges
//	   │  keeps decision and charges
//
// A [Hook] does this behind [fermata.Approve]; a [LiveSet] exchanges the set while decisions go on. Package grant remembers
// answers within bounds, package replay compares sets over recorded inputs, package cases runs the tests of a file of rules.
// The grammar is in docs/policy.md.
package policy
