package server

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A client that disconnects during a response used to cause a net/http log line about a repeated
// status.
func TestMiddleware_ResponseHasOneStatus(t *testing.T) {
	var complaints bytes.Buffer
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		seen := &statusWriter{ResponseWriter: w, control: http.NewResponseController(w), writeTimeout: time.Minute}
		seen.WriteHeader(http.StatusAccepted)
		seen.WriteHeader(499)
		_, _ = io.WriteString(seen, "yes")
		if seen.status != http.StatusAccepted {
			t.Errorf("the counted status is %d", seen.status)
		}
	})
	s := httptest.NewUnstartedServer(answers)
	s.Config.ErrorLog = log.New(&complaints, "", 0)
	s.Start()
	response, err := http.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	s.Close()
	if err != nil || response.StatusCode != http.StatusAccepted || string(body) != "yes" {
		t.Errorf("the response is %d %q, %v", response.StatusCode, body, err)
	}
	if complaints.Len() > 0 {
		t.Errorf("in the log: %s", &complaints)
	}
}
