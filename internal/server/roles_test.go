package server_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// anyone may call the route, authenticated or not.
var anyone []authn.Role

// mayCall lists the allowed roles of each route, besides admins. A route that is not listed fails
// the test.
var mayCall = map[string][]authn.Role{
	"POST /api/v1/ai/chat":                 {authn.RoleAgent, authn.RoleApprover},
	"GET /api/v1/runs":                     {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/runs/{stateKey}":          {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/runs/{stateKey}/events":   {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/runs/{stateKey}/cancel":  {authn.RoleAgent},
	"POST /api/v1/runs/{stateKey}/receipt": {authn.RoleAgent},
	"POST /api/v1/runs/{stateKey}/retry":   {},
	"GET /api/v1/requests":                 {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/requests":                {authn.RoleAgent},
	"GET /api/v1/requests/{id}":            {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/requests/{id}/decision":  {authn.RoleApprover},
	"POST /api/v1/requests/{id}/view":      {authn.RoleApprover},
	"POST /api/v1/requests/{id}/claim":     {authn.RoleApprover},
	"POST /api/v1/requests/{id}/release":   {authn.RoleApprover},
	"POST /api/v1/requests/{id}/undo":      {authn.RoleApprover},
	"POST /api/v1/requests/{id}/comment":   {authn.RoleAgent, authn.RoleApprover},
	"POST /api/v1/requests/{id}/clarify":   {authn.RoleApprover},
	"POST /api/v1/requests/{id}/reply":     {authn.RoleAgent},
	"POST /api/v1/requests/{id}/delegate":  {authn.RoleApprover},
	"POST /api/v1/requests/{id}/snooze":    {authn.RoleApprover},
	"POST /api/v1/requests/{id}/extend":    {authn.RoleApprover},
	"POST /api/v1/requests/{id}/escalate":  {authn.RoleApprover},
	"POST /api/v1/requests/{id}/abandon":   {authn.RoleAgent, authn.RoleApprover},
	"GET /api/v1/requests/events":          {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/requests/{id}/viewing":   {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/requests/{id}/reveal":    {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/policies":                 {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/policies/{digest}":        {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/policies/explain":        {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/policies/replay":         {authn.RoleAuditor},
	"POST /api/v1/requests/{id}/grant":     {authn.RoleApprover},
	"GET /api/v1/grants":                   {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/grants/{id}/revoke":      {authn.RoleApprover},
	"GET /api/v1/analytics":                {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/routes":                   {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/audit":                    {authn.RoleAuditor},
	"GET /api/v1/audit/checkpoints":        {authn.RoleAuditor},
	"GET /api/v1/audit/findings":           {authn.RoleAuditor},
	"GET /api/v1/audit/records":            {authn.RoleAuditor},
	"GET /api/v1/audit/requests/{id}":      {authn.RoleAuditor},
	"GET /api/v1/audit/verification":       {authn.RoleAuditor},

	"GET /api/v1/audit/requests/{id}/bundle":  {authn.RoleAuditor},
	"GET /api/v1/audit/runs/{stateKey}/trail": {authn.RoleAuditor},

	"GET /api/v1/audit/records/{seq}/proof": {authn.RoleAuditor},

	"GET /api/v1/answers":                  {authn.RoleAgent, authn.RoleAuditor},
	"GET /api/v1/graphs":                   {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/graphs/{graphId}":         {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/runs/{stateKey}/graph":    {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/kinds":                    {authn.RoleAgent, authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/invitations":             {},
	"GET /api/v1/members":                  {},
	"GET /api/v1/invitations":              {},
	"DELETE /api/v1/invitations/{id}":      {},
	"GET /api/v1/keys":                     {},
	"DELETE /api/v1/keys/{id}":             {},
	"GET /api/v1/sessions":                 {},
	"DELETE /api/v1/sessions/{id}":         {},
	"GET /api/v1/configuration":            {},
	"GET /api/v1/me/sessions":              authn.Roles,
	"DELETE /api/v1/me/sessions/{id}":      authn.Roles,
	"GET /api/v1/deliveries":               {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/deliveries/{id}/send":    {},
	"GET /api/v1/deliveries/health":        {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/me/channel-links":        {authn.RoleApprover},
	"GET /api/v1/me/channel-links":         {authn.RoleApprover},
	"DELETE /api/v1/me/channel-links/{id}": {authn.RoleApprover},

	"GET /api/v1/me/channel-links/offers/{token}": {authn.RoleApprover},
	"GET /api/v1/webhooks":                        {},
	"POST /api/v1/webhooks":                       {},
	"GET /api/v1/webhooks/{id}":                   {},
	"PUT /api/v1/webhooks/{id}":                   {},
	"DELETE /api/v1/webhooks/{id}":                {},
	"POST /api/v1/webhooks/{id}/rotate":           {},
	"POST /api/v1/webhooks/{id}/test":             {},
	"DELETE /api/v1/members/{id}":                 {},
	"GET /api/v1/me":                              append(slices.Clone(authn.Roles), authn.RoleFrontend),
	"GET /api/v1/me/passkeys":                     authn.Roles,
	"POST /api/v1/me/passkeys":                    authn.Roles,
	"POST /api/v1/me/passkeys/options":            authn.Roles,
	"PUT /api/v1/me/passkeys/{id}":                authn.Roles,
	"DELETE /api/v1/me/passkeys/{id}":             authn.Roles,
	"GET /api/v1/me/notifications":                {authn.RoleApprover, authn.RoleAuditor},
	"PUT /api/v1/me/notifications":                {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/me/push-key":                     {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/me/push-subscriptions":           {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/me/push-subscriptions":          {authn.RoleApprover, authn.RoleAuditor},
	"DELETE /api/v1/me/push-subscriptions/{id}":   {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/me/views":                        {authn.RoleApprover, authn.RoleAuditor},
	"POST /api/v1/me/views":                       {authn.RoleApprover, authn.RoleAuditor},
	"PUT /api/v1/me/views/{id}":                   {authn.RoleApprover, authn.RoleAuditor},
	"DELETE /api/v1/me/views/{id}":                {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/requests/counts":                 {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/assistants":                      {authn.RoleUser, authn.RoleFrontend},
	"POST /api/v1/conversations":                  {authn.RoleUser, authn.RoleFrontend},
	"GET /api/v1/analytics/conversations":         {authn.RoleApprover, authn.RoleAuditor},
	"GET /api/v1/conversations":                   {authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor},
	"GET /api/v1/conversations/{id}":              {authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor},
	"POST /api/v1/conversations/{id}/messages":    {authn.RoleUser, authn.RoleFrontend},
	"GET /api/v1/conversations/{id}/events":       {authn.RoleUser, authn.RoleFrontend, authn.RoleAuditor},
	"GET /healthz":                                anyone,
	"GET /readyz":                                 anyone,
	"GET /openapi.json":                           anyone,
	"GET /openapi.yaml":                           anyone,
	"GET /openapi-3.0.json":                       anyone,
	"GET /openapi-3.0.yaml":                       anyone,
	"GET /{$}":                                    anyone, // it shows the principal, and nothing else
	"GET /signin":                                 anyone,
	"POST /signout":                               anyone, // without a session it has no effect
	"/":                                           anyone, // not found
}

// alwaysRejected are the routes of a running sign-in. Without one they return the same error for
// all.
var alwaysRejected = []string{"GET /signin/callback", "GET /s/{code}"}

// A caller has a way to authenticate.
type caller struct {
	name string
	role authn.Role // "" if authentication must fail
	call func(method, path, body string) answer
}

func (p *signInSite) withKey(name string, role authn.Role, key string) caller {
	return caller{name, role, func(method, path, body string) answer { return p.call(key, method, path, body) }}
}

func withSession(name string, role authn.Role, b *browser) caller {
	return caller{name, role, func(method, path, body string) answer { return b.send(method, path, body) }}
}

// callers lists all kinds of callers.
func (p *signInSite) callers() (all []caller) {
	p.Helper()
	for _, role := range authn.Roles {
		all = append(all, p.withKey("a key of "+string(role), role, p.key("acme", role)))
		all = append(all, p.withKey("a token of "+string(role), role, p.idp.Token(map[string]any{"aud": "fermata-api", "sub": "bot", "tenant": "acme", "groups": string(role) + "s"})))
		all = append(all, withSession("a session of "+string(role), role, p.signedIn(claimsFor("acme", string(role)+"s"))))
	}
	all = append(all, p.withKey("a key of a frontend", authn.RoleFrontend, p.key("acme", authn.RoleFrontend)))
	all = append(all, p.withKey("a key of another account", authn.RoleAdmin, p.key("other", authn.RoleAdmin)))
	all = append(all, withSession("a session of another account", authn.RoleAdmin, p.signedIn(claimsFor("other", "admins"))))
	return append(all, p.unauthenticated()...)
}

// unauthenticated lists callers whose authentication must fail, although some were valid once.
func (p *signInSite) unauthenticated() []caller {
	p.Helper()
	out := p.signedIn(claimsFor("acme", "admins"))
	thief := p.browser()
	thief.set(out.session().Name, out.session().Value)
	out.send("POST", "/signout", "")

	ended := p.key("acme", authn.RoleAdmin)
	list, err := p.credentials().Credentials(p.Context(), "acme")
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range list {
		if strings.Contains(ended, c.ID) {
			err = p.credentials().RevokeCredential(p.Context(), "acme", c.ID, store.Writes{})
		}
	}
	expired, kept, err2 := authn.NewKey("acme", "old", authn.RoleAdmin, time.Now().Add(-time.Second))
	if err != nil || err2 != nil || p.credentials().AddCredential(p.Context(), kept, store.Writes{}) != nil {
		p.Fatal(err, err2)
	}
	both := p.signedIn(claimsFor("acme", "admins"))
	return []caller{
		p.withKey("nobody", "", ""),
		p.withKey("a revoked key", "", ended),
		p.withKey("an expired key", "", expired),
		p.withKey("an expired token", "", p.idp.Token(map[string]any{"aud": "fermata-api", "sub": "bot", "tenant": "acme", "groups": "admins", "exp": time.Now().Add(-time.Hour).Unix()})),
		p.withKey("an ID token", "", p.idp.Token(map[string]any{"aud": "fermata", "sub": "bot", "tenant": "acme", "groups": "admins"})),
		withSession("a session that was ended", "", thief),
		{"a session with a bad key", "", func(method, path, body string) answer {
			return both.send(method, path, body, "Authorization", "Bearer "+ended)
		}},
	}
}

// split splits a pattern, with unknown ids.
func split(pattern string) (method, path string) {
	method, path, ok := strings.Cut(pattern, " ")
	if !ok {
		method, path = http.MethodGet, pattern+"unknown"
	}
	return method, strings.NewReplacer("{stateKey}", "unknown", "{id}", "unknown").Replace(path)
}

func TestI8_EveryRouteChecksRoles(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.advance(-time.Hour) // sessions that time out were created a while ago
	idle := withSession("a session that was not used", "", p.signedIn(claimsFor("acme", "admins")))
	p.advance(time.Hour)
	all := append(p.callers(), idle)
	for _, route := range p.server.Routes() {
		allowed, known := mayCall[route]
		if slices.Contains(alwaysRejected, route) {
			continue
		}
		if !known {
			t.Errorf("%s is in no table", route)
			continue
		}
		method, path := split(route)
		for _, c := range all {
			body := ""
			if method == http.MethodPost && strings.HasPrefix(path, "/api/") {
				body = `{}`
			}
			if strings.HasSuffix(path, "/chat") && c.role == authn.RoleApprover {
				body = `{"resumeId":"1"}` // starting needs another role
			}
			if path == "/signout" && strings.Contains(c.name, "session") {
				continue // it would be signed out afterwards
			}
			if path == queueEvents {
				method = http.MethodHead // the stream itself does not end
			}
			got := c.call(method, path, body)
			want := "let in"
			switch {
			case allowed == nil:
			case c.role == "":
				want = "unknown"
			case c.role != authn.RoleAdmin && !slices.Contains(allowed, c.role):
				want = "refused"
			}
			if is := map[int]string{401: "unknown", 403: "refused"}[got.status]; is != want && (is != "" || want != "let in") || got.status >= 500 {
				t.Errorf("%s for %s: %d %s, and not %s", route, c.name, got.status, got.body, want)
			}
		}
	}
	for route := range mayCall {
		if !slices.Contains(p.server.Routes(), route) {
			t.Errorf("%s is in the table only", route)
		}
	}
}

func TestI8_UnknownSignInFlowsAreIndistinguishable(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	for _, route := range alwaysRejected {
		method, path := split(route)
		first := ""
		for _, c := range p.callers() {
			got := c.call(method, path, "")
			if strings.Contains(got.body, "<html") {
				got.body = "page"
			} else if got.body != "" {
				got.body = "problem"
			}
			if first == "" {
				first = http.StatusText(got.status)
			}
			if got.status < 400 || got.status >= 500 || http.StatusText(got.status) != first {
				t.Errorf("%s for %s: %d, and for others %s", route, c.name, got.status, first)
			}
		}
	}
}

// foreignRoutes are calls about objects of an account. Every route with an id is among them.
var foreignRoutes = map[string]string{
	"GET /api/v1/runs/{stateKey}":              "",
	"GET /api/v1/conversations/{id}":           "",
	"GET /api/v1/conversations/{id}/events":    "",
	"POST /api/v1/conversations/{id}/messages": `{"text":"hello"}`,
	"GET /api/v1/runs/{stateKey}/events":       "",
	"GET /api/v1/runs/{stateKey}/graph":        "",
	"GET /api/v1/graphs/{graphId}":             "", // shared by all accounts
	"POST /api/v1/runs/{stateKey}/cancel":      "",
	"POST /api/v1/runs/{stateKey}/retry":       "",
	"POST /api/v1/runs/{stateKey}/receipt":     `{"digest":"0000000000000000000000000000000000000000000000000000000000000000","outcome":"done"}`,
	"GET /api/v1/audit/requests/{id}":          "",
	"GET /api/v1/audit/requests/{id}/bundle":   "",
	"GET /api/v1/audit/runs/{stateKey}/trail":  "",
	"GET /api/v1/requests/{id}":                "",
	"POST /api/v1/requests/{id}/decision":      `{"resumeId":"1","answer":{"action":"approve"}}`,
	"POST /api/v1/requests/{id}/view":          `{}`,
	"POST /api/v1/requests/{id}/claim":         `{}`,
	"POST /api/v1/requests/{id}/release":       `{}`,
	"POST /api/v1/requests/{id}/undo":          `{}`,
	"POST /api/v1/requests/{id}/comment":       `{"text":"x"}`,
	"POST /api/v1/requests/{id}/clarify":       `{"text":"x"}`,
	"POST /api/v1/requests/{id}/reply":         `{"question":1,"text":"x"}`,
	"POST /api/v1/requests/{id}/delegate":      `{"to":"x"}`,
	"POST /api/v1/requests/{id}/snooze":        `{"until":"2030-01-01T00:00:00Z"}`,
	"POST /api/v1/requests/{id}/extend":        `{"until":"2030-01-01T00:00:00Z"}`,
	"POST /api/v1/requests/{id}/escalate":      `{}`,
	"POST /api/v1/requests/{id}/abandon":       `{}`,
	"POST /api/v1/requests/{id}/grant":         `{"seconds":1,"uses":1}`,
	"POST /api/v1/requests/{id}/reveal":        "",
	"POST /api/v1/requests/{id}/viewing":       "",
	"POST /api/v1/grants/{id}/revoke":          "",
	"DELETE /api/v1/me/channel-links/{id}":     "",
	"DELETE /api/v1/members/{id}":              "",
	"DELETE /api/v1/invitations/{id}":          "",
	"DELETE /api/v1/keys/{id}":                 "",
	"DELETE /api/v1/sessions/{id}":             "",
	"DELETE /api/v1/me/sessions/{id}":          "",
	"POST /api/v1/deliveries/{id}/send":        "",
	"GET /api/v1/webhooks/{id}":                "",
	"PUT /api/v1/webhooks/{id}":                `{"url":"https://example.com/hook"}`,
	"DELETE /api/v1/webhooks/{id}":             "",
	"POST /api/v1/webhooks/{id}/rotate":        "",
	"POST /api/v1/webhooks/{id}/test":          "",
	"GET /api/v1/policies/{digest}":            "",
	"PUT /api/v1/me/passkeys/{id}":             `{"name":"x"}`,
	"DELETE /api/v1/me/passkeys/{id}":          "",
	"PUT /api/v1/me/views/{id}":                `{"name":"x","query":"x"}`,
	"DELETE /api/v1/me/views/{id}":             "",
	"POST /api/v1/ai/chat":                     `{"stateKey":"{stateKey}","resumeId":"1","resumeValue":{"action":"approve"}}`,

	"DELETE /api/v1/me/push-subscriptions/{id}": "",
}

// An object of another account has the same response as a missing one, byte for byte.
func TestI8_OtherAccountsAreNotVisible(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.chat(p.key("acme", authn.RoleAgent), startDemo)
	owner := p.signedIn(claimsFor("acme", "approvers"))
	id := owner.get("/api/v1/requests").field("items").([]any)[0].(map[string]any)["id"].(string)
	strangers := []caller{p.withKey("a key", authn.RoleAdmin, p.key("other", authn.RoleAdmin)), withSession("a session", authn.RoleAdmin, p.signedIn(claimsFor("other", "admins")))}
	for _, route := range p.server.Routes() {
		if strings.HasSuffix(route, "{token}") || strings.Contains(route, "{seq}") { // a secret; a number in the caller's own log
			continue
		}
		if _, known := foreignRoutes[route]; strings.Contains(strings.TrimSuffix(route, "{$}"), "{") && !known && !slices.Contains(alwaysRejected, route) {
			t.Errorf("%s has an id, and is not tested", route)
		}
	}
	for route, body := range foreignRoutes {
		method, path, _ := strings.Cut(route, " ")
		real := strings.NewReplacer("{stateKey}", "demo-1", "{id}", id)
		none := strings.NewReplacer("{stateKey}", "demo-x", "{id}", strings.Repeat("x", len(id)))
		for _, c := range strangers {
			theirs, unknown := c.call(method, real.Replace(path), real.Replace(body)), c.call(method, none.Replace(path), none.Replace(body))
			same := strings.NewReplacer("demo-1", "demo-x", id, strings.Repeat("x", len(id))).Replace(theirs.body) == unknown.body
			if theirs.status != 404 || unknown.status != 404 || !same {
				t.Errorf("%s by %s: %d %s, and an unknown one: %d %s", route, c.name, theirs.status, theirs.body, unknown.status, unknown.body)
			}
		}
	}
	for _, path := range []string{"/api/v1/runs", "/api/v1/requests?state=all", "/api/v1/answers"} {
		for _, c := range strangers {
			if got := c.call("GET", path, ""); got.status != 200 || strings.Contains(got.body, "demo") || strings.Contains(got.body, id) {
				t.Errorf("%s by %s: %d %s", path, c.name, got.status, got.body)
			}
		}
	}
	if got := owner.send("POST", "/api/v1/requests/"+id+"/decision", foreignRoutes["POST /api/v1/requests/{id}/decision"]); got.status != 200 {
		t.Errorf("its owner cannot decide any more: %+v", got)
	}
}

// A filter with a mistyped name would return everything.
func TestLists_UnknownQueryParametersAreNamed(t *testing.T) {
	s := open(t, nil)
	n := 0
	for route := range mayCall {
		method, path, _ := strings.Cut(route, " ")
		if method != http.MethodGet || strings.Contains(path, "{") || !strings.HasPrefix(path, api.Prefix) {
			continue
		}
		n++
		got := s.call("admin@acme", method, path+"?kindd=refund", "")
		if got.status == 404 && got.field("code") == "not_found" {
			continue // a part that this server does not have
		}
		if got.status != 400 || !strings.Contains(got.body, "kindd") {
			t.Errorf("%s: %d %s", route, got.status, got.body)
		}
	}
	if n < 15 {
		t.Errorf("only %d lists", n)
	}
}
