package langgraph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// hostile is a server that answers every call with the same body.
type hostile struct {
	body func() io.Reader
	urls []string
}

func (h *hostile) RoundTrip(r *http.Request) (*http.Response, error) {
	h.urls = append(h.urls, r.URL.RequestURI())
	read, write := io.Pipe()
	context.AfterFunc(r.Context(), func() { _ = write.CloseWithError(r.Context().Err()) }) // as http.Transport does
	go func() {
		if h.body != nil {
			_, err := io.Copy(write, h.body())
			_ = write.CloseWithError(err)
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: make(http.Header), Body: read, Request: r}, nil
}

func (h *hostile) client() *client {
	return &client{base: "http://langgraph.example", http: &http.Client{Transport: h}}
}

func repeated(text string, size int) string { return strings.Repeat(text, size/len(text)) }

// A response with millions of elements is rejected before they are decoded, and one that is too
// large before all of it is read.
func TestClient_ResponsesAreBoundedInMemory(t *testing.T) {
	const size, limit = 4 << 20, 8 * maxBody
	list := func(before, each, after string) func() io.Reader {
		text := before + strings.TrimSuffix(repeated(each+",", size), ",") + after
		return func() io.Reader { return strings.NewReader(text) }
	}
	endless := func() io.Reader { return zeros{} }
	for name, c := range map[string]struct {
		body func() io.Reader
		call func(*client) error
		want error
	}{
		"tasks":      {list(`{"tasks":[`, "{}", "]}"), func(c *client) error { _, err := c.state(t.Context(), "t"); return err }, errTooMany},
		"interrupts": {list(`{"tasks":[{"interrupts":[`, "{}", "]}]}"), func(c *client) error { _, err := c.state(t.Context(), "t"); return err }, errTooMany},
		"next":       {list(`{"next":[`, `""`, "]}"), func(c *client) error { _, err := c.state(t.Context(), "t"); return err }, errTooMany},
		"thread":     {list(`{"interrupts":{`, `"x":[]`, "}}"), func(c *client) error { _, err := c.thread(t.Context(), "t"); return err }, errTooMany},
		"threads":    {list("[", "{}", "]"), func(c *client) error { return c.eachPaused(t.Context(), nil) }, errTooMany},
		"runs":       {list("[", "{}", "]"), func(c *client) error { _, err := c.runs(t.Context(), "t"); return err }, errTooMany},
		"assistants": {list("[", "{}", "]"), func(c *client) error { _, err := c.graphs(t.Context()); return err }, errTooMany},
		"endless":    {endless, func(c *client) error { _, err := c.state(t.Context(), "t"); return err }, errTooLarge},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := c.call((&hostile{body: c.body}).client())
		runtime.ReadMemStats(&after)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > limit>>20 {
			t.Errorf("%s: %d MiB were allocated", name, used)
		}
	}
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

// A long value is not limited, as long as it is not decoded element by element.
func TestClient_ValuesMayHaveManyElements(t *testing.T) {
	body := `{"values":{"embedding":[` + repeated("0.5,", 1<<20) + `0]},"next":["a"]}`
	s, err := (&hostile{body: func() io.Reader { return strings.NewReader(body) }}).client().state(t.Context(), "t")
	if err != nil || len(s.Values) < 1<<20 || len(s.Next) != 1 {
		t.Errorf("%d bytes, %v, %v", len(s.Values), s.Next, err)
	}
}

func TestClient_BodyThatNeverEndsTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if _, err := new(hostile).client().state(t.Context(), "t"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != callTimeout {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// A server that always returns full pages ends the list with an error.
func TestClient_EndlessListsEnd(t *testing.T) {
	page := "[" + strings.Repeat(`{"thread_id":"t"},`, pageSize-1) + "{}]"
	for name, call := range map[string]func(*client) error{
		"threads": func(c *client) error { return c.eachPaused(t.Context(), func(threadInfo) bool { return true }) },
		"runs":    func(c *client) error { _, err := c.runs(t.Context(), "t"); return err },
		"graphs":  func(c *client) error { _, err := c.graphs(t.Context()); return err },
	} {
		h := &hostile{body: func() io.Reader { return strings.NewReader(page) }}
		if err := call(h.client()); !errors.Is(err, errPages) || len(h.urls) != maxPages {
			t.Errorf("%s: %v after %d calls", name, err, len(h.urls))
		}
	}
}

// An id of the server is one segment of a path.
func TestClient_IDsArePathSegments(t *testing.T) {
	for id, want := range map[string]string{
		"../../assistants/a1": "/threads/..%2F..%2Fassistants%2Fa1", "a?b#c": "/threads/a%3Fb%23c", "%2e%2e": "/threads/%252e%252e", "..": "", ".": "", "": "", strings.Repeat("x", 1000): "",
	} {
		h := &hostile{body: func() io.Reader { return strings.NewReader("{}") }}
		x := &execution{provider: &Provider{client: *h.client()}, thread: id}
		calls := []func() error{
			func() error { _, err := h.client().thread(t.Context(), id); return err },
			func() error { _, err := h.client().state(t.Context(), id); return err },
			func() error { _, err := h.client().run(t.Context(), "t", id); return err },
			func() error { _, err := h.client().runs(t.Context(), id); return err },
			func() error { _, err := h.client().start(t.Context(), id, nil, nil); return err },
			func() error { _, err := h.client().join(t.Context(), id, "r", nil); return err },
			func() error { return h.client().updateState(t.Context(), id, nil, "") },
			func() error { return h.client().cancelRun(t.Context(), id, "r") },
			func() error { return h.client().deleteThread(t.Context(), id) },
			func() error { return x.mark(t.Context(), markAdopted) },
		}
		for n, call := range calls {
			err := call()
			if want == "" && !errors.Is(err, errInvalidID) {
				t.Errorf("%q, call %d: %v", id, n, err)
			}
		}
		if want == "" && len(h.urls) > 0 {
			t.Errorf("%q: %v", id, h.urls)
		}
		for _, url := range h.urls {
			if !strings.HasPrefix(url, want) && !strings.HasPrefix(url, "/threads/t/runs/"+strings.TrimPrefix(want, "/threads/")) {
				t.Errorf("%q: %s", id, url)
			}
		}
	}
}

// The limit of an event holds for all its lines.
func TestReadEvents_EventOfManyLinesIsLimited(t *testing.T) {
	for name, line := range map[string]string{"data": "data: " + strings.Repeat("x", 1<<20) + "\n", "comments": repeated(": x\n", 1<<20), "one line": repeated("x", 1<<20)} {
		read, write := io.Pipe()
		go func() {
			for {
				if _, err := io.WriteString(write, line); err != nil {
					return
				}
			}
		}()
		err := readEvents(read, func(event) error { return nil })
		_ = read.Close()
		if !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An event that does not end times out. A run that is silent for hours does not.
func TestReadEvents_EventHasATimeLimit(t *testing.T) {
	for _, c := range []struct {
		text string
		want error
	}{
		{"event: values\ndata: {}\n\n", nil},
		{"event: values\ndata: {}\n\n: ping\n\n", nil},
		{"event: values\ndata: {}\n\nevent: val", errSlow},
		{"event: values\ndata: {", errSlow},
	} {
		synctest.Test(t, func(t *testing.T) {
			read, write := io.Pipe()
			go func() {
				_, _ = io.WriteString(write, c.text)
				time.Sleep(3 * time.Hour)
				_, _ = io.WriteString(write, "event: error\r\ndata: 1\r\ndata: 2\r\n\r\n")
				_ = write.Close()
			}()
			var names []string
			err := readEvents(read, func(e event) error {
				names = append(names, e.name+string(e.data))
				return nil
			})
			time.Sleep(4 * time.Hour) // for the writer
			if !errors.Is(err, c.want) || c.want == nil && fmt.Sprint(names) != "[values{} error1\n2]" {
				t.Errorf("%q: %v, %v", c.text, err, names)
			}
		})
	}
}

// An agent that asks for too many decisions at the same time ends its run with an error, whether
// they are in one interrupt or in many.
func TestPause_NumberOfQuestionsIsLimited(t *testing.T) {
	interrupt := func(id string, actions int) string {
		return fmt.Sprintf(`{"id":%q,"value":{"action_requests":[%s],"review_configs":[{"action_name":"pay","allowed_decisions":["approve"]}]}}`,
			id, strings.TrimSuffix(strings.Repeat(`{"name":"pay","args":{}},`, actions), ","))
	}
	many := func(count int) string {
		var list []string
		for n := range count {
			list = append(list, interrupt(fmt.Sprint("i", n), 1))
		}
		return strings.Join(list, ",")
	}
	for name, c := range map[string]struct {
		interrupts string
		want       int
	}{
		"as many as allowed": {interrupt("i", maxQuestions), maxQuestions}, "one too many": {interrupt("i", maxQuestions+1), 0}, "far too many": {interrupt("i", 2000), 0},
		"many interrupts": {many(maxQuestions), maxQuestions}, "too many interrupts": {many(maxQuestions + 1), 0}, "far too many interrupts": {many(2000), 0},
	} {
		var t1 transcript
		t1.add(event{"metadata", []byte(`{"run_id":"r"}`)})
		t1.add(event{"updates", []byte(`{"__interrupt__":[` + c.interrupts + `]}`)})
		h := &hostile{body: func() io.Reader { return strings.NewReader(`{"next":["a"]}`) }}
		run := provider.Run{Account: "acme", ID: "r", Graph: "g", State: memory.NewStore(nil)}
		x := &execution{Execution: &provider.Execution{Run: run}, provider: &Provider{client: *h.client()}, thread: "thread", saved: saved{Version: 1}}
		result, err := x.finish(t.Context(), nil, t1)
		if err != nil {
			t.Fatal(name, err)
		}
		switch outcome := result.Outcome.(type) {
		case provider.Waiting:
			if len(outcome.Interrupts) != c.want {
				t.Errorf("%s: %d questions", name, len(outcome.Interrupts))
			}
		case provider.Failed:
			if c.want != 0 || !outcome.Final {
				t.Errorf("%s: %+v", name, outcome)
			}
		default:
			t.Errorf("%s: %+v", name, outcome)
		}
	}
}

func TestLastMessage_IsTheTextOfTheLastOne(t *testing.T) {
	long := strings.Repeat(`{"content":"before, ]}"},`, 5000)
	for values, want := range map[string]string{
		`{"messages":[` + long + `{"content":"last, ]","id":1}]}`: "last, ]", `{"messages":[ {"content":"only"} ]}`: "only", `{"messages":[]}`: "", `{}`: "", `{"messages":{"a":1}}`: "", `{"messages":[1]}`: "", `[]`: "",
	} {
		if got := lastMessage([]byte(values)); got != want {
			t.Errorf("%.40s: %q", values, got)
		}
	}
}
