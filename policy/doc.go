// Package policy decides on actions by a rule file. Rules allow an action, deny it, or ask people
// for approval.
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
// [Load] is for graphs and agents that run without a server: pass its result to graph.WithPolicy,
// to the configuration of an agent, or to tool.Guard. Packages executor and server read the file
// themselves and also evaluate groups, deadlines, limits and grants.
//
// All rules are evaluated. Deny wins over ask, ask wins over allow, and the default applies if no
// rule matches. A rule that fails counts as a match if it asks or denies, and not if it allows:
// errors never allow an action. docs/policy.md describes the grammar.
package policy
