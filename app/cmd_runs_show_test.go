package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// The first of two approvals says how the votes stand; a rejection is a result and not a crash.
func TestDecide_PrintsVotesAndRejections(t *testing.T) {
	o := openDeskEnv(t)
	id := o.refundFor("1")
	if code, out, errOut := o.as("bob", "approve", id); code != exitOK || !shows(out, "recorded … 1 of 2 approvals") || strings.Contains(out, "{") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	key := o.last().StateKey
	if code, out, errOut := o.as("ops", "runs", "show", key); code != exitOK || !shows(out, "status … waiting") || !shows(out, "needs … an answer to "+id) || !strings.Contains(out, "fermata show "+id) {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("ops", "watch", key, "--timeout", "1s"); code != exitPending || strings.Count(out, "fermata show "+id) != 1 {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("eve", "reject", id, "--reason", "too much"); code != exitOK || !shows(out, "rejected … the run ended") || strings.Contains(out+errOut, "fail") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, errOut := o.as("ops", "watch", key); code != exitRunFailed || !shows(out, "rejected … the run ended") || !strings.Contains(errOut, "a person refused what the run asked for") {
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
		if code, out, errOut := call(t, append(args, at...)...); code != exitOK || !shows(out, "needs … an operator") || !strings.Contains(out, "fermata retry 'pay it'") {
			t.Errorf("%d %s%s", code, out, errOut)
		}
	}
	if code, out, errOut := call(t, append([]string{"retry", "pay it"}, at...)...); code != exitOK || !shows(out, "retried … pay it") || !shows(out, "status … ready") {
		t.Errorf("%d %s%s", code, out, errOut)
	}
	if code, out, _ := call(t, append([]string{"runs", "show", "pay it", "--json"}, at...)...); code != exitOK || !strings.Contains(out, `"status":"ready"`) {
		t.Errorf("%d %s", code, out)
	}
}

// The last line of show names the commands that can decide this request, and no others.
func TestShow_HintFollowsTheRequest(t *testing.T) {
	doubt, err := json.Marshal(fermata.InDoubtRequest{Action: "pay", Key: "k-17", Error: "i/o timeout"})
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]api.Request{
		"\nfermata answer int_1":                               {Kind: "name", AnswerSchema: json.RawMessage(`{"type":"string"}`)},
		"\nfermata approve|reject|answer int_1":                {Kind: "approval", AnswerSchema: fermata.Approval.HumanAnswerSchema()},
		"\nfermata approve|answer int_1":                       {Kind: "hold", Address: "runnable:g;hold:before#pay"},
		`fermata answer int_1 '{"happened":false}'`:            {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
		`but the call returned the error "i/o timeout". It is`: {Kind: fermata.EffectInDoubt.Name(), Data: doubt, AnswerSchema: fermata.EffectInDoubt.HumanAnswerSchema()},
	} {
		r.ID, r.State = "int_1", "pending"
		var out bytes.Buffer
		printRequest(&out, r)
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in\n%s", want, out.String())
		}
	}
}
