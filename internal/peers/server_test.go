//go:build unix

package peers

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/testserver"
)

// timeout limits what a test waits for. Failed work is tried again with growing delays, so it is
// much longer than usually needed.
const timeout = 90 * time.Second

// server is a process of "fermata serve". After a kill, start starts the next one, with the same
// data and the same address.
type server struct {
	testing.TB
	url, store string
	env        []string
	keys       map[string]string // by person
	guard      *testserver.Guard
	log        buffer

	mu      sync.Mutex
	cmd     *exec.Cmd
	clients map[string]*client.Client // by person
}

// buffer collects the output of a process.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// people are the callers of the servers, with their roles.
var people = map[string]string{"bot": "agent", "ann": "approver", "bob": "approver", "eve": "approver", "aud": "auditor", "ops": "admin"}

// newServer starts a server with settings.
func newServer(t testing.TB, settings ...string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s := &server{TB: t, url: "http://" + addr, store: "sqlite:" + filepath.Join(t.TempDir(), "f.db"), keys: make(map[string]string), clients: make(map[string]*client.Client)}
	s.env = append([]string{
		asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "FERMATA_STORE_URL=" + s.store, "FERMATA_LISTEN_ADDR=" + addr, "FERMATA_METRICS_ADDR=127.0.0.1:0", "FERMATA_LOG_LEVEL=debug",
		"FERMATA_RUNS_LEASE=1s", "FERMATA_RUNS_WAIT=20s", "FERMATA_LIMITS_RATE=10000", "FERMATA_LIMITS_BURST=10000",
	}, settings...)
	if s.guard, err = testserver.NewGuard("KILL", "", nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.guard.Dismiss(); err != nil {
			t.Error(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		_ = s.cmd.Wait() // the guard has killed it
		if t.Failed() {
			text := s.log.String()
			t.Logf("the log of the server:\n%s", text[max(0, len(text)-6000):])
		}
	})
	s.start()
	for name, role := range people {
		s.keys[name] = strings.TrimSpace(s.must("", "keys", "create", "acme", name, role, "--store", s.store))
	}
	return s
}

// start starts a process, and waits until it accepts connections.
func (s *server) start() {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmd = s.command("", "serve")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		s.Error(err)
		return
	}
	if err := s.guard.Watch(s.cmd.Process.Pid); err != nil {
		s.Error(err)
	}
	for deadline := time.Now().Add(timeout / 3); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			s.Errorf("the server does not listen: %v", err)
			return
		}
	}
}

// kill kills the process, as kill -9 does.
func (s *server) kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// pid is the id of the current process.
func (s *server) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Pid
}

// command is a command of the program, with the key of a person.
func (s *server) command(who string, args ...string) *exec.Cmd {
	s.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(s.env[:len(s.env):len(s.env)], "FERMATA_URL="+s.url, "FERMATA_TOKEN="+s.keys[who])
	return cmd
}

// must runs a command as a person, and returns what it prints.
func (s *server) must(who string, args ...string) string {
	s.Helper()
	cmd := s.command(who, args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("fermata %s: %v\n%s%s", strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out)
}

// as returns a client with the key of a person.
func (s *server) as(who string) *client.Client {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[who]; c != nil {
		return c
	}
	c, err := client.New(s.url, s.keys[who])
	if err != nil {
		s.Fatal(err)
	}
	s.clients[who] = c
	return c
}

// on returns the server for a subtest.
func (s *server) on(t testing.TB) *server {
	return &server{TB: t, url: s.url, store: s.store, env: s.env, keys: s.keys, clients: make(map[string]*client.Client)}
}

// ended waits for the end of a run.
func (s *server) ended(key string) (end client.RunView) {
	s.Helper()
	s.until("the end of "+key, func() (bool, error) {
		var err error
		end, err = s.as("ops").Run(s.Context(), key)
		return err == nil && slices.Contains([]string{"completed", "failed", "parked", "cancelled", "expired"}, end.Status), fmt.Errorf("%s, %w", end.Status, err)
	})
	return end
}

// until repeats a call until it reports success.
func (s *server) until(what string, try func() (bool, error)) {
	s.Helper()
	var last error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(25 * time.Millisecond) {
		done, err := try()
		if done {
			return
		}
		last = err
	}
	s.Fatalf("%s: not within %v: %v", what, timeout, fmt.Sprint(last))
}
