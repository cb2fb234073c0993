package claude_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/claudetest"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/claude"
)

// The CLI reports only the last of several deferred calls, and forgets the others.
func TestClaude_OfTwoCallsInOneMessageOneWaitsAndTheOtherIsMadeAgain(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	echo := func(name string) claudetest.Block {
		return claudetest.Call("Bash", map[string]any{"command": "echo " + name + " | tee -a done"})
	}
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		var texts []string
		for _, result := range c.Results {
			texts = append(texts, result.Text)
		}
		switch {
		case len(c.Results) == 0:
			return []claudetest.Block{echo("one"), echo("two")}
		case strings.Contains(strings.Join(texts, " "), "make it again") && len(c.Results) == 2:
			return []claudetest.Block{echo("two")}
		}
		return []claudetest.Block{claudetest.Text(strings.Join(texts, " / "))}
	})
	d := start(t, newProvider(t, model, bash(work)), "do both")
	first := d.waits()
	d.decide(first, `{"verb":"approve"}`)
	second := d.waits()
	if second.ID == first.ID || string(second.Data) == string(first.Data) {
		t.Errorf("it asks %s twice", second.Data)
	}
	d.decide(second, `{"verb":"approve"}`)
	got := d.completes()
	if !strings.Contains(got.Content, "one / two") {
		t.Errorf("the model got %q", got.Content)
	}
	if data, err := os.ReadFile(filepath.Join(work, "done")); string(data) != "one\ntwo\n" {
		t.Errorf("the tools wrote %q, %v", data, err)
	}
}

// The model makes the two other calls again together, in a message of the resumed process.
func TestClaude_OfThreeCallsInOneMessageEachRunsOnce(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		var calls []claudetest.Block
		for _, name := range []string{"one", "two", "three"} {
			if !slices.ContainsFunc(c.Results, func(r claudetest.Result) bool { return r.Text == name }) {
				calls = append(calls, claudetest.Call("Bash", map[string]any{"command": "echo " + name + " | tee -a done"}))
			}
		}
		if len(calls) == 0 {
			return []claudetest.Block{claudetest.Text("all are done")}
		}
		return calls
	})
	d := start(t, newProvider(t, model, bash(work)), "do all")
	for range 3 {
		d.decide(d.waits(), `{"verb":"approve"}`)
	}
	d.completes()
	if data, err := os.ReadFile(filepath.Join(work, "done")); string(data) != "one\ntwo\nthree\n" {
		t.Errorf("the tools wrote %q, %v", data, err)
	}
}

// A call that a subagent makes ends the subagent without a pause, so there are none.
func TestClaude_ThereAreNoSubagents(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"Agent", "Task"} {
		if _, err := claude.New(claude.Config{Graphs: []claude.Graph{{Name: "g", Tools: []string{tool}}}}); err == nil {
			t.Errorf("a graph with the tool %s is accepted", tool)
		}
	}
	var offered []string
	var once sync.Once
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		once.Do(func() { offered = c.Tools })
		return []claudetest.Block{claudetest.Text("done")}
	})
	start(t, newProvider(t, model, bash(t.TempDir())), "hello").completes()
	if !slices.Contains(offered, "Bash") || slices.Contains(offered, "Agent") || slices.Contains(offered, "Task") {
		t.Errorf("the model is offered the tools %q", offered)
	}
}

// If the hook does not answer, the CLI applies its own permissions and goes on.
func TestClaude_WithoutItsHookNothingRunsAndTheExecutionFails(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo did >>done"}))
	settings := config(t, model, bash(work))
	script, err := filepath.Abs("testdata/broken-hook.sh")
	if err != nil {
		t.Fatal(err)
	}
	settings.Command, settings.Environment = script, append(settings.Environment, "REAL_CLAUDE="+settings.Command)
	broken, err := claude.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, broken, "do it")
	if result, err := d.execute(); err == nil {
		t.Errorf("without a hook it returned %#v", result.Outcome)
	}
	d.provider = newProvider(t, model, bash(work))
	d.decide(d.waits(), `{"verb":"approve"}`)
	d.provider = broken
	if result, err := d.execute(); err == nil {
		t.Errorf("resumed without a hook it returned %#v", result.Outcome)
	}
	if n := lineCount(t, filepath.Join(work, "done")); n != 0 || len(d.ledger.begun) != 0 {
		t.Errorf("the tool ran %d times, and the ledger has %+v", n, d.ledger.begun)
	}
	d.provider = newProvider(t, model, bash(work))
	d.completes()
	if n := lineCount(t, filepath.Join(work, "done")); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// The CLI has no lock: two processes that resume one session both make the call.
func TestI4_ConcurrentResumesMakeTheCallOnce(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo did >>done; echo fine"}))
	d := start(t, newProvider(t, model, bash(work)), "do it")
	d.decide(d.waits(), `{"verb":"approve"}`)
	var both sync.WaitGroup
	for range 2 {
		other := *d
		other.provider = newProvider(t, model, bash(work))
		both.Go(func() { _, _ = other.execute() }) // either may fail
	}
	both.Wait()
	if n := lineCount(t, filepath.Join(work, "done")); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// After a kill the CLI makes the call again when it is resumed.
func TestI4_CallOfAKilledProcessIsInDoubt(t *testing.T) {
	t.Parallel()
	for _, happened := range []bool{true, false} {
		t.Run(fmt.Sprint("happened ", happened), func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			// the first attempt ends the CLI
			command := "echo did >>done; if [ ! -e killed ]; then touch killed; kill -9 $PPID; sleep 60; fi; echo fine"
			model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": command}))
			d := start(t, newProvider(t, model, bash(work)), "do it")
			d.decide(d.waits(), `{"verb":"approve"}`)
			if result, err := d.execute(); err == nil {
				t.Fatalf("its process was killed, and it returned %#v", result.Outcome)
			}
			d.provider = newProvider(t, model, bash(work))
			doubt := d.waits()
			if doubt.Kind != fermata.EffectInDoubt.Name() {
				t.Fatalf("it asks %+v", doubt)
			}
			if n := lineCount(t, filepath.Join(work, "done")); n != 1 {
				t.Fatalf("the tool ran %d times", n)
			}
			want, runs := "The result: fine", 2
			d.decide(doubt, `{"happened":false}`)
			if happened {
				want, runs = "it was fine", 1
				d.decide(doubt, `{"happened":true,"receipt":"it was fine"}`)
			}
			if got := d.completes(); !strings.Contains(got.Content, want) {
				t.Errorf("the model got %q", got.Content)
			}
			if n := lineCount(t, filepath.Join(work, "done")); n != runs {
				t.Errorf("the tool ran %d times", n)
			}
		})
	}
}

func TestClaude_VoidApprovalAsksAgain(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo did >>done; echo fine"}))
	d := start(t, newProvider(t, model, bash(work)), "do it")
	first := d.waits()
	d.decide(first, `{"verb":"approve","conditions":{"onlyIf":"args.x == 1"}}`)
	d.ledger.void = &fermata.VoidApprovalError{Reason: "the condition does not hold"}
	second := d.waits()
	if second.ID == first.ID || !strings.Contains(string(second.Data), "the condition does not hold") {
		t.Errorf("it asks %s", second.Data)
	}
	if n := lineCount(t, filepath.Join(work, "done")); n != 0 {
		t.Errorf("the tool ran %d times", n)
	}
	d.decide(second, `{"verb":"approve"}`)
	d.completes()
	if n := lineCount(t, filepath.Join(work, "done")); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
}

// Two replicas have no file in common. The session id, paths and the key stay inside.
func TestI7_SessionIsRestoredOnAnotherReplicaAndStaysInside(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo fine"}))
	settings := config(t, model, bash(work))
	settings.TempDir = t.TempDir()
	p, err := claude.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	d := start(t, p, "do it")
	q := d.waits()
	left, err := os.ReadDir(settings.TempDir)
	if err != nil || len(left) != 0 {
		t.Errorf("the first replica keeps %v, %v", left, err)
	}
	d.provider = newProvider(t, model, bash(work))
	d.decide(q, `{"verb":"approve"}`)
	result := d.completes()
	public := fmt.Sprintf("%+v %s %+v %s", q, q.Data, result, result.Output)
	for _, secret := range []string{d.run.Ref, settings.TempDir, "sk-ant"} {
		if strings.Contains(public, secret) {
			t.Errorf("the results have %q: %s", secret, public)
		}
	}
}

// A tool without a question that is called next to one that waits: both results must reach the
// model in the end.
func TestClaude_CallNextToOneThatWaitsIsNotLost(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	tools := claudetest.NewTools(t, map[string]claudetest.Tool{
		"look": func(context.Context, json.RawMessage) (string, error) { return "looked", nil },
	})
	graph := bash(work)
	graph.Tools, graph.MCPServers = []string{"mcp__work__look"}, tools.Settings()
	for name, first := range map[string]bool{"before": true, "behind": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
				all := []claudetest.Block{claudetest.Call("mcp__work__look", map[string]any{}), claudetest.Call("Bash", map[string]any{"command": "echo fine"})}
				if !first {
					slices.Reverse(all)
				}
				var texts []string
				for _, result := range c.Results {
					texts = append(texts, result.Text)
				}
				seen := strings.Join(texts, " / ")
				switch {
				case len(c.Results) == 0:
					return all
				case !strings.Contains(seen, "looked"):
					return []claudetest.Block{claudetest.Call("mcp__work__look", map[string]any{})}
				}
				return []claudetest.Block{claudetest.Text(seen)}
			})
			d := start(t, newProvider(t, model, graph), "look")
			d.decide(d.waits(), `{"verb":"approve"}`)
			got := d.completes()
			if !strings.Contains(got.Content, "looked") || !strings.Contains(got.Content, "fine") {
				t.Errorf("the model got %q", got.Content)
			}
		})
	}
}

func TestClaude_FailureOfTheModelIsAnErrorAndNotAResult(t *testing.T) {
	t.Parallel()
	model := claudetest.NewModel(t, nil)
	if err := os.WriteFile(model.KeyFile, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	model.AllowFailures()
	d := start(t, newProvider(t, model, bash(t.TempDir())), "hello")
	result, err := d.execute()
	if err == nil {
		t.Fatalf("with a wrong key it returned %#v", result.Outcome)
	}
	if logged, ok := err.(provider.LogError); !ok || strings.Contains(logged.ForLog(), d.run.Ref) {
		t.Errorf("the error is %v", err)
	}
}

// The CLI replaces @PATH in a prompt by the file, without a call of a tool: an agent that starts a
// run could read the files of this machine.
func TestClaude_PromptCannotReadFiles(t *testing.T) {
	t.Parallel()
	work, other := t.TempDir(), t.TempDir()
	var prompt string
	for _, folder := range []string{work, other} {
		path := filepath.Join(folder, "key.txt")
		if err := os.WriteFile(path, []byte("the secret of this machine"), 0o600); err != nil {
			t.Fatal(err)
		}
		prompt += " @" + path + " @" + folder
	}
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		return []claudetest.Block{claudetest.Text(c.Prompt)}
	})
	d := start(t, newProvider(t, model, bash(work)), "repeat"+prompt+" @key.txt")
	if got := d.completes(); strings.Contains(got.Content, "secret of this") || !strings.Contains(got.Content, "@key.txt") {
		t.Errorf("the model got %q", got.Content)
	}
}

// A prompt that begins with a slash would run a command of the CLI, some with calls of git, without
// a question.
func TestClaude_PromptCannotRunCommandsOfTheCLI(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{"/context", "/init", "/security-review"} {
		model := claudetest.NewModel(t, func(claudetest.Conversation) []claudetest.Block {
			return []claudetest.Block{claudetest.Text("the model was called")}
		})
		d := start(t, newProvider(t, model, bash(t.TempDir())), prompt)
		if got := d.completes(); got.Content != prompt+" isn't available in this environment." {
			t.Errorf("%s: %q", prompt, got.Content)
		}
	}
}

func TestCheckCLI_GetsNoSecretsOfTheServer(t *testing.T) {
	t.Setenv("FERMATA_STORE_PASSWORD", "secret")
	folder := t.TempDir()
	command := filepath.Join(folder, "cli")
	if err := os.WriteFile(command, []byte("#!/bin/sh\nenv >\"${0%/*}/env\"\necho '2.1.89 (CLI)'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := claude.New(claude.Config{Command: command, TempDir: t.TempDir()})
	if err == nil {
		_, err = p.CheckCLI(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(folder, "env")); err != nil || !strings.Contains(string(got), "CLAUDE_CONFIG_DIR=") || strings.Contains(string(got), "secret") {
		t.Errorf("the CLI got %s, %v", got, err)
	}
}
