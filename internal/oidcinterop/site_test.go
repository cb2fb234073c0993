package oidcinterop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/app"
)

// programVariable makes this test binary act as the program, so that it runs the code under test.
const programVariable = "FERMATA_TEST_OIDCINTEROP_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(app.Main())
	}
	os.Exit(m.Run())
}

// settings is a typical settings file.
const settings = `
listen: {addr: "127.0.0.1:0"}
store: {url: "sqlite:%[1]s/fermata.db"}
metrics: {addr: off}
log: {format: json}
auth:
  oidc:
    issuer: %[2]s
    clientID: fermata
    clientSecretFile: %[1]s/secret
    redirectURL: ` + callback + `
    scopes: [profile, email, groups]
    account: acme
    audience: ` + audience + `
    roles:
      reviewers: approver
      platform: [admin]
      robots: agent
`

// audience is the audience of API tokens. The provider requires a URI.
const audience = "https://fermata.example/api"

// site is a running fermata serve.
type site struct {
	addr    string
	mu      sync.Mutex
	log     strings.Builder
	changed *sync.Cond // on mu
}

func newSite() *site {
	s := new(site)
	s.changed = sync.NewCond(&s.mu)
	return s
}

// serve starts the program with the settings after replacing pairs of texts.
func serve(t *testing.T, issuer string, replace ...string) *site {
	t.Helper()
	dir := t.TempDir()
	text := strings.NewReplacer(replace...).Replace(fmt.Sprintf(settings, dir, issuer))
	for name, text := range map[string]string{"fermata.yaml": text, "secret": clientSecret + "\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "serve", "--config", filepath.Join(dir, "fermata.yaml"))
	cmd.Env = append(os.Environ(), programVariable+"=1")
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s, ready, over := newSite(), make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		s.read(errs, ready)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-over
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if t.Failed() {
			t.Logf("the server said:\n%s", s.output())
		}
	})
	select {
	case s.addr = <-ready:
	case <-over:
		t.Fatal("the server did not start")
	}
	return s
}

// read collects the output of the server and reports its address.
func (s *site) read(errs io.Reader, ready chan<- string) {
	for lines := bufio.NewScanner(errs); lines.Scan(); {
		s.mu.Lock()
		fmt.Fprintln(&s.log, lines.Text())
		s.changed.Broadcast()
		s.mu.Unlock()
		var line struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			if at, err := url.Parse(line.URL); err == nil {
				ready <- at.Host
			}
		}
	}
}

// output returns the output of the server so far.
func (s *site) output() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// waitTimeout is how long a log line may take to arrive.
const waitTimeout = 30 * time.Second

// waitForOutput waits for a text in the output and fails the test if it does not appear.
func (s *site) waitForOutput(t *testing.T, text string) {
	t.Helper()
	late := false
	timer := time.AfterFunc(waitTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.log.String(), text) {
		if late {
			t.Errorf("%q is not in the log", text)
			return
		}
		s.changed.Wait()
	}
}
