//go:build linux

package app_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testserver"
	"github.com/fermata-go/fermata/internal/testtier"
)

// hostileMemory is how much the resident size of a server may have grown a minute later at most,
// hostilePeak at any time: beside other work the garbage collector is late. Without limits it grows
// by 1.5 GiB.
const hostileMemory, hostilePeak = 50 << 20, 150 << 20

// Clients without credentials send the largest bodies to every path that reads one, and hold them
// back until all have sent all but the last byte. The resident size stays near that of the idle
// server.
func TestServe_MemoryIsBoundedUnderHostileRequests(t *testing.T) {
	testtier.Needs(t, "the built program")
	requests, held := testtier.Count(600, 10_000, 10_000), 300
	pid, addr := serveForStrangers(t)
	warmUp(t, addr)
	before := residentSize(t, pid, "VmRSS")
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil { // reset the peak
		t.Fatal(err)
	}
	body := strings.Repeat("&name="+strings.Repeat("x", 1<<10), 4<<10)
	answers := make(map[string]int)
	for sent := 0; sent < requests; sent += held {
		for status, n := range sendHeld(t, addr, body, sent, min(held, requests-sent)) {
			answers[status] += n
		}
	}
	peak, after := residentSize(t, pid, "VmHWM"), residentSize(t, pid, "VmRSS")
	for end := time.Now().Add(time.Minute); after > before+hostileMemory && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		after = residentSize(t, pid, "VmRSS")
	}
	t.Logf("%d requests: resident size %d MiB before, %d MiB at the peak, %d MiB after; responses %v", requests, before>>20, peak>>20, after>>20, answers)
	if after > before+hostileMemory || peak > before+hostilePeak {
		t.Errorf("the resident size grew by %d MiB, at the peak by %d", (after-before)>>20, (peak-before)>>20)
	}
}

// hostilePaths are paths that accept a body of anybody, or need a session that the client lacks.
var hostilePaths = []struct {
	path, kind string
	size       int
}{
	{"/signin/password", "application/x-www-form-urlencoded", 2 << 20},
	{"/signin/password", "application/x-www-form-urlencoded", 16 << 10},
	{"/signin/passkey", "application/x-www-form-urlencoded", 16 << 10},
	{"/signin/invitation", "multipart/form-data; boundary=x", 16 << 10},
	{"/signout", "application/x-www-form-urlencoded", 2 << 20},
	{"/inbox/views", "application/x-www-form-urlencoded", 4 << 20},
	{"/me/tour", "multipart/form-data; boundary=x", 4 << 20},
	{"/requests/req_x/approve", "application/x-www-form-urlencoded", 4 << 20},
	{"/channels/slack/interactivity", "application/x-www-form-urlencoded", 256 << 10},
	{"/channels/slack/commands", "application/x-www-form-urlencoded", 256 << 10},
	{"/channels/email/x.y", "application/x-www-form-urlencoded", 16 << 10},
	{"/api/v1/ai/chat", "application/json", 2 << 20},
	{"/api/v1/me/views", "application/json", 2 << 20},
}

// sendHeld sends n requests at the same time. The last byte of each follows when all others were
// sent, or refused. It returns the number of responses by status.
func sendHeld(t *testing.T, addr, body string, from, n int) map[string]int {
	var mu sync.Mutex
	answers := make(map[string]int)
	var sent, done sync.WaitGroup
	sent.Add(n)
	for i := range n {
		done.Go(func() {
			h := hostilePaths[(from+i)%len(hostilePaths)]
			status := sendSlowly(t.Context(), addr, h.path, h.kind, fmt.Sprintf("%08d", from+i)+body[:h.size-8], &sent)
			mu.Lock()
			defer mu.Unlock()
			answers[status]++
		})
	}
	done.Wait()
	return answers
}

// sendSlowly sends one request and returns the status of its response.
func sendSlowly(ctx context.Context, addr, path, kind, body string, sent *sync.WaitGroup) string {
	arrived := sync.OnceFunc(sent.Done)
	defer arrived()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "no connection"
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(testserver.StartTimeout))
	host := map[bool]string{true: "localhost", false: "localhost:1"}[strings.HasPrefix(path, "/signin")]
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Type: %s\r\nContent-Length: %d\r\n"+
		"X-Slack-Request-Timestamp: %d\r\nX-Slack-Signature: v0=%064d\r\nConnection: close\r\n\r\n", path, host, host, kind, len(body), time.Now().Unix(), 0)
	if err == nil {
		_, err = conn.Write([]byte(body[:len(body)-1])) // a server that reads less closes the connection
	}
	arrived()
	if err == nil {
		sent.Wait()
		_, _ = conn.Write([]byte(body[len(body)-1:]))
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "closed"
	}
	_ = response.Body.Close()
	return strconv.Itoa(response.StatusCode)
}

// serveForStrangers starts a server with all endpoints that accept requests without credentials.
func serveForStrangers(t *testing.T) (pid int, addr string) {
	t.Helper()
	dir := t.TempDir()
	program, err := testserver.Program(dir)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := write("fermata.yaml", fmt.Sprintf(`
store: {url: %q}
metrics: {addr: "off"}
log: {format: json}
listen: {publicURL: "http://localhost"}
channels:
  slack: {account: acme, botTokenFile: %q, signingSecretFile: %q, apiURL: "http://127.0.0.1:1/"}
  email: {host: 127.0.0.1, port: 1, from: fermata@example.com, linkKeyFile: %q}
`, "sqlite:"+filepath.Join(dir, "fermata.db"), write("bot", "xoxb-1"), write("sign", strings.Repeat("s", 32)), write("link", strings.Repeat("k", 32))))
	server := exec.CommandContext(t.Context(), program, "serve", "--config", config, "--addr", "127.0.0.1:0")
	server.Env = append(os.Environ(), "GOGC=100", "GOMEMLIMIT=off") // whatever the tests use
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	lines, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Wait() })
	ready := make(chan string, 1)
	go func() {
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Msg == "serving" {
				ready <- line.URL
			}
		}
		close(ready)
	}()
	select {
	case at := <-ready:
		u, err := url.Parse(at)
		if err != nil || u.Host == "" {
			t.Fatalf("the server did not start: %q", at)
		}
		return server.Process.Pid, u.Host
	case <-time.After(testserver.StartTimeout):
		t.Fatal("the server did not start")
	}
	return 0, ""
}

// warmUp uses the server as people do, until its size is that of a server in use: pages, and
// sign-ins with wrong passwords, whose hashes need much memory.
func warmUp(t *testing.T, addr string) {
	t.Helper()
	for n := range 10 {
		for _, path := range []string{"/signin", "/inbox"} {
			response, err := http.Get("http://" + addr + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
		}
		response, err := http.PostForm("http://"+addr+"/signin/password", url.Values{"name": {fmt.Sprint("ann", n)}, "password": {"guess"}})
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Fatalf("POST /signin/password: %d", response.StatusCode)
		}
	}
}

// residentSize returns a size of a process in bytes: VmRSS now, VmHWM at its peak.
func residentSize(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			size, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return size << 10
		}
	}
	t.Fatalf("the process has no %s", name)
	return 0
}
