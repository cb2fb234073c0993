package server_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
)

func TestReceipt_AgentSaysWhatItDid(t *testing.T) {
	s := open(t, nil)
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{"table":"users"}},"receipt":true}`)
	id := s.openRequests("acme")[0].ID
	decided := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"verb":"approve"}}`)
	digest, _ := decided.field("output").(map[string]any)["approvedDigest"].(string)
	page := decode[api.AnswersPage](t, s.call("agent@acme", "GET", "/api/v1/answers", ""))
	run := decode[struct {
		Requests []api.Request
		Receipt  *api.Receipt
	}](t, s.call("agent@acme", "GET", "/api/v1/runs/a", ""))
	if len(digest) != 64 || len(page.Items) != 1 || page.Items[0].ApprovedDigest != digest || run.Requests[0].Decision.ApprovedDigest != digest || run.Receipt != nil {
		t.Fatalf("%+v, %+v, %+v", decided, page, run)
	}
	body := `{"digest":"` + digest + `","outcome":"done","result":{"rows":3}}`
	first := s.call("agent@acme", "POST", "/api/v1/runs/a/receipt", body)
	if first.status != 200 || first.field("by") != "agent" || first.field("digest") != digest {
		t.Fatalf("%+v", first)
	}
	if again := s.call("agent@acme", "POST", "/api/v1/runs/a/receipt", body); again.status != 200 || again.body != first.body {
		t.Errorf("%+v", again)
	}
	if got := s.call("auditor@acme", "GET", "/api/v1/runs/a", ""); !strings.Contains(got.body, `"receipt":{"digest":"`+digest) || !strings.Contains(got.body, `"rows":3`) {
		t.Errorf("%+v", got)
	}
	for name, c := range map[string]struct {
		token, key, body string
		status           int
		code             string
	}{
		"another receipt": {"agent@acme", "a", strings.Replace(body, "done", "failed", 1), 409, "receipt_exists"},
		"unknown run":     {"agent@acme", "b", body, 404, "not_found"},
		"other account":   {"agent@other", "a", body, 404, "not_found"},
		"an approver":     {"approver@acme", "a", body, 403, "forbidden"},
		"a bad digest":    {"agent@acme", "a", `{"digest":"` + strings.Repeat("x", 64) + `","outcome":"done"}`, 400, "bad_request"},
		"a short digest":  {"agent@acme", "a", `{"digest":"ab","outcome":"done"}`, 400, "bad_request"},
		"another outcome": {"agent@acme", "a", strings.Replace(body, "done", "perhaps", 1), 400, "bad_request"},
	} {
		if got := s.call(c.token, "POST", "/api/v1/runs/"+c.key+"/receipt", c.body); got.status != c.status || got.field("code") != c.code {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
