package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/server"
)

// mayCall says who may call what. A route that is not in it fails the test: somebody has to think about it first.
var mayCall = map[string][]server.Role{
	"POST /api/v1/ai/chat":                {server.Agent, server.Approver},
	"GET /api/v1/runs":                    {server.Agent, server.Approver, server.Auditor},
	"GET /api/v1/runs/{stateKey}":         {server.Agent, server.Approver, server.Auditor},
	"GET /api/v1/runs/{stateKey}/events":  {server.Agent, server.Approver, server.Auditor},
	"POST /api/v1/runs/{stateKey}/cancel": {server.Agent},
	"POST /api/v1/runs/{stateKey}/retry":  {},
	"GET /api/v1/requests":                {server.Approver, server.Auditor},
	"POST /api/v1/requests":               {server.Agent},
	"GET /api/v1/requests/{id}":           {server.Agent, server.Approver, server.Auditor},
	"POST /api/v1/requests/{id}/decision": {server.Approver},
	"GET /api/v1/answers":                 {server.Agent, server.Auditor},
	"GET /api/v1/graphs":                  {server.Agent, server.Approver, server.Auditor},
	"GET /api/v1/kinds":                   {server.Agent, server.Approver, server.Auditor},
	"GET /healthz":                        nil, // everybody
	"GET /readyz":                         nil,
}

// routes are all operations, as "GET /path".
func routes(api *huma.OpenAPI) (all []string) {
	for path, item := range api.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "DELETE": item.Delete, "PATCH": item.Patch, "HEAD": item.Head} {
			if op != nil {
				all = append(all, method+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestI8_EveryRouteKnowsWhoMayCallIt(t *testing.T) {
	s := open(t, nil)
	for _, route := range routes(s.api) {
		allowed, known := mayCall[route]
		if !known {
			t.Errorf("%s is in no table", route)
			continue
		}
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{stateKey}", "unknown", "{id}", "unknown").Replace(path)
		body := ""
		if method == http.MethodPost {
			body = `{}`
		}
		if got := s.call("", method, path, body); (got.status == 401) != (allowed != nil) {
			t.Errorf("%s for a stranger: %d %s", route, got.status, got.body)
		}
		for _, role := range server.Roles {
			if strings.HasSuffix(path, "/chat") && role == server.Approver {
				body = `{"resumeId":"1"}` // to start is for others
			}
			got := s.call(string(role)+"@acme", method, path, body)
			may := allowed == nil || role == server.Admin || slices.Contains(allowed, role)
			if (got.status == 403) == may || got.status >= 500 {
				t.Errorf("%s for %s: %d %s", route, role, got.status, got.body)
			}
		}
	}
}

// What belongs to another account answers as what is not there, to the byte.
func TestI8_OfOthersNothingCanBeSeenOrTouched(t *testing.T) {
	s := open(t, nil)
	s.chat("agent@acme", startDemo)
	list := s.call("approver@acme", "GET", "/api/v1/requests", "")
	id := list.field("items").([]any)[0].(map[string]any)["id"].(string)
	decision := `{"resumeId":"1","answer":{"action":"approve"}}`
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/api/v1/runs/KEY", ""},
		{"GET", "/api/v1/runs/KEY/events", ""},
		{"POST", "/api/v1/runs/KEY/cancel", ""},
		{"POST", "/api/v1/runs/KEY/retry", ""},
		{"GET", "/api/v1/requests/ID", ""},
		{"POST", "/api/v1/requests/ID/decision", decision},
		{"POST", "/api/v1/ai/chat", `{"stateKey":"KEY","resumeId":"1","resumeValue":{"action":"approve"}}`},
	} {
		fill := func(key, id, text string) string { return strings.NewReplacer("KEY", key, "ID", id).Replace(text) }
		foreign := s.call("admin@other", c.method, fill("demo-1", id, c.path), fill("demo-1", id, c.body))
		unknown := s.call("admin@other", c.method, fill("demo-x", strings.Repeat("x", len(id)), c.path), fill("demo-x", strings.Repeat("x", len(id)), c.body))
		if foreign.status != 404 || strings.ReplaceAll(foreign.body, "demo-1", "demo-x") != unknown.body {
			t.Errorf("%s %s: %d %s, and an unknown one: %d %s", c.method, c.path, foreign.status, foreign.body, unknown.status, unknown.body)
		}
	}
	for _, path := range []string{"/api/v1/runs", "/api/v1/requests?state=all", "/api/v1/answers"} {
		if got := s.call("admin@other", "GET", path, ""); got.status != 200 || strings.Contains(got.body, "demo") || strings.Contains(got.body, id) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", decision); got.status != 200 {
		t.Errorf("its owner cannot decide any more: %+v", got)
	}
}
