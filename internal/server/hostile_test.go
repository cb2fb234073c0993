package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/server"
)

// Every call parses its body strictly, and changes nothing if it is invalid.
func TestHostile_BodiesAreParsedStrictly(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	id := s.openRequests("acme")[0].ID
	for path, good := range map[string]string{
		"/api/v1/ai/chat":                      `{"stateKey":"demo-1","resumeId":"1","resumeValue":{"action":"approve"}}`,
		"/api/v1/requests":                     `{"kind":"sign","data":{"a":1}}`,
		"/api/v1/requests/" + id + "/decision": `{"resumeId":"1","answer":{"action":"approve"}}`,
	} {
		first, _, _ := strings.Cut(good, ":") // {"name"
		name := strings.Trim(first, `{"`)
		for what, bad := range map[string]string{
			"nothing":                " ",
			"no object":              `[]`,
			"null":                   `null`,
			"cut off":                good[:len(good)-1],
			"trailing data":          good + `{}`,
			"trailing text":          good + `x`,
			"duplicate key":          strings.Replace(good, first, first+`:"x",`+first[1:], 1),
			"escaped twin":           strings.Replace(good, first, fmt.Sprintf(`{"\u%04x%s":"x",%s`, name[0], name[1:], first[1:]), 1),
			"another case":           strings.Replace(good, name, strings.ToUpper(name), 1),
			"duplicate in the value": strings.Replace(good, `{"a":1}`, `{"a":1,"A":2}`, 1) + map[bool]string{true: "x"}[!strings.Contains(good, `{"a":1}`)],
			"unknown member":         strings.Replace(good, first, `{"unknown":1,`+first[1:], 1),
			"invalid UTF-8":          strings.Replace(good, `":`, "\xff\":", 1),
			"overlong UTF-8":         strings.Replace(good, `":`, "\xc0\xaf\":", 1),
			"half a character":       strings.Replace(good, `":`, `\ud83d":`, 1),
			"byte order mark":        "\ufeff" + good,
			"too deep":               strings.Replace(good, "}", `,"input":`+deep(101)+"}", 1),
			"far too deep":           deep(30_000),
			"a NaN":                  strings.Replace(good, first+":", first+":NaN,"+first[1:]+":", 1),
			"a wrong type":           strings.Replace(good, first+`:"`, first+`:7,"x":"`, 1),
		} {
			if got := s.call("admin@acme", "POST", path, bad); got.status != 400 || got.field("code") != "bad_request" {
				t.Errorf("%s, %s: %d %s", path, what, got.status, got.body)
			}
		}
		for what, headers := range map[string][]string{
			"compressed": {"Content-Encoding", "gzip"}, "a form": {"Content-Type", "application/x-www-form-urlencoded"}, "no type": {"Content-Type", ""},
		} {
			if got := s.call("admin@acme", "POST", path, good, headers...); got.status != 415 {
				t.Errorf("%s, %s: %d %s", path, what, got.status, got.body)
			}
		}
	}
	if q := s.openRequests("acme"); len(q) != 1 || q[0].ID != id {
		t.Errorf("open are %+v", q)
	}
}

// A body without a length is cut off at the limit.
func TestHostile_OversizeBodyIsRejected(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.Body = 64 << 10 })
	for _, known := range []bool{true, false} {
		body := `{"graphId":"` + strings.Repeat("x", 1<<20) + `"}`
		r := s.request("agent@acme", "POST", "/api/v1/ai/chat", body)
		if !known {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), -1
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != 413 || !strings.Contains(string(text), "too_large") {
			t.Errorf("with a content length (%v): %d %s", known, response.StatusCode, text)
		}
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="body"} 2`) {
		t.Error(s.metrics())
	}
}

// dial opens a raw connection.
func (s *site) dial() net.Conn {
	s.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

// A client that does not finish its request gets an error and is disconnected.
func TestHostile_SlowBodyTimesOut(t *testing.T) {
	s := open(t, func(c *server.Config) { c.Limits.BodyTimeout = 20 * time.Millisecond })
	if got := s.slow(); got.status != 408 || got.field("code") != "timeout" {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(s.metrics(), `fermata_http_limit_rejections_total{limit="body_timeout"} 1`) {
		t.Error(s.metrics())
	}
}

// slow begins a request and does not finish it.
func (s *site) slow() answer {
	s.Helper()
	c := s.dial()
	fmt.Fprintf(c, "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	return answerOf(s, response, err)
}

// A truncated request is a client error, not a server error.
func TestHostile_TruncatedRequestsAreRejected(t *testing.T) {
	s := open(t, nil)
	const head = "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\nContent-Type: application/json\r\n"
	for _, text := range []string{
		head + "Content-Length: 100\r\n\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{", head + "Transfer-Encoding: chunked\r\n\r\nx\r\n{}",
	} {
		c := s.dial()
		io.WriteString(c, text)
		c.(*net.TCPConn).CloseWrite()
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		if got := (answer{response.StatusCode, response.Header, string(body)}); got.status != 400 || got.field("code") != "bad_request" {
			t.Errorf("%q: %+v", text[len(head):], got)
		}
	}
}

// The body timeout ends when everything was sent: a client that waits for an outcome or follows a
// run may be silent.
func TestHostile_IdleAfterFullRequestIsAllowed(t *testing.T) {
	s, release := openHeld(t)
	limits := server.Limits{BodyTimeout: time.Millisecond, Rate: 1e6, Burst: 1e6}
	quick, err := server.New(server.Config{Executor: s.e, Auth: testTokens, Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	s.serve(quick, func(h *http.Server) { h.ReadTimeout, h.IdleTimeout = 2*time.Second, time.Minute })
	over := time.After(3 * time.Second)
	stream := s.follow("/api/v1/runs/held%2F1/events")
	if stream.StatusCode != 404 {
		t.Fatalf("there is a run already: %d", stream.StatusCode)
	}
	s.chat("agent@acme", startHeld, "Prefer", "respond-async")
	stream = s.follow("/api/v1/runs/held%2F1/events")
	done := make(chan answer)
	go func() { done <- s.chat("agent@acme", startHeld, "Prefer", "wait=60") }()
	<-over
	release()
	if got := <-done; got.status != 200 || got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
	if events := eventsIn(stream.Body, nil); len(events) == 0 || events[len(events)-1].kind != "outcome" {
		t.Errorf("%v", events)
	}
}

// serve serves a handler with a custom server instead of the site's.
func (s *site) serve(h http.Handler, change func(*http.Server)) {
	s.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	hs := &http.Server{Handler: h}
	change(hs)
	done := make(chan struct{})
	go func() { defer close(done); _ = hs.Serve(l) }()
	s.Cleanup(func() { hs.Close(); <-done })
	s.url = "http://" + l.Addr().String()
}

type amounts struct {
	Amount int64           `json:"amount"`
	Raw    json.RawMessage `json:"raw"`
}

var exactKind = fermata.NewKind[amounts, amounts]("exactly-of-server-test")

// Numbers are kept exactly: input, state, question, answer, output.
func TestHostile_NumbersAreKeptExactly(t *testing.T) {
	s := openWith(t, nil, nil, single(t, "exactly", func(ctx context.Context, a amounts) (amounts, error) { return exactKind.Ask(ctx, a) }))
	const raw = `[9007199254740993,0.1000000000000000055511151231257827,1e-7,-0,123456789012345678901234567890.10,1E5]`
	const in = `{"amount":9007199254740993,"raw":` + raw + `}`
	const out = `{"amount":9223372036854775807,"raw":{"n":9007199254740995,"d":1.10}}`
	first := s.chat("agent@acme", `{"graphId":"inproc:exactly","stateKey":"n","input":`+in+`}`)
	if !strings.Contains(first.body, `"data":`+in) {
		t.Fatalf("the question: %s", first.body)
	}
	if list := s.call("approver@acme", "GET", "/api/v1/requests", ""); !strings.Contains(list.body, `"data":`+in) {
		t.Errorf("in the queue: %s", list.body)
	}
	last := s.chat("approver@acme", `{"stateKey":"n","resumeId":"1","resumeValue":`+out+`}`)
	if last.field("status") != "completed" || !strings.Contains(last.body, `"output":`+out) {
		t.Errorf("the output: %s", last.body)
	}
	if request := s.call("auditor@acme", "GET", "/api/v1/requests?state=decided", ""); !strings.Contains(request.body, `"answer":`+out) {
		t.Errorf("the answer: %s", request.body)
	}
	if answers := s.call("agent@acme", "GET", "/api/v1/answers", ""); !strings.Contains(answers.body, `"answer":`+out) {
		t.Errorf("the answers: %s", answers.body)
	}
}

// A number may exceed a float64, for example a key written by Python: the server does not compute
// with it.
func TestHostile_LargeNumbersAreKeptExactly(t *testing.T) {
	s := open(t, nil)
	large := strings.Repeat("7", 617)
	asked := s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"sign","stateKey":"n","data":{"modulus":`+large+`,"tiny":-1e-999}}`)
	if asked.status != 200 || !strings.Contains(asked.body, `{"modulus":`+large+`,"tiny":-1e-999}`) {
		t.Fatalf("%+v", asked)
	}
	if got := s.chat("approver@acme", `{"stateKey":"n","resumeId":"1","resumeValue":1e999}`); got.status != 200 || !strings.Contains(got.body, `"answer":1e999`) {
		t.Errorf("%+v", got)
	}
}

// Readers that disconnect leak nothing.
func TestHostile_DisconnectedReadersLeakNothing(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	before := runtime.NumGoroutine()
	for i := range 50 {
		c := s.dial()
		if i%2 == 0 {
			fmt.Fprintf(c, "GET /api/v1/runs/demo-1/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\n\r\n")
		} else {
			fmt.Fprintf(c, "POST /api/v1/ai/chat HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(startDemo), startDemo)
		}
		if _, err := bufio.NewReader(c).ReadString('\n'); err != nil { // it has begun
			t.Fatal(err)
		}
		c.(*net.TCPConn).SetLinger(0) // a reset, not an orderly close
		c.Close()
	}
	s.until("no streams", func() bool { return strings.Contains(s.metrics(), "fermata_http_streams 0\n") })
	s.until("no goroutines left over", func() bool { return runtime.NumGoroutine() <= before+3 })
}

// until waits for a condition.
func (s *site) until(what string, happened func() bool) {
	s.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			s.Fatalf("%s: not yet\n%s", what, buf[:runtime.Stack(buf, true)])
		}
	}
}

// A stream reader that never reads is disconnected, and others are not affected.
func TestHostile_ReaderThatNeverReadsIsDisconnected(t *testing.T) {
	t.Parallel() // it waits for a timeout
	stop := make(chan struct{})
	enough := sync.OnceFunc(func() { close(stop) })
	defer enough() // otherwise a failing test would wait for the end of the output
	s := openWith(t, func(c *server.Config) { c.Limits.WriteTimeout = 5 * time.Second }, nil, talkingAgent(t, stop))
	s.chat("agent@acme", `{"graphId":"inproc:talker","stateKey":"talk","input":{"query":"go on"}}`, "Prefer", "respond-async")
	deaf := s.dial()
	deaf.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(deaf, "GET /api/v1/runs/talk/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer agent@acme\r\n\r\n")
	s.until("the stream", func() bool { return strings.Contains(s.metrics(), "fermata_http_streams 1\n") })
	good := s.follow("/api/v1/runs/talk/events") // reads all events
	heard := 0
	eventsIn(good.Body, func(e event) bool {
		if e.kind == "token" {
			heard++
		}
		return heard < 100
	})
	good.Body.Close()
	s.until("it was disconnected", func() bool { return strings.Contains(s.metrics(), "fermata_http_streams 0\n") })
	enough()
	if got := s.chat("agent@acme", `{"graphId":"inproc:talker","stateKey":"talk","input":{"query":"go on"}}`); got.field("status") != "completed" {
		t.Errorf("%+v", got)
	}
}

// Ids that look like parts of others are not found, and only auditors can read checkpoints and
// findings.
func TestI8_ForgedIDsAreNotFound(t *testing.T) {
	s := openDeskSite(t)
	s.chat("agent@acme", startDrop)
	id := s.openRequests("acme")[0].ID
	digest := s.activity("bob@acme", id).Activity.Policy
	for _, posing := range []string{id + "/1", id + "@1", id + "~2", "../" + id, id + "\x00", "acme/" + id, "clock", "audit-sign"} {
		for _, path := range []string{"requests/", "policies/"} {
			if got := s.call("bob@acme", "GET", "/api/v1/"+path+url.PathEscape(posing), ""); got.status != 404 && got.status != 400 {
				t.Errorf("%s%q: %d %.100s", path, posing, got.status, got.body)
			}
		}
	}
	for _, who := range []string{"agent@acme", "bob@acme"} {
		for _, path := range []string{"audit/checkpoints", "audit/findings", "audit"} {
			if got := s.call(who, "GET", "/api/v1/"+path, ""); got.status != 403 {
				t.Errorf("%s reads %s: %d", who, path, got.status)
			}
		}
	}
	// The policy in force is the same for all; its first use is not.
	if got := s.call("bob@other", "GET", "/api/v1/policies/"+digest, ""); got.field("since") != nil {
		t.Errorf("another account learns when it was used: %s", fmt.Sprint(got.field("since")))
	}
}
