package server_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store/sqlite"
	"github.com/fermata-go/fermata/internal/testtier"
)

// attack is a server under random load: generated requests, and bytes that are not requests. At the
// same time a legitimate client starts runs and decides them, and a guarded account has data that
// the attackers must not see.
type attack struct {
	*site
	address    string
	left       atomic.Int64
	sent       struct{ requests, unsendable, wires atomic.Int64 }
	legitimate atomic.Int64
}

const (
	attackers = 32
	// attackRequests is how many requests are sent before the state is checked and deleted: their
	// runs would fill the memory.
	attackRequests = 5_000
)

// TestProperty_RandomAttack: no response is an internal error, no attacker sees or changes data of
// others, a legitimate client is always served, and afterwards nothing is left over. A soak run
// sends ten million requests, or as many as there is time for.
func TestProperty_RandomAttack(t *testing.T) {
	count, deadline := testtier.Count(500, 2_000, 10_000_000), time.Time{}
	if testtier.IsSoak() {
		if d, ok := t.Deadline(); ok {
			deadline = d.Add(-time.Minute)
		}
	}
	s := openAttack(t)
	kept := s.checkInvariants()
	s.run(min(count, 1_000), 1) // the first requests fill caches and pools
	s.waitIdle()
	before := s.footprint()
	done := 0
	for seed := uint64(2); done < count && (deadline.IsZero() || time.Now().Before(deadline)); seed++ {
		n := min(attackRequests, count-done)
		s.run(n, seed)
		done += n
		if now := s.checkInvariants(); now != kept {
			t.Fatalf("the guarded data was\n%s\nand is\n%s", kept, now)
		}
		if seed%20 == 0 {
			s.waitIdle()
			t.Logf("%d of %d: %v", done, count, s.footprint())
		}
	}
	s.waitIdle()
	after := s.footprint()
	t.Logf("%d generated requests (%d more could not be sent), %d raw ones; the legitimate client had %d; before %v, after %v",
		s.sent.requests.Load(), s.sent.unsendable.Load(), s.sent.wires.Load(), s.legitimate.Load(), before, after)
	if after.files > before.files+5 || after.heap > before.heap+before.heap/10+4<<20 {
		t.Error("something is left over")
	}
	if s.sent.wires.Load() == 0 || s.legitimate.Load() == 0 {
		t.Error("a client was not served")
	}
}

func openAttack(t *testing.T) *attack {
	s := new(attack)
	// the audit log stays, and must not count as a leak
	kept, err := sqlite.Open(filepath.Join(t.TempDir(), "siege.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kept.Close(); err != nil {
			t.Error(err)
		}
	})
	log := slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte(canary)) {
			t.Errorf("in the log: %s", line)
		}
		return len(line), nil
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.site = openWith(t,
		func(c *server.Config) { c.Log, c.Limits.BodyTimeout = log, 50*time.Millisecond },
		func(c *executor.Config) { c.Log, c.Store = log, kept })
	s.address = strings.TrimPrefix(s.url, "http://")
	return s
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// checkInvariants returns all that the guarded account can see.
func (s *attack) checkInvariants() (seen string) {
	s.Helper()
	const run = `{"graphId":"inproc:content-review","stateKey":"crown","input":{"topic":"jewels"}}`
	for _, got := range []answer{
		s.chat("agent@guarded", run), // it exists from the first time on
		s.call("auditor@guarded", "GET", "/api/v1/runs", ""), s.call("auditor@guarded", "GET", "/api/v1/requests", ""), s.call("auditor@guarded", "GET", "/api/v1/audit", ""),
	} {
		if got.status != 200 {
			s.Fatalf("%+v", got)
		}
		seen += got.body
	}
	return seen
}

// run sends requests and runs a legitimate client, and waits until all have ended and their data is
// deleted.
func (s *attack) run(count int, seed uint64) {
	s.Helper()
	words := s.words()
	s.left.Store(int64(count))
	var all sync.WaitGroup
	for i := range uint64(attackers) {
		all.Go(func() { s.attacker(rand.New(rand.NewPCG(seed, i)), words) })
	}
	over := make(chan struct{})
	var guest sync.WaitGroup
	guest.Go(func() { s.legitimateClient(seed, over) })
	all.Wait()
	close(over)
	guest.Wait()
	for _, account := range []string{"acme", "other", "guest"} {
		if _, err := s.e.EraseAccount(context.Background(), account); err != nil {
			s.Fatal(err)
		}
	}
}

// words are texts with a meaning for the server, including ids.
func (s *attack) words() []string {
	s.Helper()
	list := []string{"a", "b", "a/b", "crown", "inproc:content-review", "inproc:clerk", "external:request", "1", "2", "pending", "all"}
	for _, account := range []string{"acme", "other"} {
		for _, key := range []string{"a", "b", "a/b"} {
			if got := s.chat("agent@"+account, fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":%q,"input":{"topic":%q}}`, key, canary+"-"+account)); got.status != 200 {
				s.Fatalf("%+v", got)
			}
		}
	}
	for _, account := range []string{"acme", "other", "guarded"} {
		for _, q := range s.openRequests(account) {
			list = append(list, q.ID)
		}
	}
	return list
}

func (s *attack) attacker(r *rand.Rand, words []string) {
	transport := &http.Transport{MaxIdleConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	all := operations(s.api)
	for s.left.Add(-1) >= 0 && !s.Failed() {
		if r.IntN(4) == 0 {
			s.sendRaw(r)
			continue
		}
		account, foreign := "acme", "other"
		if r.IntN(2) == 0 {
			account, foreign = foreign, account
		}
		op := all[r.IntN(len(all))]
		ctx, cancel := context.WithTimeout(s.Context(), 30*time.Second)
		m := &generator{r, s.api, words, canary + "-" + account}
		request := m.request(ctx, op, string(authn.Roles[r.IntN(len(authn.Roles))])+"@"+account)
		request.URL.Host, request.RequestURI = s.address, ""
		s.send(transport, request, foreign)
		cancel()
	}
}

// send sends a request and reads the response; of a stream the first data.
func (s *attack) send(transport *http.Transport, request *http.Request, foreign string) {
	response, err := transport.RoundTrip(request)
	if err != nil { // no client can send that, or the server has disconnected
		if errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("%s %s: no answer", request.Method, request.URL)
		}
		s.sent.unsendable.Add(1)
		return
	}
	defer response.Body.Close()
	s.sent.requests.Add(1)
	var text []byte
	if strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		text = make([]byte, 4096)
		n, _ := response.Body.Read(text)
		text = text[:n]
	} else if text, err = io.ReadAll(response.Body); err != nil {
		s.Errorf("%s %s: %v", request.Method, request.URL, err)
	}
	// another call is running
	busy := response.StatusCode == http.StatusServiceUnavailable && response.Header.Get("Retry-After") != ""
	if response.StatusCode >= 500 && !busy || bytes.Contains(text, []byte(canary+"-"+foreign)) || bytes.Contains(text, []byte("jewels")) {
		s.Errorf("%s %s: %d %s", request.Method, request.URL, response.StatusCode, text)
	}
}

// rawRequests are bytes that are not a request, or several, or a part of one.
var rawRequests = []string{
	"", "\x00", "\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/0.9\r\n\r\n", "GET / HTTP/9.9\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
	"GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "GET  /  HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n", "GET /\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
	"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT b:80 HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "GET http://b/api/v1/runs HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /api/v1/runs HTTP/1.1\r\nHost: a\r\n Folded: x\r\n\r\n", "GET /api/v1/runs HTTP/1.1\r\nHost: a\r\nA\x00: b\r\n\r\n", "GET /api/v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization : Bearer admin@guarded\r\n\r\n",
	"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "GET /api/v1//runs/%2e%2e/%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n", "GET /api/v1/runs/%zz HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /" + strings.Repeat("a", 70_000) + " HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1100) + "\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=" + strings.Repeat("y", 9000) + "\r\n",
	// A request that smuggles another one of a trusted client.
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1/runs HTTP/1.1\r\nHost: a\r\n\r\n",
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nG",
	"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /api/v1/runs HTTP/1.1\r\nHost: a\r\n\r\nGET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
	// truncated
	"POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
}

// sendRaw sends bytes, sometimes with one changed, sometimes not all of them, and reads the
// response.
func (s *attack) sendRaw(r *rand.Rand) {
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		s.Errorf("no connection is accepted: %v", err)
		return
	}
	defer c.Close()
	s.sent.wires.Add(1)
	bytes := []byte(rawRequests[r.IntN(len(rawRequests))])
	if len(bytes) > 0 && r.IntN(3) == 0 {
		bytes[r.IntN(len(bytes))] ^= byte(1 << r.IntN(8))
	}
	if len(bytes) > 0 && r.IntN(5) == 0 {
		bytes = bytes[:r.IntN(len(bytes))]
	}
	c.Write(bytes) // the server may have disconnected by now
	switch r.IntN(3) {
	case 0:
		c.(*net.TCPConn).SetLinger(0)
		return
	case 1:
		c.(*net.TCPConn).CloseWrite()
	}
	c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	in := bufio.NewReader(c)
	for range 4 {
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			return
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		// These are protocol errors or overload, not internal errors.
		known := []int{http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusServiceUnavailable}
		if code := response.StatusCode; code >= 500 && !slices.Contains(known, code) || strings.Contains(string(text), "jewels") {
			s.Errorf("%q: %d %s", bytes, code, text)
		}
	}
}

// legitimateClient starts and decides runs until the others have ended, and at least once.
func (s *attack) legitimateClient(seed uint64, over <-chan struct{}) {
	for n := 0; !s.Failed(); n++ {
		key := fmt.Sprintf("guest-%d-%d", seed, n)
		got := s.try(fmt.Sprintf(`{"graphId":"inproc:content-review","stateKey":%q,"input":{"topic":"tea"}}`, key))
		if got.field("status") != "needs_input" {
			s.Errorf("the legitimate start: %+v", got)
			return
		}
		got = s.try(fmt.Sprintf(`{"stateKey":%q,"resumeId":%q,"resumeValue":{"action":"approve"}}`, key, key))
		if got.field("status") != "completed" {
			s.Errorf("the legitimate decision: %+v", got)
			return
		}
		s.legitimate.Add(1)
		select {
		case <-over:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// try is a call that does not end the test, because it runs in any goroutine.
func (s *attack) try(body string) answer {
	response, err := http.DefaultClient.Do(s.request("admin@guest", "POST", "/api/v1/ai/chat", body))
	if err != nil {
		return answer{body: err.Error()}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// footprint is the resource usage of this process.
type footprint struct {
	heap  uint64
	files int
}

func (f footprint) String() string { return fmt.Sprintf("%d KiB, %d files", f.heap>>10, f.files) }

func (s *attack) footprint() (f footprint) {
	s.Helper()
	f.heap, _ = resources()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		s.Fatal(err)
	}
	f.files = len(open)
	return f
}

// waitIdle waits until there is no connection, and no goroutine that serves one.
func (s *attack) waitIdle() {
	s.Helper()
	http.DefaultClient.CloseIdleConnections()
	stacks := make([]byte, 4<<20)
	s.until("no permit is in use", func() bool {
		working, waiting := s.server.Working()
		requests, streams := s.server.InFlight()
		return working+waiting+requests+streams == 0
	})
	s.until("no request is in flight", func() bool {
		text := string(stacks[:runtime.Stack(stacks, true)])
		return !slices.ContainsFunc(strings.Split(text, "\n\n"), func(one string) bool { return strings.Contains(one, "net/http.(*conn).serve(") })
	})
}
