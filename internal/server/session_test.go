package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/seal"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

func TestSession_IdleTimeout(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	busy, idle := p.signedIn(claimsFor("acme", "agents")), p.signedIn(claimsFor("acme", "agents"))
	old := busy.session().Value
	for range 4 {
		p.advance(20 * time.Minute)
		if got := busy.get("/api/v1/me"); got.status != 200 {
			t.Fatalf("a session in use ended: %+v", got)
		}
	}
	if got := idle.get("/api/v1/me"); got.status != 401 {
		t.Errorf("an unused session: %+v", got)
	}
	idle.set(busy.session().Name, old)
	if got := idle.get("/api/v1/me"); got.status != 401 {
		t.Errorf("the first cookie of a session in use: %+v", got)
	}
}

func TestSession_MaximumLifetime(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "agents"))
	for passed := 20 * time.Minute; passed < 8*time.Hour; passed += 20 * time.Minute {
		p.advance(20 * time.Minute)
		if got := b.get("/api/v1/me"); got.status != 200 {
			t.Fatalf("after %v: %+v", passed, got)
		}
	}
	p.advance(20 * time.Minute)
	if got := b.get("/api/v1/me"); got.status != 401 {
		t.Errorf("after 8 hours: %+v", got)
	}
}

func TestSession_CookieIsRenewedOccasionally(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "agents"))
	if got := b.get("/api/v1/me"); got.header.Get("Set-Cookie") != "" {
		t.Errorf("at once: %v", got.header)
	}
	p.advance(6 * time.Minute)
	if got := b.get("/api/v1/me"); got.header.Get("Set-Cookie") == "" {
		t.Error("after six minutes it is not renewed")
	}
}

// rotatingSealer is a sealer whose keys change while it is used, as those of a key file.
type rotatingSealer struct{ atomic.Pointer[seal.Sealer] }

func (b *rotatingSealer) Seal(label string, data []byte) []byte { return b.Load().Seal(label, data) }
func (b *rotatingSealer) Open(label string, sealed []byte) ([]byte, error) {
	return b.Load().Open(label, sealed)
}
func (b *rotatingSealer) Current(sealed []byte) bool { return b.Load().Current(sealed) }

func (b *rotatingSealer) rotate(t *testing.T, current seal.Key, older ...seal.Key) {
	t.Helper()
	now, err := seal.New(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	b.Store(now)
}

// A key rotation takes less time than a cookie is valid. It used to sign everyone out, also active
// people.
func TestSession_SurvivesKeyRotation(t *testing.T) {
	keys := new(rotatingSealer)
	keys.rotate(t, seal.Key{1})
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.SignIn.Sealer = keys }})
	busy, idle := p.signedIn(claimsFor("acme", "agents")), p.signedIn(claimsFor("acme", "agents"))
	keys.rotate(t, seal.Key{2}, seal.Key{1})
	if got := busy.get("/api/v1/me"); got.status != 200 {
		t.Errorf("during the rotation: %+v", got)
	}
	keys.rotate(t, seal.Key{2})
	if got := busy.get("/api/v1/me"); got.status != 200 || got.header.Get("Set-Cookie") != "" {
		t.Errorf("of a session in use: %+v", got)
	}
	if got := idle.get("/api/v1/me"); got.status != 401 {
		t.Errorf("of an unused session: %+v", got)
	}
}

// A browser sends the session with any cross-site request.
func TestSession_CrossOriginIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	p.chat(p.key("acme", authn.RoleAgent), startDemo)
	b := p.signedIn(claimsFor("acme", "approvers"))
	id := b.get("/api/v1/requests").field("items").([]any)[0].(map[string]any)["id"].(string)
	decide := func(headers ...string) answer {
		return b.send("POST", "/api/v1/requests/"+id+"/decision", `{"resumeId":"1","answer":{"action":"approve"}}`, headers...)
	}
	out := func(headers ...string) answer { return b.send("POST", "/signout", "", headers...) }
	for name, headers := range map[string][]string{
		"another site":                  {"Sec-Fetch-Site", "cross-site", "Origin", "https://elsewhere.example"},
		"another host of this site":     {"Sec-Fetch-Site", "same-site", "Origin", "https://elsewhere.example"},
		"an old browser":                {"Sec-Fetch-Site", "", "Origin", "https://elsewhere.example"},
		"a page without an origin":      {"Sec-Fetch-Site", "", "Origin", "null"},
		"another port of this machine":  {"Sec-Fetch-Site", "", "Origin", "http://127.0.0.1:1"},
		"without an origin":             {"Sec-Fetch-Site", ""},
		"another site, with our origin": {"Sec-Fetch-Site", "cross-site", "Origin", ""},
	} {
		for what, send := range map[string]func(...string) answer{"a decision": decide, "signing out": out} {
			if got := send(headers...); got.status != 403 {
				t.Errorf("%s from %s: %d %s", what, name, got.status, got.body)
			}
		}
	}
	if got := b.get("/api/v1/requests/" + id); got.field("state") != "pending" {
		t.Fatalf("something was decided: %+v", got)
	}
	for name, headers := range map[string][]string{
		"our own page":                    nil,
		"our own page, in an old browser": {"Sec-Fetch-Site", "", "Origin", p.url},
	} {
		if got := decide(headers...); got.status != 200 {
			t.Errorf("a decision from %s: %d %s", name, got.status, got.body)
		}
	}
	if got := p.call(p.key("acme", authn.RoleAgent), "POST", "/api/v1/runs/demo-1/cancel", "", "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site"); got.status == 403 {
		t.Errorf("a key is not sent automatically, so its origin does not matter: %+v", got)
	}
}

type credentials store.Credentials

// failingCredentials is a store that does not answer.
type failingCredentials struct {
	credentials
	down bool
}

var errStoreDown = errors.New("the store does not answer")

func (s *failingCredentials) Credential(ctx context.Context, id string) (store.Credential, error) {
	if s.down {
		return store.Credential{}, errStoreDown
	}
	return s.credentials.Credential(ctx, id)
}

func (s *failingCredentials) AddCredential(ctx context.Context, c store.Credential, beside store.Writes) error {
	if s.down {
		return errStoreDown
	}
	return s.credentials.AddCredential(ctx, c, beside)
}

func (s *failingCredentials) RevokeCredential(ctx context.Context, account, id string, beside store.Writes) error {
	if s.down {
		return errStoreDown
	}
	return s.credentials.RevokeCredential(ctx, account, id, beside)
}

func TestSession_StoreDownReturns503(t *testing.T) {
	var s *failingCredentials
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) {
		s = &failingCredentials{credentials: c.SignIn.Credentials}
		c.SignIn.Credentials = s
	}})
	b, late := p.signedIn(claimsFor("acme", "agents")), p.browser()
	callback := late.followToCallback("/")
	s.down = true
	if got := b.get("/api/v1/me"); got.status != 503 {
		t.Errorf("it is unknown whether it was revoked, and yet: %+v", got)
	}
	if got := late.get(callback); got.status != 503 || strings.Contains(got.body, errStoreDown.Error()) {
		t.Errorf("a sign-in: %+v", got)
	}
	if got := b.send("POST", "/signout", ""); got.status != 503 {
		t.Errorf("it reports that the session has ended: %+v", got)
	}
	s.down = false
	if got := b.get("/api/v1/me"); got.status != 200 {
		t.Errorf("the browser cannot try again: %+v", got)
	}
}

func TestSession_IDIsNotAnAPIKey(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "admins"))
	list, err := p.credentials().Credentials(t.Context(), "acme")
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	for _, token := range []string{b.session().Value, list[0].ID, "fermata_" + list[0].ID} {
		if got := p.call(token, "GET", "/api/v1/me", ""); got.status != 401 {
			t.Errorf("%q as a token: %+v", token, got)
		}
	}
}

// idOfCredential matches the key or session id in a record.
var idOfCredential = regexp.MustCompile(` id=(session_)?[0-9a-zA-Z_-]{16,}`)

// A decision records how its author was authenticated.
func TestDecision_RecordsAuthenticationMethod(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	agent := p.key("acme", authn.RoleAgent)
	strong := claimsFor("acme", "approvers")
	strong["amr"], strong["acr"] = []any{"mfa", "hwk", "a,b", "white space", 7, strings.Repeat("x", 99)}, "urn:example:gold"
	link, err := p.server.DevLink(p.listener.Listener.Addr(), authn.Principal{Account: "acme", ID: "you", Roles: []authn.Role{authn.RoleAdmin}}, "/")
	if err != nil {
		t.Fatal(err)
	}
	dev := p.browser()
	dev.get(link)
	weird := claimsFor("acme", "approvers")
	weird["acr"] = "two words"
	bot := p.idp.Token(map[string]any{"aud": "fermata-api", "sub": "bot", "tenant": "acme", "groups": "approvers"})
	for via, decide := range map[string]func(path, body string) answer{
		"http/key":   func(path, body string) answer { return p.call(p.key("acme", authn.RoleApprover), "POST", path, body) },
		"http/token": func(path, body string) answer { return p.call(bot, "POST", path, body) },
		"http/oidc":  func(path, body string) answer { return p.signedIn(weird).send("POST", path, body) },
		"http/oidc amr=mfa,hwk acr=urn:example:gold": func(path, body string) answer { return p.signedIn(strong).send("POST", path, body) },
		"http/dev": func(path, body string) answer { return dev.send("POST", path, body) },
	} {
		key := strings.NewReplacer("/", "-", " ", "-").Replace(via)
		p.chat(agent, strings.Replace(startDemo, "demo-1", key, 1))
		var id string
		for _, q := range p.openRequests("acme") {
			if q.StateKey == key {
				id = q.ID
			}
		}
		if got := decide("/api/v1/requests/"+id+"/decision", `{"resumeId":"`+key+`","answer":{"action":"approve"}}`); got.status != 200 {
			t.Errorf("%s: %+v", via, got)
		}
		got := p.call(agent, "GET", "/api/v1/requests/"+id, "")
		decision, _ := got.field("decision").(map[string]any)
		if known, _ := decision["via"].(string); idOfCredential.ReplaceAllString(known, "") != via || idOfCredential.MatchString(known) == (via == "http/token") {
			t.Errorf("%s is recorded as %v", via, decision["via"])
		}
	}
}

// An open stream ends when its session or key is revoked.
func TestStream_EndsWhenSessionIsRevoked(t *testing.T) {
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.Limits.AuthRecheck = time.Millisecond }})
	key := p.key("acme", authn.RoleAgent)
	p.chat(key, startDemo)
	b := p.signedIn(claimsFor("acme", "auditors"))
	idle := p.signedIn(claimsFor("acme", "auditors"))
	endKey := func() {
		list, err := p.credentials().Credentials(t.Context(), "acme")
		for _, c := range list {
			if strings.Contains(key, c.ID) {
				err = errors.Join(err, p.credentials().RevokeCredential(t.Context(), "acme", c.ID, store.Writes{}))
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		client *http.Client
		token  string
		end    func()
	}{
		{"a revoked session", b.client, "", func() { b.send("POST", "/signout", "") }},
		{"a revoked key", http.DefaultClient, "Bearer " + key, endKey},
		{"an unused session", idle.client, "", func() { p.advance(time.Hour) }},
	} {
		// the run waits: a stream that does not end would stay open
		patience, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r := p.request("", "GET", "/api/v1/runs/demo-1/events", "", "Accept", "text/event-stream").WithContext(patience)
		if c.token != "" {
			r.Header.Set("Authorization", c.token)
		}
		response, err := c.client.Do(r)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(c.name, response, err)
		}
		c.end()
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		response.Body.Close()
	}
	if want := `route="/api/v1/runs/{stateKey}/events"`; !strings.Contains(p.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// Another authenticator does not renew an ended session.
func TestSession_IsNotRenewedByOtherAuthenticators(t *testing.T) {
	own := authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) {
		if r.Header.Get("Authorization") != "Bearer own" {
			return authn.Principal{}, authn.ErrUnauthenticated
		}
		return authn.Principal{Account: "acme", ID: "own", Roles: []authn.Role{authn.RoleAgent}, Auth: authn.Auth{Method: authn.MethodOIDC}}, nil
	})
	p := openSignInSite(t, signInOptions{change: func(c *server.Config) { c.Auth = own }})
	b := p.signedIn(claimsFor("acme", "admins"))
	p.advance(time.Hour)
	if got := b.get("/api/v1/me", "Authorization", "Bearer own"); got.status != 200 || got.header.Get("Set-Cookie") != "" {
		t.Errorf("%+v", got)
	}
	if got := b.get("/api/v1/me"); got.status != 401 {
		t.Errorf("%+v", got)
	}
	without := open(t, func(c *server.Config) { c.Auth = own })
	if got := without.call("own", "GET", "/api/v1/me", ""); got.status != 200 {
		t.Errorf("%+v", got)
	}
}

// A session that was planted in the browser is replaced by sign-in.
func TestSession_EachSignInCreatesANewSession(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	attacker := p.signedIn(claimsFor("acme", "agents"))
	planted := attacker.session()
	victim := p.browser()
	victim.set(planted.Name, planted.Value)
	p.idp.SignIn(claimsFor("acme", "admins"))
	p.advance(31 * time.Minute) // otherwise the browser would be signed in already
	if got := victim.get(victim.followToCallback("/")); got.status != 303 {
		t.Fatalf("%+v", got)
	}
	if victim.session().Value == planted.Value {
		t.Error("the session is the previous one")
	}
	p.advance(-31 * time.Minute)
	if got := attacker.get("/api/v1/me"); got.status != 401 {
		t.Errorf("the previous session still works: %+v", got)
	}
	if got := victim.get("/api/v1/me"); !strings.Contains(got.body, `"admin"`) {
		t.Errorf("%+v", got)
	}
}

func TestSession_TamperedCookieIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.signedIn(claimsFor("acme", "agents"))
	good := b.session()
	for i := 0; i < len(good.Value)-1; i += 7 { // the last character has unused bits
		other := "A"
		if good.Value[i] == 'A' {
			other = "B"
		}
		b.set(good.Name, good.Value[:i]+other+good.Value[i+1:])
		if got := b.get("/api/v1/me"); got.status != 401 {
			t.Fatalf("with another character at %d: %+v", i, got)
		}
	}
	dev, err := p.server.DevLink(p.listener.Listener.Addr(), authn.Principal{Account: "acme", ID: "dev", Roles: []authn.Role{authn.RoleAdmin}}, "/")
	if err != nil {
		t.Fatal(err)
	}
	b.followToCallback("/")
	_, flow := b.flowCookie()
	for _, bad := range []string{"", "x", good.Value[:len(good.Value)/2], good.Value + good.Value, dev[strings.LastIndex(dev, "/")+1:], flow} {
		b.set(good.Name, bad)
		if got := b.get("/api/v1/me"); got.status != 401 {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	b.set(good.Name, good.Value)
	if got := b.get("/api/v1/me"); got.status != 200 {
		t.Errorf("the valid one: %+v", got)
	}
}
