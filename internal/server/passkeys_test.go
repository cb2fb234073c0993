package server_test

import (
	"encoding/json"
	"errors"
	"html"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

const (
	publicURL  = "https://fermata.example"
	publicHost = "fermata.example"
)

// openPasskeySite is a server without an identity provider, behind a proxy.
func openPasskeySite(t *testing.T) *signInSite {
	t.Helper()
	return openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.OIDC, c.SignIn.PublicURL = nil, publicURL }})
}

// acceptPasskey opens an invitation and creates a passkey.
func (b *browser) acceptPasskey(link string, a *authenticator) answer {
	b.Helper()
	token := html.UnescapeString(tokenField.FindStringSubmatch(b.get(link).body)[1])
	o := a.parse(b.post("/signin/invitation/options", "token", token).body)
	return b.post("/signin/invitation", "token", token, "state", o.State, "response", a.create(o))
}

// member invites a person, who creates a passkey.
func (p *signInSite) member(name string) (*browser, *authenticator) {
	p.Helper()
	b, a := p.browser(), newAuthenticator(p.T, publicURL, publicHost)
	if got := b.acceptPasskey(p.invite(p.key("acme", authn.RoleAdmin), name), a); got.status != 303 {
		p.Fatalf("%+v", got)
	}
	return b, a
}

func (b *browser) passkeyOptions(a *authenticator) ceremonyOptions {
	b.Helper()
	return a.parse(b.post("/signin/passkey/options").body)
}

// usePasskey signs in with a passkey.
func (b *browser) usePasskey(a *authenticator) answer {
	b.Helper()
	o := b.passkeyOptions(a)
	return b.post("/signin/passkey", "state", o.State, "response", a.use(o), "return", "/inbox")
}

func (b *browser) me() (me api.Me) {
	b.Helper()
	got := b.get("/api/v1/me")
	if got.status != 200 {
		return me
	}
	if err := json.Unmarshal([]byte(got.body), &me); err != nil {
		b.Fatal(err)
	}
	return me
}

// addPasskey adds a passkey to the signed-in person.
func (b *browser) addPasskey(a *authenticator, name string) answer {
	b.Helper()
	o := a.parse(b.send("POST", "/api/v1/me/passkeys/options", "").body)
	return b.send("POST", "/api/v1/me/passkeys", passkeyBody(name, o.State, a.create(o)))
}

func passkeyBody(name, state, response string) string {
	data, _ := json.Marshal(api.AddPasskey{Name: name, State: state, Response: json.RawMessage(response)}) // it is JSON
	return string(data)
}

func (b *browser) passkeys() (list api.Passkeys) {
	b.Helper()
	if err := json.Unmarshal([]byte(b.get("/api/v1/me/passkeys").body), &list); err != nil {
		b.Fatal(err)
	}
	return list
}

func TestPasskeys_InvitationThenSignIn(t *testing.T) {
	p := openPasskeySite(t)
	b, a := p.member("bob")
	if me := b.me(); me.Principal != "bob" || me.Account != "acme" || me.Method != "passkey" || me.Strength != "hardware" {
		t.Errorf("%+v", me)
	}
	again := p.browser()
	if got := again.usePasskey(a); got.status != 303 || got.header.Get("Location") != "/inbox" {
		t.Fatalf("%+v", got)
	}
	if me := again.me(); me.Principal != "bob" || strings.Join(me.Roles, " ") != "approver" || strings.Join(me.AMR, " ") != "mfa hwk" {
		t.Errorf("%+v", me)
	}
	if list := again.passkeys(); len(list.Items) != 1 || list.Items[0].UsedAt == nil || list.Items[0].Synced || !list.MayChange || !list.Supported {
		t.Errorf("%+v", list)
	}
	for _, password := range []string{"", "x", goodPassword} {
		if got := p.browser().post("/signin/password", "name", "bob", "password", password); got.status != 401 {
			t.Errorf("the password %q of a person without a password: %+v", password, got)
		}
	}
}

// The link of an invitation stays in a chat or a mailbox. After its use it must not replace or add
// passkeys.
func TestPasskeys_UsedInvitationChangesNothing(t *testing.T) {
	p := openPasskeySite(t)
	for name, accept := range map[string]func(b *browser, link string) *authenticator{
		"passkey": func(b *browser, link string) *authenticator {
			a := newAuthenticator(t, publicURL, publicHost)
			b.acceptPasskey(link, a)
			return a
		},
		"password": func(b *browser, link string) *authenticator {
			b.accept(link, goodPassword)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			person := "bob with a " + name
			link := p.invite(p.key("acme", authn.RoleAdmin), person)
			// one attacker opens the link before the person does, another one later
			early, eve := p.browser(), newAuthenticator(t, publicURL, publicHost)
			token := html.UnescapeString(tokenField.FindStringSubmatch(early.get(link).body)[1])
			o := eve.parse(early.post("/signin/invitation/options", "token", token).body)
			a := accept(p.browser(), link)
			if got := early.post("/signin/invitation", "token", token, "state", o.State, "response", eve.create(o)); got.status != 403 {
				t.Errorf("begun before: %+v", got)
			}
			if got := early.post("/signin/invitation/options", "token", token); got.status == 200 {
				o = eve.parse(got.body)
				if got := early.post("/signin/invitation", "token", token, "state", o.State, "response", eve.create(o)); got.status != 403 {
					t.Errorf("begun after: %+v", got)
				}
			}
			if got := p.browser().usePasskey(eve); got.status != 403 {
				t.Errorf("the passkey of the attacker: %+v", got)
			}
			if a == nil {
				return
			}
			if got := p.browser().usePasskey(a); got.status != 303 {
				t.Errorf("the passkey of the person: %+v", got)
			}
		})
	}
}

// A passkey that other devices can have is two factors, but not hardware.
func TestPasskeys_SyncedPasskeyIsNotHardware(t *testing.T) {
	p := openPasskeySite(t)
	a := newAuthenticator(t, publicURL, publicHost)
	a.flags |= flagSyncable
	b := p.browser()
	b.acceptPasskey(p.invite(p.key("acme", authn.RoleAdmin), "bob"), a)
	if me := b.me(); me.Strength != "sso_mfa" {
		t.Errorf("%+v", me)
	}
}

func TestPasskeys_RejectsWhatIsNotTheMembersSignature(t *testing.T) {
	p := openPasskeySite(t)
	_, eve := p.member("eve")
	for name, change := range map[string]func(a *authenticator, o *ceremonyOptions){
		"other origin":      func(a *authenticator, _ *ceremonyOptions) { a.origin = "https://fermata.example.evil.example" },
		"origin with http":  func(a *authenticator, _ *ceremonyOptions) { a.origin = "http://fermata.example" },
		"other host":        func(a *authenticator, _ *ceremonyOptions) { a.rpID = "evil.example" },
		"user not verified": func(a *authenticator, _ *ceremonyOptions) { a.flags = flagPresent },
		"user not present":  func(a *authenticator, _ *ceremonyOptions) { a.flags = flagVerified },
		"other challenge": func(_ *authenticator, o *ceremonyOptions) {
			o.Options.Challenge = encode([]byte("another challenge of a server"))
		},
		"counter repeated":  func(a *authenticator, _ *ceremonyOptions) { a.counter-- },
		"counter restarted": func(a *authenticator, _ *ceremonyOptions) { a.counter = 0 },
		"other key":         func(a *authenticator, _ *ceremonyOptions) { a.key = eve.key },
		"other member":      func(a *authenticator, _ *ceremonyOptions) { a.handle = eve.handle },
		"unknown member":    func(a *authenticator, _ *ceremonyOptions) { a.handle = []byte("member_unknown") },
		"session as member": func(a *authenticator, _ *ceremonyOptions) { a.handle = []byte("session_0") },
		"no member":         func(a *authenticator, _ *ceremonyOptions) { a.handle = nil },
		"unknown passkey":   func(a *authenticator, _ *ceremonyOptions) { a.id = []byte("unknown") },
		"state too old":     func(*authenticator, *ceremonyOptions) { p.advance(5 * time.Minute) },
		"state changed":     func(_ *authenticator, o *ceremonyOptions) { o.State += "A" },
		"state of a creation": func(_ *authenticator, o *ceremonyOptions) {
			b := p.browser()
			token := html.UnescapeString(tokenField.FindStringSubmatch(b.get(p.invite(p.key("acme", authn.RoleAdmin), "new")).body)[1])
			*o = eve.parse(b.post("/signin/invitation/options", "token", token).body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, a := p.member("bob of " + name)
			if got := p.browser().usePasskey(a); got.status != 303 { // the counter is 1
				t.Fatalf("%+v", got)
			}
			b := p.browser()
			o := b.passkeyOptions(a)
			change(a, &o)
			if got := b.post("/signin/passkey", "state", o.State, "response", a.use(o)); got.status != 403 && got.status != 400 {
				t.Errorf("%+v", got)
			}
			if me := b.me(); me.Principal != "" {
				t.Errorf("signed in as %+v", me)
			}
		})
	}
}

func TestPasskeys_ResponseSignsInOnce(t *testing.T) {
	p := openPasskeySite(t)
	_, a := p.member("bob")
	b := p.browser()
	o := b.passkeyOptions(a)
	response := a.use(o)
	if got := b.post("/signin/passkey", "state", o.State, "response", response); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	a.counter++
	for _, again := range []string{response, a.use(o)} { // the same, and a new signature of the same challenge
		other := p.browser()
		if got := other.post("/signin/passkey", "state", o.State, "response", again); got.status < 400 || got.status >= 500 || other.me().Principal != "" {
			t.Errorf("a challenge was used twice: %+v", got)
		}
	}
	if got := p.browser().send("POST", "/signin/passkey", "state=x", "Sec-Fetch-Site", "cross-site", "Content-Type", "application/x-www-form-urlencoded"); got.status != 403 {
		t.Errorf("from another site: %+v", got)
	}
}

// A password becomes a passkey only with a fresh sign-in, and only as the first one: otherwise a
// stolen password would be enough for rules that require a passkey.
func TestPasskeys_AddAndRemove(t *testing.T) {
	p := openPasskeySite(t)
	b := p.browser()
	b.accept(p.invite(p.key("acme", authn.RoleAdmin), "bob"), goodPassword)
	first, second := newAuthenticator(t, publicURL, publicHost), newAuthenticator(t, publicURL, publicHost)
	p.advance(15 * time.Minute)
	if got := b.send("POST", "/api/v1/me/passkeys/options", ""); got.status != 403 || got.field("code") != "stronger_auth_required" {
		t.Errorf("an old sign-in: %+v", got)
	}
	b.post("/signin/password", "name", "bob", "password", goodPassword)
	o := first.parse(b.send("POST", "/api/v1/me/passkeys/options", "").body)
	created := passkeyBody("Key of Bob", o.State, first.create(o))
	if got := b.send("POST", "/api/v1/me/passkeys", created); got.status != 201 || got.field("name") != "Key of Bob" {
		t.Fatalf("%+v", got)
	}
	if list := b.passkeys(); len(list.Items) != 1 || list.MayChange {
		t.Errorf("%+v", list)
	}
	if got := b.send("POST", "/api/v1/me/passkeys/options", ""); got.status != 403 || got.field("minAuth") != "sso_mfa" {
		t.Errorf("a second passkey with the password: %+v", got)
	}
	if got := b.send("DELETE", "/api/v1/me/passkeys/"+b.passkeys().Items[0].ID, ""); got.status != 403 {
		t.Errorf("a removal with the password: %+v", got)
	}
	strong := p.browser()
	strong.usePasskey(first)
	if got := strong.addPasskey(second, ""); got.status != 201 {
		t.Fatalf("%+v", got)
	}
	if got := p.browser().usePasskey(second); got.status != 303 {
		t.Errorf("the second passkey: %+v", got)
	}
	if got := strong.send("DELETE", "/api/v1/me/passkeys/"+strong.passkeys().Items[0].ID, ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	if got := p.browser().usePasskey(first); got.status != 403 {
		t.Errorf("a removed passkey: %+v", got)
	}
	if got := strong.send("POST", "/api/v1/me/passkeys", created); got.status != 400 {
		t.Errorf("a creation was repeated after the removal: %+v", got)
	}
	if got := p.browser().post("/signin/password", "name", "bob", "password", goodPassword); got.status != 303 {
		t.Errorf("the password next to passkeys: %+v", got)
	}
}

func TestPasskeys_Rename(t *testing.T) {
	p := openPasskeySite(t)
	b, a := p.member("bob")
	path := "/api/v1/me/passkeys/" + b.passkeys().Items[0].ID
	if got := b.send("PUT", path, `{"name":" Phone of Bob "}`); got.status != 200 || got.field("name") != "Phone of Bob" {
		t.Fatalf("%+v", got)
	}
	if list := b.passkeys(); len(list.Items) != 1 || list.Items[0].Name != "Phone of Bob" {
		t.Errorf("%+v", list)
	}
	if got := p.browser().usePasskey(a); got.status != 303 {
		t.Errorf("the renamed passkey does not sign in: %+v", got)
	}
	for body, status := range map[string]int{`{"name":"  "}`: 400, `{"name":"a\u0007b"}`: 400, `{"name":""}`: 400} {
		if got := b.send("PUT", path, body); got.status != status {
			t.Errorf("%s: %+v", body, got)
		}
	}
	if got := b.send("PUT", path+"x", `{"name":"y"}`); got.status != 404 {
		t.Errorf("an unknown passkey: %+v", got)
	}
	eve, _ := p.member("eve")
	if got := eve.send("PUT", path, `{"name":"mine"}`); got.status != 404 {
		t.Errorf("the passkey of another person: %+v", got)
	}
	p.advance(15 * time.Minute)
	if got := b.send("PUT", path, `{"name":"late"}`); got.status != 403 || got.field("code") != "stronger_auth_required" {
		t.Errorf("an old sign-in: %+v", got)
	}
}

func TestPasskeys_LastWayToSignInCannotBeRemoved(t *testing.T) {
	b, _ := openPasskeySite(t).member("bob")
	if got := b.send("DELETE", "/api/v1/me/passkeys/"+b.passkeys().Items[0].ID, ""); got.status != 400 || len(b.passkeys().Items) != 1 {
		t.Errorf("%+v", got)
	}
	if got := b.send("DELETE", "/api/v1/me/passkeys/unknown", ""); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

// The options for one member cannot add a passkey to another, and an API key has no passkeys even
// if it has the name of a member.
func TestPasskeys_BelongToOneMember(t *testing.T) {
	p := openPasskeySite(t)
	bob, a := p.member("bob")
	eve, _ := p.member("eve")
	o := a.parse(bob.send("POST", "/api/v1/me/passkeys/options", "").body)
	if got := eve.send("POST", "/api/v1/me/passkeys", passkeyBody("x", o.State, newAuthenticator(t, publicURL, publicHost).create(o))); got.status != 400 {
		t.Errorf("%+v", got)
	}
	key, kept, err := authn.NewKey("acme", "bob", authn.RoleAdmin, time.Time{})
	if err == nil {
		err = p.credentials().AddCredential(t.Context(), kept, store.Writes{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := p.call(key, "GET", "/api/v1/me/passkeys", ""); got.status != 404 {
		t.Errorf("%+v", got)
	}
}

func TestPasskeys_EndWithTheMembership(t *testing.T) {
	p := openPasskeySite(t)
	_, a := p.member("bob")
	_, next := p.member("bob") // a new invitation
	if got := p.browser().usePasskey(a); got.status != 403 {
		t.Errorf("the passkey before the new invitation: %+v", got)
	}
	admin := p.key("acme", authn.RoleAdmin)
	var list api.Page[api.Member]
	if err := json.Unmarshal([]byte(p.call(admin, "GET", "/api/v1/members", "").body), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	p.call(admin, "DELETE", "/api/v1/members/"+list.Items[0].ID, "")
	if got := p.browser().usePasskey(next); got.status != 403 {
		t.Errorf("the passkey of a removed member: %+v", got)
	}
}

// Without a public URL the host of the request counts. Browsers have no passkeys for IP addresses.
func TestPasskeys_WithoutPublicURL(t *testing.T) {
	p := openMemberSite(t)
	b := p.browser()
	if got := b.get("/signin"); strings.Contains(got.body, "data-passkey") || !strings.Contains(got.body, `name="password"`) {
		t.Errorf("%+v", got)
	}
	host := strings.Replace(strings.TrimPrefix(p.url, "http://"), "127.0.0.1", "localhost", 1)
	got := b.get("/signin", "Host", host)
	if !strings.Contains(got.body, `data-passkey="get"`) || !strings.Contains(got.header.Get("Content-Security-Policy"), "trusted-types 'none'") {
		t.Errorf("%+v", got)
	}
	if got := b.post("/signin/passkey/options"); got.status != 400 {
		t.Errorf("%+v", got)
	}
	if got := b.send("POST", "/signin/passkey/options", "", "Host", host); got.status != 200 || !strings.Contains(got.body, `"rpId":"localhost"`) || !strings.Contains(got.body, `"userVerification":"required"`) {
		t.Errorf("%+v", got)
	}
}

// A linked account of a channel decides as the person, so it ends with the membership.
func TestMembers_RemovalUnlinksChannels(t *testing.T) {
	p := openPasskeySite(t)
	bob, _ := p.member("bob")
	eve, _ := p.member("eve")
	for id, b := range map[string]*browser{"T1/BOB": bob, "T1/EVE": eve} {
		token, err := p.e.NewLinkToken(t.Context(), channel.Sender{Account: "acme", Channel: "slack", ID: id})
		if err != nil {
			t.Fatal(err)
		}
		if got := b.send("POST", "/api/v1/me/channel-links", `{"token":"`+token+`"}`); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	admin := p.key("acme", authn.RoleAdmin)
	var list api.Page[api.Member]
	if err := json.Unmarshal([]byte(p.call(admin, "GET", "/api/v1/members", "").body), &list); err != nil || len(list.Items) != 2 || list.Items[0].Name != "bob" {
		t.Fatalf("%+v, %v", list, err)
	}
	if got := p.call(admin, "DELETE", "/api/v1/members/"+list.Items[0].ID, ""); got.status != 204 {
		t.Fatalf("%+v", got)
	}
	if link, err := p.e.ChannelLink(t.Context(), channel.Sender{Account: "acme", Channel: "slack", ID: "T1/BOB"}); !errors.Is(err, channel.ErrNotLinked) {
		t.Errorf("the account of the removed member is linked: %+v, %v", link, err)
	}
	if _, err := p.e.ChannelLink(t.Context(), channel.Sender{Account: "acme", Channel: "slack", ID: "T1/EVE"}); err != nil {
		t.Errorf("the account of another member: %v", err)
	}
	var unlinked []audit.Record // I12: one record, by the admin
	for line := range strings.Lines(p.call(admin, "GET", "/api/v1/audit", "").body) {
		record, err := audit.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if _, ok := record.Body.(audit.ChannelUnlinked); ok {
			unlinked = append(unlinked, record)
		}
	}
	if len(unlinked) != 1 || unlinked[0].Body.(audit.ChannelUnlinked).Principal != "bob" || unlinked[0].Actor.Principal == "bob" {
		t.Errorf("audited as %+v", unlinked)
	}
}
