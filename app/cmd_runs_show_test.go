package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
)

// The first of two approvals says how the votes stand; a rejection is a result and not a crash.
func TestDecide_PrintsVotesAndRejections(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, out, errOut := o.as("bob", "approve", id); code != cli.ExitOK || !shows(out, "recorded … 1 of 2 approvals") || strings.Contains(out, "{") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	key := o.last().StateKey
	if code, out, errOut := o.as("ops", "runs", "show", key); code != cli.ExitOK || !shows(out, "status … waiting") || !shows(out, "needs … an answer to "+id) || !strings.Contains(out, "fermata show "+id) {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("ops", "watch", key, "--timeout", "1s"); code != cli.ExitPending || strings.Count(out, "fermata show "+id) != 1 {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("eve", "reject", id, "--reason", "too much"); code != cli.ExitOK || !shows(out, "rejected … the run ended") || strings.Contains(out+errOut, "fail") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("ops", "watch", key); code != cli.ExitRunFailed || !shows(out, "rejected … the run ended") || !strings.Contains(errOut, "a person refused what the run asked for") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
}

// A parked run says that it needs an operator, and can be retried.
func TestRuns_ParkedRunCanBeRetried(t *testing.T) {
	status := "parked"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.Path == "/api/v1/runs/pay it/retry":
			status = "ready"
			w.WriteHeader(http.StatusNoContent)
		case r.URL.Path == "/api/v1/runs/pay it/events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: parked\ndata: {\"id\":\"run_1:1\",\"type\":\"parked\",\"createdAt\":\"2026-11-17T03:00:00Z\"}\n\n")
			fmt.Fprint(w, "event: outcome\ndata: {\"status\":\"completed\",\"runId\":\"run_1\",\"content\":\"paid\"}\n\n")
		default:
			fmt.Fprintf(w, `{"stateKey":"pay it","runId":"run_1","graphId":"inproc:pay","status":%q,"attempts":3,"createdAt":"2026-11-17T03:00:00Z","updatedAt":"2026-11-17T03:00:00Z","requests":[]}`, status)
		}
	}))
	defer s.Close()
	at := []string{"--url", s.URL, "--token", "x"}
	for _, args := range [][]string{{"runs", "show", "pay it"}, {"watch", "pay it"}} {
		if code, out, errOut := call(t, append(args, at...)...); code != cli.ExitOK || !shows(out, "needs … an operator") || !strings.Contains(out, "fermata retry 'pay it'") {
			t.Errorf("%d %s%s", code, out, errOut)
		}
	}
	if code, out, errOut := call(t, append([]string{"retry", "pay it"}, at...)...); code != cli.ExitOK || !shows(out, "retried … pay it") || !shows(out, "status … ready") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, _ := call(t, append([]string{"runs", "show", "pay it", "--json"}, at...)...); code != cli.ExitOK || !strings.Contains(out, `"status":"ready"`) {
		t.Errorf("%d %s", code, out)
	}
}
