package claude_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/claudetest"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/claude"
)

// onceCalling returns a script that makes one call, and then reports its result.
func onceCalling(tool string, input any) claudetest.Script {
	return func(c claudetest.Conversation) []claudetest.Block {
		if len(c.Results) == 0 {
			return []claudetest.Block{claudetest.Call(tool, input)}
		}
		return []claudetest.Block{claudetest.Text("The result: " + c.Last().Text)}
	}
}

func bash(work string) claude.Graph {
	return claude.Graph{Name: "shell", WorkDir: work, Ask: []string{"Bash"}}
}

// lineCount returns how many lines a file has; 0 if it is missing.
func lineCount(t testing.TB, path string) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

func TestClaude_ApprovedCallRunsOnceInANewProcess(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo did >>done; echo fine", "description": "Do it"}))
	d := start(t, newProvider(t, model, bash(work)), "do it")
	q := d.waits()
	var shown fermata.ApprovalRequest
	if err := json.Unmarshal(q.Data, &shown); err != nil || q.Kind != "approval" || shown.Action != "Bash" || shown.Summary != "Do it" {
		t.Errorf("it asks %s %s, %v", q.Kind, q.Data, err)
	}
	if n := lineCount(t, filepath.Join(work, "done")); n != 0 {
		t.Fatalf("the tool ran %d times without an approval", n)
	}
	d.decide(q, `{"verb":"approve"}`)
	if got := d.completes(); got.Content != "The result: fine" {
		t.Errorf("it ended with %q", got.Content)
	}
	if n := lineCount(t, filepath.Join(work, "done")); n != 1 {
		t.Errorf("the tool ran %d times", n)
	}
	if len(d.ledger.begun) != 1 || d.ledger.lines[lineKey(d.ledger.begun[0])].State != fermata.EffectSucceeded {
		t.Errorf("the ledger has %+v", d.ledger.lines)
	}
}

func TestClaude_EditedArgumentsAreTheOnesThatRun(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo no >>done"}))
	d := start(t, newProvider(t, model, bash(work)), "do it")
	d.decide(d.waits(), `{"verb":"approve","args":{"command":"echo edited | tee -a done"}}`)
	if got := d.completes(); got.Content != "The result: edited" {
		t.Errorf("it ended with %q", got.Content)
	}
	if data, err := os.ReadFile(filepath.Join(work, "done")); string(data) != "edited\n" {
		t.Errorf("the tool wrote %q, %v", data, err)
	}
}

func TestClaude_RejectedCallDoesNotRunAndTheModelGetsTheReason(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	model := claudetest.NewModel(t, onceCalling("Bash", map[string]any{"command": "echo no >>done"}))
	d := start(t, newProvider(t, model, bash(work)), "do it")
	d.decide(d.waits(), `{"verb":"reject","reason":"use staging"}`)
	got := d.completes()
	if !strings.Contains(got.Content, "ann rejected this call") || !strings.Contains(got.Content, "use staging") {
		t.Errorf("it ended with %q", got.Content)
	}
	if n := lineCount(t, filepath.Join(work, "done")); n != 0 || len(d.ledger.begun) != 0 {
		t.Errorf("the tool ran %d times, and the ledger has %+v", n, d.ledger.begun)
	}
}

func TestClaude_QuestionsOfTheModelAreAnsweredByPeople(t *testing.T) {
	t.Parallel()
	questions := map[string]any{"questions": []any{map[string]any{
		"question": "Which database?", "header": "Database", "multiSelect": false,
		"options": []any{map[string]any{"label": "Postgres", "description": "ours"}, map[string]any{"label": "SQLite", "description": "small"}},
	}}}
	model := claudetest.NewModel(t, onceCalling("AskUserQuestion", questions))
	d := start(t, newProvider(t, model, claude.Graph{Name: "ask", Ask: []string{"AskUserQuestion"}}), "choose")
	q := d.waits()
	if q.Kind != "claude-question" {
		t.Errorf("it asks %+v", q)
	}
	for _, wrong := range []string{`{"Which database?":"Oracle"}`, `{}`, `"Postgres"`, `{"Which database?":"Postgres","Which database? (other)":"both"}`} {
		if _, err := d.provider.CheckAnswer(t.Context(), d.run, q.ID, json.RawMessage(wrong)); err == nil {
			t.Errorf("the answer %s is accepted", wrong)
		}
	}
	d.decide(q, `{"Which database? (other)":"MariaDB"}`)
	if got := d.completes(); !strings.Contains(got.Content, `"Which database?"="MariaDB"`) {
		t.Errorf("it ended with %q", got.Content)
	}
}

// contentReview is the content review: the model asks people about its draft until it is approved.
func contentReview() claude.Graph {
	return claude.Graph{Name: "content-review", Questions: []claude.Question{{
		Kind: "content-review", Description: "Ask a person to review a draft.",
		Input:  json.RawMessage(`{"type":"object","required":["draft"],"properties":{"draft":{"type":"string"}}}`),
		Answer: json.RawMessage(`{"type":"object","required":["action"],"properties":{"action":{"enum":["approve","revise"]},"feedback":{"type":"string"}},"additionalProperties":false}`),
	}}}
}

func TestClaude_ContentReview(t *testing.T) {
	t.Parallel()
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		if strings.Contains(c.Last().Text, `"approve"`) {
			return []claudetest.Block{claudetest.Text("published")}
		}
		return []claudetest.Block{claudetest.Call("mcp__fermata__content-review", map[string]any{"draft": "Draft after " + c.Last().Text})}
	})
	d := start(t, newProvider(t, model, contentReview()), "write about tea")
	first := d.waits()
	d.decide(first, `{"action":"revise","feedback":"shorter"}`)
	second := d.waits()
	if second.ID == first.ID || !strings.Contains(string(second.Data), "shorter") {
		t.Errorf("it asks %s after %s", second.Data, first.Data)
	}
	d.decide(second, `{"action":"approve"}`)
	if got := d.completes(); got.Content != "published" {
		t.Errorf("it ended with %q", got.Content)
	}
}

var _ provider.Owner = (*driver)(nil)
