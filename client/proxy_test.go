package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/client"
)

// intermediaries are responses that a proxy may send instead of the server.
var intermediaries = map[string]http.HandlerFunc{
	"a page": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>\n\n<p>Sign in first</p>\n</html>"))
	},
	"a page elsewhere": func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			_, _ = w.Write([]byte("<html>"))
			return
		}
		http.Redirect(w, r, "/login", http.StatusFound)
	},
	"nothing at all":              func(http.ResponseWriter, *http.Request) {},
	"redirect without a location": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusFound) },
	"object that is not a run":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ok":true}`)) },
}

// A response that does not come from a Fermata server is an error, and never success.
func TestClient_ProxyErrorPageIsAnError(t *testing.T) {
	for name, says := range intermediaries {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewServer(says)
			defer front.Close()
			c, err := client.New(front.URL, "token")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := c.Cancel(ctx, "memo"); err == nil {
				t.Error("a run was cancelled")
			}
			if err := c.Retry(ctx, "memo"); err == nil {
				t.Error("a run was resumed")
			}
			if outcome, err := c.Start(ctx, "inproc:memo", "memo", json.RawMessage(`{}`)); err == nil {
				t.Errorf("a run was started: %#v", outcome)
			}
			for event, err := range c.Events(ctx, "memo", "") {
				if err == nil {
					t.Errorf("something happened: %+v", event)
				}
			}
			if ctx.Err() != nil {
				t.Error("it waited for events until the timeout")
			}
		})
	}
}

// A proxy cuts idle streams. The client reconnects, also if the server is unavailable for a moment
// after many reconnects.
func TestClient_BrokenIdleStreamIsReopened(t *testing.T) {
	var streams atomic.Int64
	c := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasSuffix(r.URL.Path, "/events") {
				h.ServeHTTP(w, r)
				return
			}
			switch n := streams.Add(1); {
			case n <= 6:
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte(": hello\n\n"))
			case n == 7:
				w.WriteHeader(http.StatusBadGateway)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	if _, err := c.Start(t.Context(), "inproc:memo", "memo-1", json.RawMessage(`{"text":"by "}`)); err != nil {
		t.Fatal(err)
	}
	for event, err := range c.Events(t.Context(), "memo-1", "") {
		if err != nil {
			t.Fatalf("after %d connections: %v", streams.Load(), err)
		}
		if event.Outcome != nil {
			return
		}
	}
}
