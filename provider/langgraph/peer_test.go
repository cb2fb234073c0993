package langgraph_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
	"github.com/fermata-go/fermata/provider/langgraph"
	"github.com/fermata-go/fermata/provider/providertest"
)

// peer is a process of LangGraph's development server with the graphs of testdata/peer.
type peer struct {
	url     string
	command *exec.Cmd
	stdin   io.Closer
}

// startPeer starts a server with its files in the folder.
func startPeer(folder, mode string) (*peer, error) {
	command := exec.Command("node", "server.mjs", folder, mode)
	command.Dir = filepath.Join("testdata", "peer")
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("%w; make need-langgraph-server installs what is missing", err)
	}
	p := &peer{command: command, stdin: stdin}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var ready struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready.URL != "" {
			p.url = ready.URL
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return p, nil
		}
	}
	_ = command.Wait()
	return nil, errors.New("LangGraph's server did not start; make need-langgraph-server installs it")
}

// stop kills the process, as kill -9 does.
func (p *peer) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// shared is the server that the tests of this package share.
var shared struct {
	sync.Mutex
	*peer
	folder string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.peer != nil {
		shared.stop()
		_ = os.RemoveAll(shared.folder)
	}
	os.Exit(code)
}

// sharedPeer returns the address of the shared server.
func sharedPeer(t testing.TB) string {
	t.Helper()
	testtier.Needs(t, "LangGraph's server (Node)")
	shared.Lock()
	defer shared.Unlock()
	if shared.peer == nil {
		folder, err := os.MkdirTemp("", "fermata-langgraph-")
		if err != nil {
			t.Fatal(err)
		}
		shared.folder = folder
		if shared.peer, err = startPeer(folder, ""); err != nil {
			t.Fatal(err)
		}
	}
	return shared.url
}

// office does the work of the graphs: each piece is a POST to its address. It gives each world an
// address of its own.
type office struct {
	*httptest.Server
	mu     sync.Mutex
	worlds map[string]*place
	names  map[*providertest.World]string
}

// place is a world, and the owner of its run changes when a new provider is created for it.
type place struct {
	world   *providertest.World
	changed chan struct{}
}

func newOffice(t testing.TB) *office {
	o := &office{worlds: make(map[string]*place), names: make(map[*providertest.World]string)}
	o.Server = httptest.NewServer(o)
	t.Cleanup(o.CloseClientConnections)
	return o
}

// in returns the address for the work of a world. Blocked work does not block an agent for longer
// than the owner of the run: it continues in the agent when a new owner appears.
func (o *office) in(world *providertest.World) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	name, known := o.names[world]
	if !known {
		name = fmt.Sprint("w", len(o.names)+1)
		o.names[world], o.worlds[name] = name, &place{world: world, changed: make(chan struct{})}
		return o.URL + "/" + name
	}
	p := o.worlds[name]
	close(p.changed)
	p.changed = make(chan struct{})
	return o.URL + "/" + name
}

func (o *office) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	o.mu.Lock()
	p := o.worlds[parts[0]]
	changed := p.changed
	o.mu.Unlock()
	ctx, cancel := contextOf(request)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.world.Work(ctx, parts[1]) }()
	select {
	case err := <-done:
		if err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case <-changed:
		o.release(p, parts[1], cancel, done)
	}
}

func provided(t testing.TB, url string, change func(*langgraph.Config)) *langgraph.Provider {
	t.Helper()
	config := langgraph.Config{URL: url, Assistants: map[string]langgraph.Assistant{}}
	change(&config)
	p, err := langgraph.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
