package client

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/fermata-go/fermata/api"
)

// A response that breaks off is a broken connection. The program reported "unexpected EOF", as if
// the call could not be repeated.
func TestClient_TruncatedResponseIsRetried(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		io.WriteString(w, `{"items":[`)
	}))
	defer server.Close()
	c, err := New(server.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	c.tries = 1
	_, err = c.Runs(t.Context(), Query{})
	if lost, ok := errors.AsType[*url.Error](err); !ok || !errors.Is(lost, io.ErrUnexpectedEOF) {
		t.Errorf("%#v", err)
	}
}

// A truncated problem response of a stream had no code but "http", and the stream was given up;
// other calls were retried.
func TestEvents_TruncatedProblemIsRetried(t *testing.T) {
	const told = `{"status":404,"code":"not_found","title":"Not found"}`
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Content-Length", fmt.Sprint(len(told)))
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, told[:map[bool]int{true: 10, false: len(told)}[calls == 1]])
	}))
	defer server.Close()
	c, err := New(server.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range c.Events(t.Context(), "nothing", "") {
		if refused, ok := errors.AsType[*api.Problem](err); !ok || refused.Code != "not_found" {
			t.Errorf("%#v", err)
		}
	}
	if calls != 2 {
		t.Errorf("asked %d times", calls)
	}
}
