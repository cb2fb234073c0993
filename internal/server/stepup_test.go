package server_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// The refusal says which strength is needed. The same call counts after a stronger sign-in.
func TestStepUp_SameDecisionCountsAfterStrongerSignIn(t *testing.T) {
	set, err := policy.Load("policy.yaml", []byte(`
default: deny
rules:
- id: drop
  when: req.tool == "drop-table"
  then: ask
  ask: {groups: [{from: [anyone]}], deadline: 1h, min_auth: sso_mfa}
`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	drop := single(t, "drop", func(ctx context.Context, s table) (table, error) {
		_, err := fermata.Approve(ctx, fermata.Action[table]{Name: "drop-table", Args: s})
		return s, err
	})
	auth := requirement.AuthSSO
	people := authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
		p, err := testTokens(r)
		if p.ID == "bob" {
			p.Roles, p.Auth.Strength = []authn.Role{authn.RoleApprover}, auth
		}
		return p, err
	})
	s := openWith(t, func(c *server.Config) { c.Auth = people }, func(c *executor.Config) { c.Desk.Policy = set }, drop)
	var asked struct{ Interrupts []struct{ ID string } }
	if err := json.Unmarshal([]byte(s.call("agent@acme", "POST", "/api/v1/ai/chat", startDrop).body), &asked); err != nil {
		t.Fatal(err)
	}
	decide := func() answer {
		return s.call("bob@acme", "POST", "/api/v1/requests/"+asked.Interrupts[0].ID+"/decision", `{"resumeId":"r1","answer":{"verb":"approve"}}`)
	}
	for range 2 {
		if got := decide(); got.status != 403 || !strings.Contains(got.body, `"code":"stronger_auth_required"`) || !strings.Contains(got.body, `"minAuth":"sso_mfa"`) {
			t.Fatal(got)
		}
	}
	auth = requirement.AuthHardware
	if got := decide(); got.status != 200 || !strings.Contains(got.body, `"completed"`) {
		t.Error(got)
	}
}

func TestSignIn_AgainAsksTheProviderForANewSignIn(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "admins"))
	if got := b.get("/signin?return=/x"); got.header.Get("Location") != "/x" {
		t.Errorf("a signed-in person is sent to %s", got.header.Get("Location"))
	}
	got := b.get("/signin?again=1&return=/x")
	if to := got.header.Get("Location"); !strings.HasPrefix(to, p.idp.URL+"/") || !strings.Contains(to, "prompt=login") {
		t.Errorf("signing in again leads to %s", to)
	}
}
