package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// A rejected request gets an error at once, and earlier runs continue.
func TestWebClient_DistinguishesRejectionFromFailure(t *testing.T) {
	status := http.StatusServiceUnavailable
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, `{"status":"running","output":{"topic":"tea","verdict":"approve","status":"published"}}`)
	}))
	defer front.Close()
	w, err := newRawHTTPClient(front.URL, chatPath, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.closeIdle()
	client := &webClient{http: w}
	for code, refused := range map[int]bool{429: true, 503: true, 202: false, 500: false, 401: false} {
		status = code
		for name, err := range map[string]error{"start": client.start(t.Context(), "k"), "decide": client.decide(t.Context(), "k")} {
			response, ok := errors.AsType[*statusError](err)
			if !ok || response.isRejection() != refused {
				t.Errorf("%s, %d: %v", name, code, err)
			}
		}
	}
	status = http.StatusOK
	if err := client.decide(t.Context(), "k"); err == nil {
		t.Error("a run that has not ended counted as decided")
	}
	if err := client.start(t.Context(), "k"); err == nil {
		t.Error("a run that does not wait counted as started")
	}
}

func TestOverload_CountsResults(t *testing.T) {
	r := overloadRound{capacity: 10}
	for range 8 {
		r.count(nil, time.Second, time.Millisecond)
	}
	r.count(&statusError{status: 503}, 9*time.Second, time.Millisecond)
	r.count(&statusError{status: 500}, 9*time.Second, time.Millisecond)
	r.count(io.ErrUnexpectedEOF, 9*time.Second, time.Millisecond)
	if len(r.good) != 8 || len(r.refused) != 1 || r.failed != 2 || r.lasted != time.Second || r.goodput() != 0.8 {
		t.Errorf("%+v, goodput %g", r, r.goodput())
	}
	if (overloadRound{}).goodput() != 0 {
		t.Error("nothing done counted as something")
	}
}

// Decisions are counted regardless of their result, and a rejection is counted and is not a
// failure.
func TestDecideAtPace_CountsRejections(t *testing.T) {
	status := http.StatusServiceUnavailable
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer front.Close()
	w, err := newRawHTTPClient(front.URL, chatPath, "")
	if err != nil {
		t.Fatal(err)
	}
	defer w.closeIdle()
	c := &webClient{http: w}
	if took, refused, err := decideAtPace(t.Context(), c, 1e6, []string{"a"}); err != nil || len(took) != 1 || refused != 1 {
		t.Errorf("%v, %v; %d rejected", took, err, refused)
	}
	status = http.StatusInternalServerError
	if _, _, err := decideAtPace(t.Context(), c, 1e6, []string{"a"}); err == nil {
		t.Error("a failure is lost")
	}
}

// All keys of a tenant send at the same time; together they offer as much as one would.
func TestTenant_OverloadsWithAllKeys(t *testing.T) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "-back") {
			io.WriteString(w, `{"status":"needs_input","interrupts":[{"data":""}]}`)
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer front.Close()
	var loud tenant
	for range noisyKeys {
		w, err := newRawHTTPClient(front.URL, chatPath, "")
		if err != nil {
			t.Fatal(err)
		}
		loud = append(loud, &webClient{http: w})
	}
	sum := loud.overload(t.Context(), 40, 100*time.Millisecond)
	if sum.capacity != 40 || len(sum.refused) != 20 || len(sum.good)+sum.failed != 0 {
		t.Errorf("%+v", sum)
	}
}

// A decision that waits for an earlier one is late: its latency counts from when it was due.
func TestAtPace_LatencyCountsFromDueTime(t *testing.T) {
	done := make(chan int, 3)
	first := make(chan struct{})
	latencies, err := atPace(1e6, 3, func(n int) error {
		if n == 2 {
			close(first)
		}
		<-first
		done <- n
		return nil
	})
	if err != nil || len(done) != 3 || len(latencies) != 3 || slices.Min(latencies) <= 0 {
		t.Errorf("%d done, %v, %v", len(done), latencies, err)
	}
	if _, err := atPace(1e6, 2, func(n int) error { return []error{nil, io.EOF}[n] }); !errors.Is(err, io.EOF) {
		t.Errorf("a failure is lost: %v", err)
	}
}

func TestStream_ReadUntilOutcome(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nid: 1\nevent: created\ndata: {}\n\n"
	for name, test := range map[string]struct {
		text string
		good bool
	}{
		"it waits":     {head + "event: outcome\ndata: {}\n\n", true},
		"truncated":    {head, false},
		"closed":       {"HTTP/1.1 503 Service Unavailable\r\n\r\nevent: outcome\n", false},
		"nothing came": {"", false},
	} {
		if err := readUntilOutcome(strings.NewReader(test.text)); (err == nil) != test.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
