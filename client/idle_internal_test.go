package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fermata-go/fermata"
)

// A replica hangs, or its machine is gone without closing connections. Over HTTP/1.1 only the
// missing heartbeat reveals that.
func TestEvents_IdleStreamIsReopened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tries []string
		c := newClient(t, func(r *http.Request) io.Reader {
			tries = append(tries, r.Header.Get("Last-Event-ID"))
			switch len(tries) {
			case 1:
				return io.MultiReader(strings.NewReader(": hello\n\nid: run_1:1\nevent: created\ndata: {\"id\":\"run_1:1\",\"type\":\"created\"}\n\n"), silentReader{r.Context()})
			case 2:
				return nil // not even a response
			}
			return strings.NewReader("event: outcome\ndata: {\"status\":\"completed\",\"runId\":\"run_1\"}\n\n")
		})
		if got := outcomeOf(t, c); got == nil {
			t.Error("there is no outcome")
		}
		if len(tries) != 3 || tries[1] != "run_1:1" || tries[2] != "run_1:1" {
			t.Errorf("it reconnected after %q", tries)
		}
	})
}

// A server that never responds is an error that names the cause.
func TestEvents_ServerThatNeverResponds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, func(*http.Request) io.Reader { return nil })
		for _, err := range c.Events(t.Context(), "k", "") {
			if !errors.Is(err, errStreamIdle) {
				t.Error(err)
			}
		}
	})
}

func TestEvents_HeartbeatKeepsStreamOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		c := newClient(t, func(*http.Request) io.Reader {
			tries++
			return io.MultiReader(&heartbeatReader{remaining: 40}, strings.NewReader("event: outcome\ndata: {\"status\":\"completed\",\"runId\":\"run_1\"}\n\n"))
		})
		if got := outcomeOf(t, c); got == nil || tries != 1 {
			t.Errorf("%v after %d connections", got, tries)
		}
	})
}

func newClient(t *testing.T, server answers) *Client {
	t.Helper()
	c, err := New("http://fermata.example", "token")
	if err != nil {
		t.Fatal(err)
	}
	c.http.Transport = server
	return c
}

func outcomeOf(t *testing.T, c *Client) fermata.Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	for event, err := range c.Events(ctx, "k", "") {
		if err != nil {
			t.Fatal(err)
		}
		if event.Outcome != nil {
			return event.Outcome
		}
		time.Sleep(2 * streamIdleTimeout) // the consumer may be slow
	}
	return nil
}

// answers is a server: it returns the response body of a request, or nothing.
type answers func(*http.Request) io.Reader

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := a(r)
	if body == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}, nil
}

// silentReader blocks until the connection is closed.
type silentReader struct{ context.Context }

func (s silentReader) Read([]byte) (int, error) {
	<-s.Done()
	return 0, s.Err()
}

// heartbeatReader sends heartbeats.
type heartbeatReader struct{ remaining int }

func (b *heartbeatReader) Read(p []byte) (int, error) {
	if b.remaining--; b.remaining < 0 {
		return 0, io.EOF
	}
	time.Sleep(15 * time.Second)
	return copy(p, ": keep-alive\n\n"), nil
}
