package app

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/claudetest"
)

// The real CLI runs the hook with the printed settings: an edited call runs as edited, a rejected
// one does not run, and the receipts match the approvals.
func TestClaudeHook_RealCLIAsksTheInbox(t *testing.T) {
	cli := claudetest.CLI(t)
	h := openHookEnv(t)
	dir := t.TempDir()
	var ids []string
	bash := func(command string) []claudetest.Block {
		call := claudetest.Call("Bash", map[string]any{"command": command})
		ids = append(ids, call.ID)
		return []claudetest.Block{call}
	}
	model := claudetest.NewModel(t, func(c claudetest.Conversation) []claudetest.Block {
		switch c.Turn {
		case 0:
			return bash("echo original >> ran")
		case 1:
			return bash("echo second >> ran")
		case 2:
			return bash("git push --force")
		case 3:
			return bash("exit 3")
		}
		var all []string
		for _, result := range c.Results {
			all = append(all, result.Text)
		}
		return []claudetest.Block{claudetest.Text(strings.Join(all, "\n"))}
	})

	// --matcher is that of an interactive session; the settings are those of a user
	hooks, err := json.Marshal(map[string]any{"hooks": printedHooks(t, "--wait", "5m")})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"home", "config", "tmp", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "settings.json"), hooks, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(model.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), cli, "--print", "--session-id", hookSession, "--tools", "Bash")
	command.Dir = filepath.Join(dir, "work")
	command.Stdin = strings.NewReader("work")
	command.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(dir, "home"), "CLAUDE_CONFIG_DIR=" + filepath.Join(dir, "config"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "NO_PROXY=127.0.0.1",
		"ANTHROPIC_BASE_URL=" + model.URL, "ANTHROPIC_API_KEY=" + strings.TrimSpace(string(key)),
		"FERMATA_URL=" + h.url, "FERMATA_TOKEN=" + h.keys["bot"], asProgram + "=1",
	}

	answers := []string{
		`{"verb":"approve","args":{"command":"echo edited >> ran"}}`, `{"verb":"reject","reason":"use staging"}`, `{"verb":"approve"}`,
	}
	ready, decided := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(decided)
		for e, err := range h.ann.QueueEvents(t.Context(), "") {
			switch {
			case err != nil:
				return // the test has ended
			case e.Type == api.QueueReady:
				close(ready)
			case e.Type == "opened" && len(answers) > 0:
				h.decideWith(answers[0])(e.Request)
				if answers = answers[1:]; len(answers) == 0 {
					return
				}
			}
		}
	}()
	<-ready
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	<-decided
	for _, want := range []string{"rejected by ann: use staging", "no-force", "never force", "Exit code 3"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the model does not see %q: %s", want, out)
		}
	}
	if ran, err := os.ReadFile(filepath.Join(dir, "work", "ran")); string(ran) != "edited\n" {
		t.Errorf("these calls ran: %q, %v", ran, err)
	}
	if len(ids) != 4 {
		t.Fatalf("%d calls", len(ids))
	}
	for i, outcome := range map[int]string{0: "done", 3: "failed"} {
		run := h.run(ids[i])
		if run.Receipt == nil || run.Receipt.Outcome != outcome || run.Receipt.Digest != run.Requests[0].Decision.ApprovedDigest {
			t.Errorf("the receipt of call %d is %+v", i, run.Receipt)
		}
	}
	for _, i := range []int{1, 2} {
		if run := h.run(ids[i]); run.Receipt != nil {
			t.Errorf("call %d, which was denied, has a receipt: %+v", i, run.Receipt)
		}
	}
	if strings.Contains(h.logged.String(), hookSession) {
		t.Error("the session id is in the log")
	}
}
