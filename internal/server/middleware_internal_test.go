package server

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
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

// slowClient records when each write has to be done.
type slowClient struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
	written   []int
}

func (c *slowClient) SetWriteDeadline(at time.Time) error {
	c.deadlines = append(c.deadlines, at)
	return nil
}

func (c *slowClient) Write(data []byte) (int, error) {
	time.Sleep(time.Second)
	c.written = append(c.written, len(data))
	return c.ResponseRecorder.Write(data)
}

// The write timeout is for a piece of the response, not for all of it.
func TestStatusWriter_TimeoutIsThatOfAPiece(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slowClient{ResponseRecorder: httptest.NewRecorder()}
		data := bytes.Repeat([]byte("x"), 3*maxPiece+1)
		n, err := newStatusWriter(c, 10*time.Second).Write(data)
		if err != nil || n != len(data) || c.Body.Len() != len(data) {
			t.Errorf("%d bytes, %v", n, err)
		}
		if len(c.written) != 4 || slices.Max(c.written) > maxPiece || time.Until(c.deadlines[len(c.deadlines)-1]) != 9*time.Second {
			t.Errorf("%v, %v", c.written, c.deadlines)
		}
	})
}
