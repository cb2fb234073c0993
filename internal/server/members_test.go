package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"html"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/sqlite"
)

// openMemberSite is a server without an identity provider.
func openMemberSite(t *testing.T) *signInSite {
	t.Helper()
	return openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.OIDC = nil }})
}

// post posts a form as a page of the server would.
func (b *browser) post(path string, fields ...string) answer {
	b.Helper()
	form := make(url.Values)
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return b.send("POST", path, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

// invite returns the path of an invitation.
func (p *signInSite) invite(key, name string) string {
	p.Helper()
	got := p.call(key, "POST", "/api/v1/invitations", `{"name":"`+name+`"}`)
	path, _ := got.field("path").(string)
	if got.status != 200 || path == "" {
		p.Fatalf("%+v", got)
	}
	return path
}

var tokenField = regexp.MustCompile(`name="token" type="hidden" value="([^"]+)"`)

// accept opens an invitation and chooses a password.
func (b *browser) accept(path, password string) answer {
	b.Helper()
	page := b.get(path)
	token := tokenField.FindStringSubmatch(page.body)
	if page.status != 200 || token == nil {
		b.Fatalf("%+v", page)
	}
	return b.post("/signin/invitation", "token", html.UnescapeString(token[1]), "password", password)
}

const goodPassword = "correct horse battery"

// An invited person chooses a password once, and signs in with it until they are removed.
func TestMembers_InvitePasswordRemove(t *testing.T) {
	p := openMemberSite(t)
	admin := p.key("acme", authn.RoleAdmin)
	link := p.invite(admin, "bob")
	b := p.browser()
	if got := b.accept(link, "short"); got.status != 200 || !strings.Contains(got.body, "12 to 256 characters") {
		t.Errorf("a short password: %+v", got)
	}
	if got := b.accept(link, goodPassword); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	var me api.Me
	if err := json.Unmarshal([]byte(b.get("/api/v1/me").body), &me); err != nil || me.Principal != "bob" || me.Account != "acme" || me.Method != "password" || strings.Join(me.Roles, " ") != "approver" {
		t.Errorf("%+v, %v", me, err)
	}
	if got := p.browser().get(link); got.status != 403 {
		t.Errorf("an invitation can be used twice: %+v", got)
	}
	if got := p.call(p.key("other", authn.RoleAdmin), "POST", "/api/v1/invitations", `{"name":"Bob"}`); got.status != 400 {
		t.Errorf("the name of a person of another account: %+v", got)
	}
	again := p.browser()
	if got := again.post("/signin/password", "name", "bob", "password", goodPassword, "return", "/inbox"); got.status != 303 || got.header.Get("Location") != "/inbox" {
		t.Fatalf("%+v", got)
	}
	var list api.Page[api.Member]
	if err := json.Unmarshal([]byte(p.call(admin, "GET", "/api/v1/members", "").body), &list); err != nil || len(list.Items) != 1 || list.Items[0].Name != "bob" {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := p.call(admin, "DELETE", "/api/v1/members/"+list.Items[0].ID, ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	for _, one := range []*browser{b, again} {
		if got := one.get("/api/v1/me"); got.status != 401 {
			t.Errorf("the session of a removed member: %+v", got)
		}
	}
	if got := p.browser().post("/signin/password", "name", "bob", "password", goodPassword); got.status != 401 {
		t.Errorf("a removed member: %+v", got)
	}
	if got := p.browser().accept(p.invite(admin, "bob"), "another password"); got.status != 303 {
		t.Errorf("an invitation after the removal: %+v", got)
	}
	for _, secret := range []string{goodPassword, "another password"} {
		if strings.Contains(p.log.String(), secret) {
			t.Error("a password is in the log")
		}
	}
}

// A name that looks like that of a member would be a second person who looks like the first.
func TestMembers_LookAlikesAreNotInvited(t *testing.T) {
	p := openMemberSite(t)
	admin := p.key("acme", authn.RoleAdmin)
	p.browser().accept(p.invite(admin, "alice"), goodPassword)
	for name, want := range map[string]int{
		"al\u200bice": 400, // an invisible space
		"ali\u202ece": 400, // the direction of the text
		"\u0430lice":  400, // a Cyrillic letter in a Latin word
		"aIice":       400,
		"\uff41lice":  400, // a wide letter
		"alice":       200, // replaces the password
		"bob":         200,
		"Анна":        200,
	} {
		body, err := json.Marshal(api.Invite{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.call(admin, "POST", "/api/v1/invitations", string(body)); got.status != want {
			t.Errorf("%+q: %+v", name, got)
		}
	}
}

// Two invitations for names that look the same can be open at a time; one of the two is accepted.
func TestMembers_LookAlikeIsNotAcceptedAfterAnother(t *testing.T) {
	p := openMemberSite(t)
	admin := p.key("acme", authn.RoleAdmin)
	first, second := p.invite(admin, "ann blum"), p.invite(admin, "ann  blum")
	if got := p.browser().accept(first, goodPassword); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	if got := p.browser().accept(second, goodPassword); got.status != 403 || !strings.Contains(got.body, "looks like that of the member ann blum") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := p.call(admin, "GET", "/api/v1/members", ""); strings.Contains(got.body, "ann  blum") {
		t.Errorf("members: %s", got.body)
	}
}

// fullStore is a store that cannot write while full is set.
type fullStore struct {
	store.Store
	full *atomic.Bool
}

func (s fullStore) CommitWrites(ctx context.Context, account string, w store.Writes) error {
	if s.full.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.CommitWrites(ctx, account, w)
}

// A removal that failed can be repeated, so that no browser of the person keeps getting requests.
func TestMembers_RemovalThatFailedCanBeRepeated(t *testing.T) {
	var full atomic.Bool
	p := openSignInSite(t, signInOptions{
		change: func(c *server.Config) { c.SignIn.OIDC = nil },
		store:  func(s store.Store) store.Store { return fullStore{s, &full} },
	})
	admin := p.key("acme", authn.RoleAdmin)
	p.browser().accept(p.invite(admin, "bob"), goodPassword)
	if _, err := p.e.AddAddress(t.Context(), "acme", desk.From{Actor: desk.PersonActor("bob", requirement.AuthSSO)}, "webpush", "https://push.example/1", "a browser"); err != nil {
		t.Fatal(err)
	}
	var list api.Page[api.Member]
	if err := json.Unmarshal([]byte(p.call(admin, "GET", "/api/v1/members", "").body), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	remove := func() int { return p.call(admin, "DELETE", "/api/v1/members/"+list.Items[0].ID, "").status }
	full.Store(true)
	if got := remove(); got < 500 {
		t.Errorf("with a full disk: %d", got)
	}
	full.Store(false)
	if got := remove(); got != 204 {
		t.Errorf("again: %d", got)
	}
	if bob, err := p.e.Person(t.Context(), "acme", "bob"); err != nil || len(bob.Addresses) > 0 {
		t.Errorf("%+v, %v", bob, err)
	}
	if got := remove(); got != 404 {
		t.Errorf("after the removal: %d", got)
	}
}

// A new invitation replaces a forgotten password and ends the old sessions.
func TestMembers_NewInvitationReplacesThePassword(t *testing.T) {
	st, err := sqlite.Open(filepath.Join(t.TempDir(), "fermata.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) {
		c.SignIn.OIDC, c.SignIn.Credentials, c.Auth = nil, st, authn.Keys(st)
	}})
	admin := p.key("acme", authn.RoleAdmin)
	old := p.browser()
	old.accept(p.invite(admin, "bob"), goodPassword)
	if got := p.browser().accept(p.invite(admin, "bob"), "another password"); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	if got := old.get("/api/v1/me"); got.status != 401 {
		t.Errorf("%+v", got)
	}
	if got := p.browser().post("/signin/password", "name", "bob", "password", goodPassword); got.status != 401 {
		t.Errorf("the old password: %+v", got)
	}
	if got := p.browser().post("/signin/password", "name", "BOB", "password", "another password"); got.status != 303 {
		t.Errorf("the new password: %+v", got)
	}
}

// An unknown name has the same response as a wrong password, and both are limited.
func TestMembers_GuessingIsLimitedAndRevealsNothing(t *testing.T) {
	p := openMemberSite(t)
	p.browser().accept(p.invite(p.key("acme", authn.RoleAdmin), "bob"), goodPassword)
	var codes []string
	for _, name := range []string{"bob", "eve"} {
		b := p.browser()
		for range 7 {
			got := b.post("/signin/password", "name", name, "password", "wrong")
			codes = append(codes, strings.ReplaceAll(got.body, name, "NAME"))
			if got.status != 401 && got.status != 429 {
				t.Errorf("%+v", got)
			}
		}
	}
	if strings.Join(codes[:7], "") != strings.Join(codes[7:], "") {
		t.Error("the response tells whether there is a member of a name")
	}
	if got := p.browser().post("/signin/password", "name", "bob", "password", goodPassword); got.status != 429 {
		t.Errorf("after too many guesses: %+v", got)
	}
	if got := p.browser().send("POST", "/signin/password", "name=bob&password="+goodPassword, "Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded"); got.status != 403 {
		t.Errorf("from another site: %+v", got)
	}
}
