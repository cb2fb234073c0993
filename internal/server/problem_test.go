package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// The documented table is generated from the code.
func TestProblems_AreDocumented(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Problems\n\n" +
		"Errors are RFC 9457 problems (`application/problem+json`). `code` is stable and for programs, `title`\n" +
		"and `detail` are for people; none of them contains run data. `errors` lists the invalid parts of the\n" +
		"request, `decided` the decision that was recorded first. A response with `Retry-After` may be\n" +
		"repeated after that delay. If it is unknown whether a request was applied, repeat it with the same\n" +
		"id: it is applied once.\n\n" +
		"This table is generated from `server.Codes` (`go test ./internal/server -run Problems -update`).\n\n| code | status | meaning |\n|---|---|---|\n")
	for _, c := range server.Codes {
		fmt.Fprintf(&b, "| `%s` | %d | %s: %s |\n", c.Code, c.Status, c.Title, c.Help)
	}
	golden.Compare(t, "../../docs/problems.md", b.String())
}

// Every code of the table can be produced, with the documented status.
func TestProblems_EachCodeIsReachable(t *testing.T) {
	const decide = `{"resumeId":"%s","answer":{"action":"approve"}}`
	const approve = `{"stateKey":"demo-1","resumeId":"%s","resumeValue":{"action":"approve"}}`
	decision := func(s *site, id, resume string) answer {
		return s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", fmt.Sprintf(decide, resume))
	}
	first := func(s *site) string {
		s.chat("agent@acme", startDemo)
		return s.openRequests("acme")[0].ID
	}
	with := func(change func(*server.Config)) func(*testing.T) *site {
		return func(t *testing.T) *site { return open(t, change) }
	}
	plain := with(nil)
	cases := map[string]struct {
		open func(*testing.T) *site
		get  func(*site) answer
	}{
		"bad_request": {plain, func(s *site) answer { return s.chat("agent@acme", `{`) }},
		"invalid_input": {plain, func(s *site) answer {
			return s.chat("agent@acme", `{"graphId":"inproc:content-review","input":{"topic":7}}`)
		}},
		"data_too_large": {plain, func(s *site) answer { return s.call("agent@acme", "POST", "/api/v1/requests", largeRequest) }},
		"interrupt_id_required": {plain, func(s *site) answer {
			s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{}}}`)
			return s.chat("approver@acme", `{"stateKey":"a","resumeId":"1","resumeValue":{"verb":"approve"}}`)
		}},
		"bad_answer": {plain, func(s *site) answer {
			first(s)
			return s.chat("approver@acme", `{"stateKey":"demo-1","resumeId":"1","resumeValue":7}`)
		}},
		"too_large":              {plain, func(s *site) answer { return s.chat("agent@acme", `{"graphId":"`+strings.Repeat("x", 3<<20)+`"}`) }},
		"timeout":                {with(func(c *server.Config) { c.Limits.BodyTimeout = time.Millisecond }), (*site).slow},
		"unsupported_media_type": {plain, func(s *site) answer { return s.chat("agent@acme", startDemo, "Content-Type", "text/plain") }},
		"unauthenticated":        {plain, func(s *site) answer { return s.chat("", startDemo) }},
		"forbidden":              {plain, func(s *site) answer { return s.chat("auditor@acme", startDemo) }},
		"not_found":              {plain, func(s *site) answer { return s.call("agent@acme", "GET", "/api/v1/runs/unknown", "") }},
		"unknown_graph":          {plain, func(s *site) answer { return s.chat("agent@acme", `{"graphId":"inproc:unknown","input":{}}`) }},
		"method_not_allowed":     {plain, func(s *site) answer { return s.call("agent@acme", "DELETE", "/api/v1/runs", "") }},
		"state_key_in_use": {plain, func(s *site) answer {
			first(s)
			return s.chat("agent@acme", strings.Replace(startDemo, "tea", "coffee", 1))
		}},
		"receipt_exists": {plain, func(s *site) answer {
			s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{}}}`)
			s.call("agent@acme", "POST", "/api/v1/runs/a/receipt", `{"outcome":"done","digest":"`+strings.Repeat("0", 64)+`"}`)
			return s.call("agent@acme", "POST", "/api/v1/runs/a/receipt", `{"outcome":"failed","digest":"`+strings.Repeat("0", 64)+`"}`)
		}},
		"already_decided": {plain, func(s *site) answer { id := first(s); decision(s, id, "1"); return decision(s, id, "2") }},
		"not_active": {plain, func(s *site) answer {
			decision(s, first(s), "1")
			return s.call("agent@acme", "POST", "/api/v1/runs/demo-1/cancel", "")
		}},
		"not_retryable": {plain, func(s *site) answer {
			first(s)
			return s.call("admin@acme", "POST", "/api/v1/runs/demo-1/retry", "")
		}},
		"expired": {func(t *testing.T) *site {
			return openWith(t, nil, func(c *executor.Config) { c.RequestTimeout = time.Nanosecond })
		}, func(s *site) answer { return decision(s, first(s), "1") }},
		"superseded": {plain, func(s *site) answer {
			id := first(s)
			s.call("agent@acme", "POST", "/api/v1/runs/demo-1/cancel", "")
			return decision(s, id, "1")
		}},
		"digest_mismatch": {plain, func(s *site) answer {
			return s.call("approver@acme", "POST", "/api/v1/requests/"+first(s)+"/decision", `{"resumeId":"1","answer":{"action":"approve"},"shown":"else"}`)
		}},
		"resume_id_reused": {plain, func(s *site) answer {
			first(s)
			s.chat("approver@acme", fmt.Sprintf(approve, "1"))
			return s.chat("approver@acme", strings.Replace(fmt.Sprintf(approve, "1"), "approve", "revise", 1))
		}},
		"idempotency_key_reused": {plain, func(s *site) answer {
			const start = `{"graphId":"inproc:content-review","input":{"topic":"tea"}}`
			s.chat("agent@acme", start, "Idempotency-Key", "1")
			return s.chat("agent@acme", strings.Replace(start, "tea", "coffee", 1), "Idempotency-Key", "1")
		}},
		"invalid_conditions": {plain, func(s *site) answer {
			s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{}}}`)
			return s.call("approver@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve","conditions":{"onlyIf":"false"}}}`)
		}},
		"not_eligible": {func(t *testing.T) *site { return openDeskSite(t) }, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("approver@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/claim", `{}`)
		}},
		"delegate_not_eligible": {func(t *testing.T) *site {
			return openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [\"user:bob\"]}], deadline: 1h}}\nrules: []\n")
		}, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("bob@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/delegate", `{"to":"mallory"}`)
		}},
		"identity_mismatch": {func(t *testing.T) *site { return openDeskSite(t) }, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("approver@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve","by":"eve"}}`)
		}},
		"action_not_allowed": {plain, func(s *site) answer {
			return s.call("approver@acme", "POST", "/api/v1/requests/"+first(s)+"/release", `{}`)
		}},
		"earlier_stage": {func(t *testing.T) *site {
			return openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [\"user:eve\"]}, {from: [\"user:bob\"], stage: 1}], deadline: 1h}}\nrules: []\n")
		}, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("bob@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
		}},
		"decision_pending": {func(t *testing.T) *site {
			return openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, undo: 10m}}\nrules: []\n")
		}, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			path := "/api/v1/requests/" + s.openRequests("acme")[0].ID + "/decision"
			s.call("bob@acme", "POST", path, `{"resumeId":"1","answer":{"verb":"approve"}}`)
			return s.call("eve@acme", "POST", path, `{"resumeId":"1","answer":{"verb":"approve"}}`)
		}},
		"not_confirmed": {func(t *testing.T) *site {
			return openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, confirm: [/table]}}\nrules: []\n")
		}, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("bob@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
		}},
		"stronger_auth_required": {func(t *testing.T) *site {
			return openDeskSiteWith(t, "default: ask\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h, min_auth: hardware}}\nrules: []\n")
		}, func(s *site) answer {
			s.chat("agent@acme", startDrop)
			return s.call("bob@acme", "POST", "/api/v1/requests/"+s.openRequests("acme")[0].ID+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
		}},
		"no_policy": {plain, func(s *site) answer {
			return s.call("auditor@acme", "POST", "/api/v1/policies/explain", `{"tool":"drop-table"}`)
		}},
		"rate_limited": {with(func(c *server.Config) { c.Limits.Rate, c.Limits.Burst = 0.001, 1 }), func(s *site) answer { s.chat("agent@acme", startDemo); return s.chat("agent@acme", startDemo) }},
		"agent_limit": {with(func(c *server.Config) { c.Limits.RequestsPerAgent = 1 }), func(s *site) answer {
			s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"refund","data":1}`)
			return s.call("agent@acme", "POST", "/api/v1/requests", `{"kind":"refund","data":2}`)
		}},
		"question_closed": {func(t *testing.T) *site { return openConversations(t, nil, nil) }, func(s *site) answer {
			s.call("user@acme", "POST", conversations, `{"id":"c1"}`)
			s.say("user@acme", "c1", `{"text":"hello"}`)
			s.say("user@acme", "c1", `{"text":"first"}`)
			return s.call("user@acme", "POST", conversations+"/c1/messages", `{"question":"q1","choice":"yes"}`)
		}},
		"too_many_open": {with(func(c *server.Config) { c.Limits.OpenRequests = 1 }), func(s *site) answer {
			first(s)
			return s.chat("agent@acme", strings.Replace(startDemo, "demo-1", "demo-2", 1))
		}},
		"too_many_runs": {func(t *testing.T) *site {
			s, release := openHeldWith(t, func(c *server.Config) { c.Limits.ActiveRuns = 1 })
			t.Cleanup(release)
			return s
		}, func(s *site) answer {
			s.chat("agent@acme", startHeld, "Prefer", "respond-async")
			return s.chat("agent@acme", startDemo)
		}},
		"unreadable": {func(t *testing.T) *site {
			nothing := "/data/" // of any request
			keys := new(lostKeySealer)
			keys.lostLabel.Store(&nothing)
			return openWith(t, nil, func(c *executor.Config) { keys.Sealer, c.Sealer = c.Sealer, keys })
		}, func(s *site) answer {
			return s.call("approver@acme", "GET", "/api/v1/requests/"+first(s), "")
		}},
		"internal": {with(func(c *server.Config) {
			c.Auth = authn.AuthenticatorFunc(func(*http.Request) (authn.Principal, error) { panic(canary) })
		}), func(s *site) answer { return s.chat("agent@acme", startDemo) }},
		"unavailable": {with(func(c *server.Config) {
			c.Auth = authn.AuthenticatorFunc(func(*http.Request) (authn.Principal, error) {
				return authn.Principal{}, errors.New("the store is down")
			})
		}), func(s *site) answer { return s.chat("agent@acme", startDemo) }},
	}
	again := map[string]bool{"rate_limited": true, "agent_limit": true, "too_many_open": true, "too_many_runs": true, "unavailable": true}
	for _, code := range server.Codes {
		t.Run(code.Code, func(t *testing.T) {
			c, ok := cases[code.Code]
			if !ok {
				t.Fatal("it is never returned")
			}
			got := c.get(c.open(t))
			if detail, _ := got.field("detail").(string); strings.Contains(detail, "executor:") || strings.Contains(detail, "store:") {
				t.Errorf("%s: the detail names our packages: %s", code.Code, detail)
			}
			if got.status != code.Status || got.field("code") != code.Code || got.field("title") != code.Title || got.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%+v", got)
			}
			if (got.header.Get("Retry-After") != "") != again[code.Code] {
				t.Errorf("Retry-After: %q", got.header.Get("Retry-After"))
			}
		})
	}
}

// panickyAnswer is an answer whose validation panics.
type panickyAnswer struct {
	Text string `json:"text"`
}

func (a panickyAnswer) Validate() error { panic("what is " + a.Text + "?") }

var panickyKind = fermata.NewKind[string, panickyAnswer]("touching-of-server-test")

// A panicking validation rejects the answer; it used to return "unavailable", and to log the
// answer.
func TestI7_PanickingAnswerCheckIsRejectedAndNotLogged(t *testing.T) {
	s := openWith(t, nil, nil, single(t, "touching", func(ctx context.Context, n table) (table, error) {
		_, err := panickyKind.Ask(ctx, "?")
		return n, err
	}))
	s.chat("agent@acme", `{"graphId":"inproc:touching","stateKey":"t-1","input":{}}`)
	got := s.call("approver@acme", "POST", "/api/v1/ai/chat", `{"stateKey":"t-1","resumeId":"1","resumeValue":{"text":"`+canary+`"}}`)
	if got.status != 400 || got.field("code") != "bad_answer" {
		t.Errorf("%+v", got)
	}
	s.checkNoCanary("the answer to it", got.body)
	if log := s.log.String(); !strings.Contains(log, "code panicked") || !strings.Contains(log, "panickyAnswer") {
		t.Errorf("the author of the kind does not find the cause: %s", log)
	}
}
