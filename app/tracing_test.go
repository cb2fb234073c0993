package app

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// collector accepts OTLP over HTTP.
type collector struct {
	mu   sync.Mutex
	path string
	auth string
	body bytes.Buffer
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.path, c.auth = r.URL.Path, r.Header.Get("Authorization")
	c.body.Write(data)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Traces go to the configured collector, the last ones when the server ends; they contain no run
// data.
func TestI7_TracesGoToTheCollector(t *testing.T) {
	c := new(collector)
	s := httptest.NewServer(c)
	defer s.Close()
	t.Run("a server", func(t *testing.T) { // it ends with its test
		r, _ := startOf(t, settingsOf(t, "FERMATA_TRACING_ENDPOINT="+s.URL+"/v1/traces", "FERMATA_TRACING_HEADERS=Authorization: Bearer hush", "FERMATA_TRACING_SERVICE=letters"), signGraph(t))
		startMemo(t, r.Executor, "acme")
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.path != "/v1/traces" || c.auth != "Bearer hush" || !bytes.Contains(c.body.Bytes(), []byte("fermata.execute")) || !bytes.Contains(c.body.Bytes(), []byte("letters")) {
		t.Errorf("the collector got %q at %s (%s)", c.body.String(), c.path, c.auth)
	}
	if bytes.Contains(c.body.Bytes(), []byte("by ")) { // the text of the memo
		t.Error("the traces contain run data")
	}
}

// An unavailable collector does not prevent a server from starting or stopping.
func TestServe_TraceCollectorDown(t *testing.T) {
	r, _ := startOf(t, settingsOf(t, "FERMATA_TRACING_ENDPOINT=http://127.0.0.1:1/v1/traces", "FERMATA_LISTEN_DRAIN_TIMEOUT=2s"), signGraph(t))
	startMemo(t, r.Executor, "acme")
}

// A collector that hangs does not delay the shutdown: until then the store is in use.
func TestServe_StopsWhenTraceCollectorHangs(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	var begun time.Time
	t.Run("a server", func(t *testing.T) { // it ends with its test
		r, _ := startOf(t, settingsOf(t, "FERMATA_TRACING_ENDPOINT="+s.URL+"/v1/traces", "FERMATA_LISTEN_DRAIN_TIMEOUT=10m"), signGraph(t))
		startMemo(t, r.Executor, "acme")
		begun = time.Now()
	})
	if took := time.Since(begun); took > 5*time.Minute {
		t.Errorf("it took %v to end", took)
	}
}
