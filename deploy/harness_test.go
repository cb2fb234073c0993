package deploy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/pgtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && filepath.Base(os.Args[0]) == "sqlite3" { // see sqlite3
		os.Exit(sqlite3(os.Args[1], os.Args[2]))
	}
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fermata-deploy-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	built = sync.OnceValues(func() (string, error) { return dir, build(dir) })
	return pgtest.Main(m)
}

var built func() (dir string, err error)

// program returns one of the image's programs.
func program(t *testing.T, name string) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// build runs the Dockerfile's own build commands.
func build(dir string) error {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		return err
	}
	run := regexp.MustCompile(`(?m)^RUN (CGO_ENABLED=.*)$`).FindStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "))
	if run == nil {
		return fmt.Errorf("the Dockerfile builds nothing")
	}
	script := strings.ReplaceAll(run[1], "/out/", dir+"/")
	cmd := exec.Command("sh", "-eu", "-c", script)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "PACKAGE=./cmd/fermata")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", script, err, out)
	}
	return nil
}

// process is a server.
type process struct {
	cmd       *exec.Cmd
	out, errs *lines
	ended     bool

	URL, Token, Account string
}

// demo starts the server with sample graphs.
func demo(t *testing.T, dir string) *process {
	t.Helper()
	p := launch(t, nil, "demo", "--json", "--every", "0s", "--addr", "127.0.0.1:0", "--data", dir)
	await(t, p.out, `"token"`, p)
	return p
}

// serve starts a server with a configuration.
func serve(t *testing.T, config string, args ...string) *process {
	t.Helper()
	p := launch(t, []string{"FERMATA_LOG_FORMAT=json"}, append([]string{"serve", "--config", config, "--addr", "127.0.0.1:0"}, args...)...)
	await(t, p.errs, `"serving"`, p)
	return p
}

// lines is the output of a process.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func newLines() *lines { return &lines{news: make(chan struct{}, 1)} }

func (l *lines) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.news <- struct{}{}:
	default:
	}
	return l.text.Write(data)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func launch(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(program(t, "fermata"), args...), out: newLines(), errs: newLines()}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.stop(t) })
	return p
}

// await waits until a line contains a word, and decodes that line.
func await(t *testing.T, said *lines, word string, into any) {
	t.Helper()
	patience := time.After(time.Minute)
	for {
		for line := range strings.Lines(said.String()) {
			if strings.Contains(line, word) && json.Unmarshal([]byte(line), into) == nil {
				return
			}
		}
		select {
		case <-said.news:
		case <-patience:
			t.Fatalf("it did not print %s:\n%s", word, said)
		}
	}
}

// stop ends the server as an init system would.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if p.ended {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	p.ends(t)
}

// ends waits until it has ended by itself.
func (p *process) ends(t *testing.T) {
	t.Helper()
	p.ended = true
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v\n%s", err, p.errs)
	}
}

func (p *process) client(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(p.URL, p.Token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// call runs a command, and returns its output.
func call(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program(t, "fermata"), args...).Output()
	if err != nil {
		t.Fatalf("fermata %v: %v\n%s%s", args, err, out, stderrOf(err))
	}
	return strings.TrimSpace(string(out))
}

func stderrOf(err error) []byte {
	if exit, ok := err.(*exec.ExitError); ok {
		return exit.Stderr
	}
	return nil
}

// write writes a file to a directory.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func status(t *testing.T, url string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode
}
