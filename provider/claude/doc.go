// Package claude is the provider that drives the Claude CLI, which the operator installs from npm.
// Each execution of a run is one process that ends at the next question: nothing runs while people
// decide, and any replica may continue.
//
//	p, err := claude.New(claude.Config{
//		Command:    "/opt/claude/claude",
//		APIKeyFile: "/run/secrets/anthropic",
//		Graphs: []claude.Graph{{
//			Name: "release", WorkDir: "/srv/release",
//			Tools: []string{"Read", "Grep"},            // need no decision
//			Ask:   []string{"Bash", "AskUserQuestion"}, // wait for a person
//		}},
//	})
//
// A run of "claude:release" has the input {"prompt": "…"}. The CLI asks the provider about each
// tool call, through a hook in its settings. The provider answers "defer" to the first call that a
// person must decide about, and the process ends. After the decision a new process continues the
// session:
//
//	executor          provider                CLI                  model
//	   │── Execute ──────▶│── start ───────────▶│── messages ────────▶│
//	   │                  │◀─ hook: Bash, id ───│◀──────── tool call ─│
//	   │                  │── defer ───────────▶│ exits
//	   │◀─ Waiting ───────│ saves the session file
//	   │── Execute ──────▶│── start, resume ───▶│
//	   │    (answer)      │◀─ hook: Bash, id ───│
//	   │                  │── allow, arguments ▶│ runs Bash
//	   │                  │◀─ tool result ──────│── messages ────────▶│
//
// The session file is stored with the run, encrypted like all of its state, and is restored into a
// private temporary directory for each process. The session id is the provider ref.
//
// A call of a tool in [Graph.Ask] is an approval of exactly its arguments, and an effect: the
// ledger records it before the tool runs and after its result is known. A call whose process died
// is in doubt, and a person says whether it happened; it is never repeated blindly. Calls of tools
// in [Graph.Tools] are not recorded: after a crash, those since the last question are repeated.
//
// The CLI reports only one of several deferred calls of a message and forgets the others. So one
// call waits at a time, and the provider denies the others with the instruction to make them again.
// Calls from subagents cannot wait and are denied too.
package claude
