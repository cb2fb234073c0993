package client

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
)

// A connection that breaks in the middle of an answer is one that broke. The program said "unexpected EOF", and ended as if the call could not simply be made again.
func TestClient_AnAnswerThatIsCutOffIsAServerThatWasNotReached(t *testing.T) {
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
