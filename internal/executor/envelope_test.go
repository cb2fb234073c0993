package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
	"github.com/fermata-go/fermata/provider/inproc"
)

func nested(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// Regression: only the size of a provider's request was checked. Duplicate members showed approvers
// one of two meanings, and the run became unreadable or was attempted 25 times in vain.
func TestI13_AmbiguousOrInvalidRequestIsNotShown(t *testing.T) {
	data := json.RawMessage(`{}`)
	for name, q := range map[string]provider.Interrupt{
		"duplicate member":               {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{"a":1,"a":2}`)}},
		"member in another case":         {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{"a":1,"A":2}`)}},
		"broken UTF-8":                   {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage("\"\xff\"")}},
		"invalid JSON":                   {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{`)}},
		"too deep":                       {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(nested(81))}},
		"schema is not JSON":             {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: data}, AnswerSchema: json.RawMessage(`{`)},
		"schema with a duplicate member": {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: data}, AnswerSchema: json.RawMessage(`{"type":"string","type":"object"}`)},
		"id is not UTF-8":                {ID: "q\xff", Envelope: fermata.Envelope{Kind: "k", Data: data}},
		"kind is not UTF-8":              {ID: "q", Envelope: fermata.Envelope{Kind: "k\xff", Data: data}},
		"kind is too long":               {ID: "q", Envelope: fermata.Envelope{Kind: strings.Repeat("k", 513), Data: data}},
		"no kind":                        {ID: "q", Envelope: fermata.Envelope{Data: data}},
		"empty data":                     {ID: "q", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage{}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
				return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{q}}}, nil
			}}
			e := executorOf(t, memory.NewStore(nil), p, nil)
			start := scriptedStart()
			start.Wait = time.Minute // the run is not retried until then
			failedWith(t, mustRun(t, e, start), "bad_question")
			if _, err := e.GetRun(t.Context(), "acme", "x-1"); err != nil {
				t.Errorf("the run cannot be read: %v", err)
			}
		})
	}
}

// Regression: after an outcome with white space or "<" in it was written and read, a request
// counted as another one. Answering one of two requests then withdrew the other one with its votes.
func TestAsk_OpenRequestKeepsItsIDForEveryJSONSpelling(t *testing.T) {
	two := []provider.Interrupt{
		{ID: "q1", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{ "html": "<b>" }`)}},
		{ID: "q2", Envelope: fermata.Envelope{Kind: "k", Data: json.RawMessage(`{ "html": "<b>" }`)}},
	}
	p := &scripted{execute: func(_ int64, e provider.Execution) (provider.Result, error) {
		if len(e.Answers) == 0 {
			return provider.Result{Outcome: provider.Waiting{Interrupts: two}}, nil
		}
		return provider.Result{Applied: []string{e.Answers[0].InterruptID}, Outcome: provider.Waiting{Interrupts: two[1:]}}, nil
	}}
	e := executorOf(t, memory.NewStore(nil), p, nil)
	waits(t, mustRun(t, e, scriptedStart()))
	one := executor.RunRequest{Account: "acme", StateKey: "x-1", ResumeID: "1", Actor: "ann", Targets: map[string]executor.Answer{"q1": {Value: json.RawMessage(`1`)}}}
	if left := waits(t, mustRun(t, e, one)); len(left.Interrupts) != 1 || left.Interrupts[0].ID != "q2" {
		t.Errorf("the run asks %+v", left.Interrupts)
	}
}

// Regression: an accepted answer that was nested nearly as deep as allowed made its request and its
// run unreadable. Both hold it some levels further down.
func TestI13_AcceptedAnswerStaysReadable(t *testing.T) {
	p, err := external.New(external.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for said, taken := range map[string]bool{nested(80): true, nested(81): false, nested(100): false, `1e400`: true, `{"n":-1e-400}`: true, `123456789012345678901234567890`: true} {
		e := executorOf(t, memory.NewStore(nil), p, nil)
		start := executor.RunRequest{Account: "acme", StateKey: "d", Graph: "external:request", Input: json.RawMessage(`{"kind":"k","data":` + nested(79) + `}`)}
		id := waits(t, mustRun(t, e, start)).Interrupts[0].ID
		waits(t, mustRun(t, e, start)) // the stored request can be read
		resume := executor.RunRequest{Account: "acme", StateKey: "d", ResumeID: "r", Actor: "ann", Value: json.RawMessage(said)}
		_, err := e.Run(t.Context(), resume)
		if taken && err != nil || !taken && !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%.20s: %v", said, err)
		}
		if taken {
			if done := completed(t, mustRun(t, e, resume)); !strings.Contains(string(done.Output), said) {
				t.Errorf("%.20s was returned as %s", said, done.Output)
			}
		}
		if _, err := e.RequestDocument(t.Context(), "acme", id); err != nil {
			t.Errorf("%.20s: read the request: %v", said, err)
		}
		if _, err := e.GetRun(t.Context(), "acme", "d"); err != nil {
			t.Errorf("%.20s: read the run: %v", said, err)
		}
	}
}

// The output of a run is not restricted: any JSON is allowed.
func TestOutcome_AnyJSONIsAllowed(t *testing.T) {
	type state struct {
		Headers map[string]string `json:"headers"`
	}
	p := single(t, "fetch", inproc.FlowConfig[state]{}, func(_ context.Context, s state) (state, error) {
		s.Headers = map[string]string{"ETag": "1", "etag": "2"}
		return s, nil
	})
	e := executorOf(t, memory.NewStore(nil), p, nil)
	request := executor.RunRequest{Account: "acme", StateKey: "f-1", Graph: "inproc:fetch", Input: json.RawMessage(`{"headers":{}}`)}
	completed(t, mustRun(t, e, request))
	if done := completed(t, mustRun(t, e, request)); !strings.Contains(string(done.Output), `"etag"`) {
		t.Errorf("output %s", done.Output)
	}
}

// A provider shows one action, or an action without arguments, with the digest of another action.
func TestI6_ShownActionIsTheApprovedAction(t *testing.T) {
	other, err := fermata.ApprovalRequest{Action: "drop-table"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(`"users"`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range []string{`{"action":"drop-table","args":"scratch","digest":"` + other + `"}`, `{"action":"drop-table","digest":"` + other + `"}`} {
		p := &scripted{execute: func(int64, provider.Execution) (provider.Result, error) {
			question := provider.Interrupt{ID: "q", Envelope: fermata.Envelope{Kind: fermata.Approval.Name(), Data: json.RawMessage(data)}}
			return provider.Result{Outcome: provider.Waiting{Interrupts: []provider.Interrupt{question}}}, nil
		}}
		failedWith(t, mustRun(t, executorOf(t, memory.NewStore(nil), p, nil), scriptedStart()), "bad_question")
	}
}
