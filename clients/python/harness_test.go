package python

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testserver"
)

// debian is where Debian installs Python. Another Python of PATH is used if it is missing.
const debian = "/usr/bin/python3"

// python runs Python with the client in its path. Without Python these tests fail; they do not
// skip.
func python(t *testing.T, env []string, args ...string) string {
	t.Helper()
	program := debian
	if _, err := os.Stat(program); err != nil {
		program = "python3"
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), append(env, "PYTHONPATH="+here, "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=error")...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("python3 %v (it needs Python 3.9 or newer): %v\n%s%s", args, err, &out, &errs)
	}
	return out.String() + errs.String()
}

// site is a server with the keys of an agent and of a person.
type site struct{ URL, Token, Person string }

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "fermata-python-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		built = sync.OnceValues(func() (string, error) { return testserver.Program(dir) })
		return m.Run()
	}())
}

var built func() (string, error)

// build builds the program once, and returns its path.
func build(t *testing.T) string {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// demo starts the server with sample graphs. One key is for everything.
func demo(t *testing.T, program string) site {
	t.Helper()
	line := launch(t, `"token"`, program, "demo", "--json", "--every", "0s", "--addr", "127.0.0.1:0", "--data", filepath.Join(t.TempDir(), "data"))
	var s site
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatal(err, line)
	}
	s.Person = s.Token
	return s
}

const rules = `
version: "1"
default: ask
defaults: {ask: {groups: [{from: ["user:ann"]}], deadline: 24h}}
rules:
- {id: reads, when: 'req.tool == "read_file"', then: allow}
- {id: wipes, when: 'req.tool == "wipe"', then: deny, reason: never}
- {id: refunds, when: 'req.tool == "refund"', then: ask, ask: {editable: ["/cents", "/note"]}}
`

// serve starts a server with rules, for the agent bot and the approver ann.
func serve(t *testing.T, program string) site {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, args...).Output()
		if err != nil {
			t.Fatal(args, err)
		}
		return strings.TrimSpace(string(out))
	}
	key := filepath.Join(dir, "key")
	run("key", "make", key)
	config := write("fermata.yaml", fmt.Sprintf("store: {url: %q}\nkey: {file: %q}\nmetrics: {addr: \"off\"}\ndesk: {policyFile: %q}\nlog: {format: json}\n",
		"sqlite:"+filepath.Join(dir, "fermata.db"), key, write("policy.yaml", rules)))
	line := launch(t, `"serving"`, program, "serve", "--config", config, "--addr", "127.0.0.1:0")
	var s site
	if err := json.Unmarshal([]byte(line), &s); err != nil || s.URL == "" {
		t.Fatal(err, line)
	}
	s.Token = run("keys", "create", "acme", "bot", "agent", "--config", config)
	s.Person = run("keys", "create", "acme", "ann", "approver", "--config", config)
	return s
}

// launch starts a server, and returns the line with a word that it prints when it is ready.
func launch(t *testing.T, ready, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), program, args...)
	out := &awaited{word: ready, found: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr = out, out // one writer, so the calls of Write do not overlap
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v\n%s", err, &out.text)
		}
	})
	select {
	case line := <-out.found:
		return line
	case <-time.After(2 * time.Minute):
		t.Fatalf("the server did not print %s", ready)
		return ""
	}
}

// awaited sends the first complete line with a word.
type awaited struct {
	word  string
	found chan string
	text  bytes.Buffer
}

func (a *awaited) Write(data []byte) (int, error) {
	n, err := a.text.Write(data)
	for line := range strings.Lines(a.text.String()) {
		if strings.Contains(line, a.word) && strings.HasSuffix(line, "\n") {
			select {
			case a.found <- line:
			default:
			}
			break
		}
	}
	return n, err
}
