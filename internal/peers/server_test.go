//go:build unix

package peers

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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

	mu  sync.Mutex
	cmd *exec.Cmd
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
	f := &server{TB: t, url: "http://" + addr, store: "sqlite:" + filepath.Join(t.TempDir(), "f.db"), keys: make(map[string]string)}
	f.env = append([]string{
		asProgram + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "FERMATA_STORE_URL=" + f.store, "FERMATA_LISTEN_ADDR=" + addr, "FERMATA_METRICS_ADDR=off",
		"FERMATA_RUNS_LEASE=1s", "FERMATA_RUNS_WAIT=20s", "FERMATA_LIMITS_RATE=10000", "FERMATA_LIMITS_BURST=10000",
	}, settings...)
	if f.guard, err = testserver.NewGuard("KILL", "", nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.guard.Dismiss(); err != nil {
			t.Error(err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = f.cmd.Wait() // the guard has killed it
		if t.Failed() {
			text := f.log.String()
			t.Logf("the log of the server:\n%s", text[max(0, len(text)-6000):])
		}
	})
	f.start()
	for name, role := range people {
		f.keys[name] = strings.TrimSpace(f.must("", "keys", "create", "acme", name, role, "--store", f.store))
	}
	return f
}

// start starts a process, and waits until it accepts connections.
func (f *server) start() {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cmd = f.command("", "serve")
	f.cmd.Stdout, f.cmd.Stderr = &f.log, &f.log
	if err := f.cmd.Start(); err != nil {
		f.Error(err)
		return
	}
	if err := f.guard.Watch(f.cmd.Process.Pid); err != nil {
		f.Error(err)
	}
	for deadline := time.Now().Add(timeout); ; time.Sleep(5 * time.Millisecond) {
		conn, err := net.Dial("tcp", strings.TrimPrefix(f.url, "http://"))
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) {
			f.Errorf("the server does not listen: %v", err)
			return
		}
	}
}

// kill kills the process, as kill -9 does.
func (f *server) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
}

// pid is the id of the current process.
func (f *server) pid() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cmd.Process.Pid
}

// command is a command of the program, with the key of a person.
func (f *server) command(who string, args ...string) *exec.Cmd {
	f.Helper()
	exe, err := os.Executable()
	if err != nil {
		f.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(f.env[:len(f.env):len(f.env)], "FERMATA_URL="+f.url, "FERMATA_TOKEN="+f.keys[who])
	return cmd
}

// must runs a command as a person, and returns what it prints.
func (f *server) must(who string, args ...string) string {
	f.Helper()
	cmd := f.command(who, args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		f.Fatalf("fermata %s: %v\n%s%s", strings.Join(args, " "), err, out, errOut.String())
	}
	return string(out)
}

// as returns a client with the key of a person.
func (f *server) as(who string) *client.Client {
	f.Helper()
	c, err := client.New(f.url, f.keys[who])
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// until repeats a call until it reports success.
func (f *server) until(what string, try func() (bool, error)) {
	f.Helper()
	var last error
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		done, err := try()
		if done {
			return
		}
		last = err
	}
	f.Fatalf("%s: not within %v: %v", what, timeout, fmt.Sprint(last))
}
