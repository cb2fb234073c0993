//go:build unix

package peers

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/testtier"
)

// langGraph is a process of LangGraph's development server, with the graphs of provider/langgraph.
// After a kill, start starts the next one, with the same data and the same address.
type langGraph struct {
	testing.TB
	url, folder, port string
	work              *ledger

	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.Closer // its end ends the process
}

// newLangGraph starts a server. Its files are written with each operation, as those of a server
// with a database, and a run that a kill interrupted is queued again.
func newLangGraph(t testing.TB) *langGraph {
	t.Helper()
	testtier.Needs(t, "LangGraph's server (Node)")
	l := &langGraph{TB: t, folder: t.TempDir(), port: "0", work: newLedger(t)}
	t.Cleanup(l.kill)
	l.start()
	l.port = l.url[strings.LastIndex(l.url, ":")+1:]
	return l
}

func (l *langGraph) start() {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cmd = exec.Command("node", "server.mjs", l.folder, "durable", l.port)
	l.cmd.Dir, l.cmd.Stderr = "../../provider/langgraph/testdata/peer", os.Stderr
	l.cmd.Env = append(os.Environ(), "WORK_URL="+l.work.URL)
	var err error
	if l.stdin, err = l.cmd.StdinPipe(); err != nil {
		l.Error(err)
		return
	}
	stdout, err := l.cmd.StdoutPipe()
	if err == nil {
		err = l.cmd.Start()
	}
	if err != nil {
		l.Errorf("%v; make need-langgraph-server installs what is missing", err)
		return
	}
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var ready struct{ URL string }
		if json.Unmarshal(lines.Bytes(), &ready) == nil && ready.URL != "" {
			l.url = ready.URL
			return
		}
	}
	l.Error("LangGraph's server did not start; make need-langgraph-server installs it")
}

// kill kills the process, as kill -9 does.
func (l *langGraph) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.cmd.Process.Kill()
	_ = l.cmd.Wait()
	_ = l.stdin.Close()
}

// call calls the API of the server.
func (l *langGraph) call(method, path, body string, into any) {
	l.Helper()
	request, err := http.NewRequest(method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(data, into) != nil {
		l.Fatalf("%s %s: status %d, %v: %s", method, path, response.StatusCode, err, data)
	}
}

// settings are those of a Fermata server in front of this one.
func (l *langGraph) settings(assistants string) []string {
	return []string{"FERMATA_PROVIDERS_LANGGRAPH_URL=" + l.url, "FERMATA_PROVIDERS_LANGGRAPH_ASSISTANTS=" + assistants}
}

// workTime is how long a piece of work takes, so that kills hit it.
const workTime = 100 * time.Millisecond

// ledger does the work of agents, and counts it: each piece is a POST to its name.
type ledger struct {
	*httptest.Server
	mu   sync.Mutex
	done map[string]int
}

func newLedger(t testing.TB) *ledger {
	l := &ledger{done: make(map[string]int)}
	l.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { l.do(strings.Trim(request.URL.Path, "/")) }))
	t.Cleanup(l.Close)
	return l
}

func (l *ledger) do(name string) {
	<-time.After(workTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[name]++
}

// count returns how often a piece of work was done.
func (l *ledger) count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.done[name]
}
