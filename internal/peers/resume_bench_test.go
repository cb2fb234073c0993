//go:build unix

package peers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/claudetest"
)

// compare measures the time from a decision to the end of the resumed run, through Fermata and for
// the peer alone. Both sides alternate, each with its own paused run, so that the load of the
// machine hits both.
func compare(b *testing.B, direct, fermata func(n int) (resume func())) {
	b.Helper()
	var alone, through []float64
	n := 0
	for b.Loop() {
		for _, side := range []struct {
			pause func(int) func()
			times *[]float64
		}{{direct, &alone}, {fermata, &through}} {
			resume := side.pause(n)
			began := time.Now()
			resume()
			*side.times = append(*side.times, float64(time.Since(began).Microseconds())/1000)
		}
		n++
	}
	slices.Sort(alone)
	slices.Sort(through)
	b.ReportMetric(0, "ns/op") // without a meaning: it includes the starts
	b.ReportMetric(alone[len(alone)/2], "peer-ms")
	b.ReportMetric(through[len(through)/2], "fermata-ms")
	b.ReportMetric(through[len(through)/2]/alone[len(alone)/2], "ratio")
}

// paused starts a run, and returns a function that decides its only request.
func (s *server) paused(graph, input, key, answer string) func() {
	s.Helper()
	s.must("bot", "run", graph, input, "--key", key)
	request := s.reviewed(key, 1)
	return func() {
		outcome, err := s.as("ann").Decide(s.Context(), request.ID, api.Decide{Answer: json.RawMessage(answer), Shown: request.Shown})
		if err != nil || !strings.Contains(fmt.Sprintf("%T", outcome), "Completed") {
			s.Fatalf("%#v, %v", outcome, err)
		}
	}
}

func BenchmarkResume_LangGraph(b *testing.B) {
	peer := newLangGraph(b)
	s := newServer(b, peer.settings("leaky")...)
	compare(b, func(int) func() {
		thread := peer.pause("leaky", `{"topic":"x"}`)
		return func() {
			if values := peer.continueThread(thread, `{"assistant_id":"leaky","command":{"resume":{"go":true}}}`); values["note"] == nil {
				b.Fatalf("%v", values)
			}
		}
	}, func(n int) func() {
		return s.paused("langgraph:leaky", `{"topic":"x"}`, fmt.Sprint("run-", n), `{"go":true}`)
	})
}

func BenchmarkResume_Claude(b *testing.B) {
	cli := newClaude(b, func(c claudetest.Conversation) []claudetest.Block {
		if len(c.Results) == 0 {
			return []claudetest.Block{claudetest.Call("Bash", map[string]any{"command": "echo fine"})}
		}
		return []claudetest.Block{claudetest.Text(c.Last().Text)}
	})
	s := newServer(b, cli.settings("  - {name: shell, ask: [Bash]}\n")...)
	compare(b, func(n int) func() {
		alone := cli.alone(n)
		alone.run("defer", "--session-id")
		return func() {
			if out := alone.run("allow", "--resume"); !strings.Contains(out, `"result":"fine"`) {
				b.Fatal(out)
			}
		}
	}, func(n int) func() {
		return s.paused("claude:shell", `{"prompt":"go"}`, fmt.Sprint("run-", n), `{"verb":"approve"}`)
	})
}

// session is a session of the CLI without Fermata. A file is its hook.
type session struct {
	*claude
	dir, id string
}

func (c *claude) alone(n int) *session {
	c.Helper()
	s := &session{claude: c, dir: c.TempDir(), id: fmt.Sprintf("00000000-0000-4000-8000-%012d", n)}
	settings := fmt.Sprintf(`{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"cat %s/hook"}]}]}}`, s.dir)
	if err := os.WriteFile(filepath.Join(s.dir, "settings.json"), []byte(settings), 0o600); err != nil {
		c.Fatal(err)
	}
	return s
}

// run runs a process of the CLI whose hook has a decision.
func (s *session) run(decision, flag string) string {
	s.Helper()
	hook := `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + decision + `"}}`
	if err := os.WriteFile(filepath.Join(s.dir, "hook"), []byte(hook), 0o600); err != nil {
		s.Fatal(err)
	}
	key, err := os.ReadFile(s.model.KeyFile)
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(s.cli, "--print", "--output-format", "stream-json", "--verbose", "--setting-sources", "", "--settings", filepath.Join(s.dir, "settings.json"),
		"--strict-mcp-config", "--tools", "Bash", "--permission-prompts", "none", flag, s.id)
	cmd.Dir = s.dir
	if flag == "--session-id" {
		cmd.Stdin = strings.NewReader("go")
	}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "CLAUDE_CONFIG_DIR=" + s.dir + "/config", "TMPDIR=" + s.dir, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "NO_PROXY=127.0.0.1", "CLAUDE_CODE_DISABLE_ATTACHMENTS=1",
		"ANTHROPIC_BASE_URL=" + s.model.URL, "ANTHROPIC_API_KEY=" + string(bytes.TrimSpace(key)),
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
