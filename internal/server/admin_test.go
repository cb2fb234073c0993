package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// credentials returns a list of credentials as the holder of a key sees it.
func (p *signInSite) list(key, path string) []api.Credential {
	p.Helper()
	var page api.Page[api.Credential]
	got := p.call(key, "GET", "/api/v1"+path, "")
	if err := json.Unmarshal([]byte(got.body), &page); err != nil || got.status != 200 {
		p.Fatalf("%+v, %v", got, err)
	}
	return page.Items
}

func TestAdmin_InvitationCanBeRevoked(t *testing.T) {
	p := openMemberSite(t)
	admin := p.key("acme", authn.RoleAdmin)
	link, kept := p.invite(admin, "eve"), p.invite(admin, "bob")
	early := p.browser()
	token := tokenField.FindStringSubmatch(early.get(link).body)[1]
	open := p.list(admin, "/invitations")
	at := slices.IndexFunc(open, func(c api.Credential) bool { return c.Name == "eve" })
	if len(open) != 2 || at < 0 || strings.Join(open[at].Roles, " ") != "approver" || open[at].ExpiresAt == nil {
		t.Fatalf("%+v", open)
	}
	if got := p.call(admin, "DELETE", "/api/v1/invitations/"+open[at].ID, ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	if got := p.browser().get(link); got.status != 403 {
		t.Errorf("a revoked invitation: %+v", got)
	}
	if got := early.post("/signin/invitation", "token", token, "password", goodPassword); got.status != 403 || early.me().Principal != "" {
		t.Errorf("a revoked invitation that was open: %+v", got)
	}
	if got := p.browser().accept(kept, goodPassword); got.status != 303 {
		t.Errorf("%+v", got)
	}
	if left := p.list(admin, "/invitations"); len(left) != 0 {
		t.Errorf("used and revoked invitations are open: %+v", left)
	}
}

func TestAdmin_KeysAndSessionsEndAtOnce(t *testing.T) {
	p := openMemberSite(t)
	admin, bot := p.key("acme", authn.RoleAdmin), p.key("acme", authn.RoleAgent)
	b := p.browser()
	b.accept(p.invite(admin, "bob"), goodPassword)
	keys, sessions := p.list(admin, "/keys"), p.list(admin, "/sessions")
	if len(keys) != 2 || len(sessions) != 1 || sessions[0].Name != "bob" {
		t.Fatalf("%+v\n%+v", keys, sessions)
	}
	current := slices.IndexFunc(keys, func(c api.Credential) bool { return c.Current })
	if current < 0 || keys[current].Name != "admin" {
		t.Fatalf("%+v", keys)
	}
	for _, call := range []string{"/keys/" + keys[1-current].ID, "/sessions/" + sessions[0].ID} {
		if got := p.call(admin, "DELETE", "/api/v1"+call, ""); got.status != 204 {
			t.Errorf("%s: %+v", call, got)
		}
		if got := p.call(admin, "DELETE", "/api/v1"+call, ""); got.status != 404 {
			t.Errorf("%s again: %+v", call, got)
		}
	}
	if got := p.call(bot, "GET", "/api/v1/me", ""); got.status != 401 {
		t.Errorf("a revoked key: %+v", got)
	}
	if got := b.get("/api/v1/me"); got.status != 401 {
		t.Errorf("an ended session: %+v", got)
	}
	if got := p.call(admin, "DELETE", "/api/v1/sessions/"+keys[current].ID, ""); got.status != 404 {
		t.Errorf("a key as a session: %+v", got)
	}
}

// People see and end their own sessions. A key has none, even if it has the name of a person.
func TestMe_OwnSessions(t *testing.T) {
	p := openMemberSite(t)
	admin := p.key("acme", authn.RoleAdmin)
	bob, eve := p.browser(), p.browser()
	bob.accept(p.invite(admin, "bob"), goodPassword)
	eve.accept(p.invite(admin, "eve"), goodPassword)
	other := p.browser()
	other.post("/signin/password", "name", "bob", "password", goodPassword)
	var mine api.Page[api.Credential]
	if err := json.Unmarshal([]byte(bob.get("/api/v1/me/sessions").body), &mine); err != nil || len(mine.Items) != 2 {
		t.Fatalf("%+v, %v", mine, err)
	}
	for _, s := range mine.Items {
		if got := eve.send("DELETE", "/api/v1/me/sessions/"+s.ID, ""); got.status != 404 {
			t.Errorf("a session of another person: %+v", got)
		}
		if s.Current {
			continue
		}
		if got := bob.send("DELETE", "/api/v1/me/sessions/"+s.ID, ""); got.status != 204 {
			t.Errorf("%+v", got)
		}
	}
	if other.me().Principal != "" || bob.me().Principal != "bob" {
		t.Error("the other session was not ended")
	}
	if got := p.call(admin, "GET", "/api/v1/me/sessions", ""); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

func TestAdmin_Configuration(t *testing.T) {
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) {
		c.Settings = []api.Setting{{Key: "listen.addr", Value: `":8080"`, From: "fermata.yaml:3"}}
	}})
	if got := p.call(p.key("acme", authn.RoleAdmin), "GET", "/api/v1/configuration", ""); got.status != 200 || !strings.Contains(got.body, `"from":"fermata.yaml:3"`) {
		t.Errorf("%+v", got)
	}
}
