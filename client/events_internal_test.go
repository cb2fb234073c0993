package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata/api"
)

// handlerTransport calls a handler without a network, so that the test can use fake time.
type handlerTransport struct{ http.HandlerFunc }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func newTestClient(t *testing.T, server http.HandlerFunc) *Client {
	t.Helper()
	c, err := New("http://fermata.test", "token")
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = handlerTransport{server}
	return c
}

// A run may wait for a month, and a server may be down for an hour of it. Events used to end two
// seconds after a server was gone.
func TestEvents_ReconnectAfterLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var from, until time.Time // when the server is down
		c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case time.Now().Before(from):
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: waiting\ndata: {\"id\":\"e1\"}\n\n")
			case time.Now().Before(until):
				w.WriteHeader(http.StatusBadGateway)
			default:
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "event: outcome\ndata: {\"status\":\"completed\",\"runId\":\"r\"}\n\n")
			}
		})
		from = time.Now().Add(time.Millisecond)
		until = from.Add(time.Hour)
		began, seen := time.Now(), ""
		for event, err := range c.Events(t.Context(), "memo-1", "") {
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(began), err)
			}
			seen += event.Type + " "
		}
		if seen != "waiting outcome " || time.Since(began) > time.Hour+10*time.Second {
			t.Errorf("it saw %sin %v", seen, time.Since(began))
		}
	})
}

func TestEvents_ContextErrorNamesTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) {
			if w.Header().Set("Content-Type", "text/event-stream"); !first {
				w.WriteHeader(http.StatusBadGateway)
			}
			first = false
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, err := range c.Events(ctx, "memo-1", "") {
			problem, ok := errors.AsType[*api.Problem](err)
			if !errors.Is(err, context.DeadlineExceeded) || !ok || problem.Status != http.StatusBadGateway {
				t.Error(err)
			}
		}
		if ctx.Err() == nil {
			t.Error("it gave up before")
		}
	})
}

// A wrong address is reported.
func TestEvents_UnreachableServerIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
		began := time.Now()
		for _, err := range c.Events(t.Context(), "memo-1", "") {
			if _, ok := errors.AsType[*api.Problem](err); !ok {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Nothing was sent, so a retry would be useless.
func TestClient_InvalidJSONIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestClient(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
		began := time.Now()
		if _, err := c.Start(t.Context(), "inproc:memo", "memo-1", json.RawMessage(`{"text":`)); err == nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for _, err := range c.ChatEvents(t.Context(), api.Chat{StateKey: "memo-1", ResumeID: "1", ResumeValue: json.RawMessage(`nope`)}) {
			if err == nil || time.Since(began) > 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
		}
	})
}

// The limit of an event holds for all its lines: otherwise a server could fill the memory.
func TestParseSSE_EventOfManyLinesIsLimited(t *testing.T) {
	line := "data: " + strings.Repeat("x", 1<<20) + "\n"
	read := 0
	for range parseSSE(readerFunc(func(p []byte) (int, error) {
		n := copy(p, line[read%len(line):])
		read += n
		if read > 4*maxResponse {
			t.Fatal("the event is read without end")
		}
		return n, nil
	})) {
		t.Fatal("the event never ends")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
