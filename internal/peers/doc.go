// Package peers tests "fermata serve" in front of the real programs that its providers drive:
// LangGraph's development server and the Claude CLI. It contains only tests. Servers, peers and
// commands are processes, and the tests use what a user has: the command, the API and the pages.
//
// The model behind the CLI is scripted (see internal/claudetest), and the tools of the
// agents do their work in the test, which counts it.
//
// FERMATA_TEST=nightly and FERMATA_TEST=soak kill more often.
package peers
