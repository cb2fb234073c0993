// Package policy evaluates rules on actions. A rule set allows an action, denies it, or asks people
// for approval, with a deadline. docs/policy.md describes the grammar, and the public package
// policy has an example.
//
// [Load] reads a rule file as a whole or not at all. [Set.Decide] evaluates the rules:
//
//	set, err := policy.Load("policy.yaml", bytes, policy.Options{})
//	decision, err := set.Decide(policy.Input{Account: "acme", Tool: "refund", Args: args, At: now})
//	decision.Explain(os.Stdout)
//
// All rules are evaluated. Deny wins over ask, ask wins over allow, and the default applies if no
// rule matches. Several rules that ask are merged into one requirement that is at least as strict
// as each of them. A rule that fails, because an argument is missing or the evaluation costs too
// much, counts as a match if it asks or denies, and not if it allows: errors never allow an action.
//
// The package is pure. A set has no clock, reads no file and makes no calls. The time and the
// counter values come with the [Input]. [Set.CounterQueries] returns the counters that the rules
// need. So a decision can be reproduced from recorded data:
//
//	caller                             policy
//	   │  CounterQueries(input) ──────►  which counters, over which window
//	   │  counter values from the store
//	   │  Decide(input + counters) ───►  Decision: verdict, requirement, trace, charges
//	   │  stores decision and charges
//
// A [Hook] connects a set to [fermata.Approve]. A [LiveSet] replaces the set while decisions are
// made. Package grant remembers approvals within bounds, package replay compares sets over recorded
// inputs, and package cases runs the tests of a rule file. docs/policy.md describes the grammar.
package policy
