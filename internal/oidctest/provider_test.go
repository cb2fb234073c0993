package oidctest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/oidctest"
)

var client = oidctest.Client{ID: "app", Secret: "secret", RedirectURL: "http://127.0.0.1:1/callback"}

// recorder records the errors of the provider.
type recorder struct {
	testing.TB
	list []string
}

func (c *recorder) Errorf(format string, _ ...any) { c.list = append(c.list, format) }

const verifier = "a-verifier-that-is-long-enough-for-the-standard"

func authorization() url.Values {
	sum := sha256.Sum256([]byte(verifier))
	return url.Values{
		"response_type": {"code"}, "client_id": {client.ID}, "redirect_uri": {client.RedirectURL}, "scope": {"openid email"},
		"state": {strings.Repeat("s", 26)}, "nonce": {strings.Repeat("n", 26)}, "code_challenge_method": {"S256"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])},
	}
}

// authorize returns the response to an authorization request.
func authorize(t *testing.T, p *oidctest.Provider, query url.Values) *http.Response {
	t.Helper()
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.URL+"/authorize?"+query.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := browser.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response
}

func code(t *testing.T, p *oidctest.Provider) string {
	t.Helper()
	back, err := authorize(t, p, authorization()).Location()
	if err != nil {
		t.Fatal(err)
	}
	return back.Query().Get("code")
}

// token returns the response to a token request.
func token(t *testing.T, p *oidctest.Provider, form url.Values, secret string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.URL+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(client.ID, secret)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func form(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {client.RedirectURL}, "code_verifier": {verifier}}
}

func TestProvider_RejectsNonconformingClients(t *testing.T) {
	for name, wrong := range map[string]string{
		"response_type": "token", "client_id": "other", "redirect_uri": "http://127.0.0.1:1/other", "scope": "email", "state": "short", "nonce": "",
		"code_challenge_method": "plain", "code_challenge": "short",
	} {
		heard := &recorder{TB: t}
		p := oidctest.New(heard, client)
		query := authorization()
		query.Set(name, wrong)
		if response := authorize(t, p, query); response.StatusCode != 400 || len(heard.list) != 1 {
			t.Errorf("%s=%s: %d, %v", name, wrong, response.StatusCode, heard.list)
		}
	}
}

func TestProvider_CodeIsUsableOnce(t *testing.T) {
	p := oidctest.New(t, client)
	p.SignIn(oidctest.Claims{"sub": "ann"})
	for name, wrong := range map[string]string{"grant_type": "password", "code": "other", "redirect_uri": "http://127.0.0.1:1/other", "code_verifier": "other"} {
		f := form(code(t, p))
		f.Set(name, wrong)
		if status, body := token(t, p, f, client.Secret); status != 400 {
			t.Errorf("%s=%s: %d %s", name, wrong, status, body)
		}
	}
	good := form(code(t, p))
	if status, body := token(t, p, good, "wrong"); status != 401 {
		t.Errorf("another secret: %d %s", status, body)
	}
	if status, body := token(t, p, good, client.Secret); status != 200 || !strings.Contains(body, "id_token") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := token(t, p, good, client.Secret); status != 400 || !strings.Contains(body, "invalid_grant") {
		t.Errorf("the same code again: %d %s", status, body)
	}
	late := form(code(t, p))
	p.Clock(func() time.Time { return time.Now().Add(2 * time.Minute) })
	if status, body := token(t, p, late, client.Secret); status != 400 {
		t.Errorf("an old code: %d %s", status, body)
	}
}
