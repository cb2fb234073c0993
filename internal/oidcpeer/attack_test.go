package oidcpeer

import (
	"net/url"
	"strings"
	"testing"
)

// change changes one parameter at one place that a browser is led to.
func change(path, name string, value func(string) string) func(*url.URL) {
	return func(at *url.URL) {
		if at.Path != path {
			return
		}
		query := at.Query()
		if text := value(query.Get(name)); text != "" {
			query.Set(name, text)
		} else {
			query.Del(name)
		}
		at.RawQuery = query.Encode()
	}
}

func to(value string) func(string) string { return func(string) string { return value } }

// other is a text as long as another one, with another beginning.
func other(text string) string {
	if strings.HasPrefix(text, "A") {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}

// Whoever stands between, or sends somebody a link of theirs, changes what goes there or comes back. Nobody is in after that, neither by our care nor by the
// provider's.
func whatIsChangedOnTheWayIsRefused(t *testing.T, s *site) {
	const there, back = "/auth", "/signin/callback"
	for name, c := range map[string]struct {
		hop    func(*url.URL)
		status int
		why    string
	}{
		"no PKCE":              {change(there, "code_challenge", to("")), 403, "did not let you in (invalid_request)"},
		"PKCE in plain":        {change(there, "code_challenge_method", to("plain")), 403, "did not let you in (invalid_request)"},
		"another challenge":    {change(there, "code_challenge", other), 400, "The code was used before, or is too old"},
		"another nonce":        {change(there, "nonce", other), 400, "The ID token is the answer to another sign-in"},
		"no nonce":             {change(there, "nonce", to("")), 400, "The ID token is the answer to another sign-in"},
		"another state there":  {change(there, "state", other), 400, "This sign-in did not begin in this browser"},
		"another state":        {change(back, "state", other), 400, "This sign-in did not begin in this browser"},
		"no state":             {change(back, "state", to("")), 400, "This sign-in did not begin in this browser"},
		"another code":         {change(back, "code", other), 400, "The code was used before, or is too old"},
		"another issuer":       {change(back, "iss", to("https://elsewhere.example")), 400, "This is the answer of another identity provider"},
		"another place":        {change(there, "redirect_uri", to(home+"/elsewhere")), 400, "redirect_uri did not match"},
		"another client":       {change(there, "client_id", to("fermata-public")), 400, "The code was used before, or is too old"},
		"an answer in the URL": {change(there, "response_type", to("id_token")), 0, ""},
	} {
		b := s.browser(t)
		b.hop = c.hop
		got := b.signIn("ann")
		if b.me("").Status != 401 || c.status != 0 && (got.status != c.status || !strings.Contains(got.body, c.why)) {
			t.Errorf("%s: %d %s\n%s", name, got.status, got.at, got.body)
		}
	}
}

// The same answer counts once, in the browser where the sign-in began.
func anAnswerIsNotTakenTwiceNorElsewhere(t *testing.T, s *site) {
	b := s.browser(t)
	victim := b.another()
	var answer string
	b.hop = func(at *url.URL) {
		if at.Path == "/signin/callback" {
			answer = at.String()
			at.Path = "/healthz" // it does not get there
		}
	}
	b.signIn("ann")
	if got := victim.open(answer); got.status != 400 || victim.me("").Status != 401 {
		t.Errorf("a browser that began nothing: %d\n%s", got.status, got.body)
	}
	// The code of one sign-in in the answer to another one: it is redeemed with another verifier.
	query := b.url(answer).Query()
	victim.hop = change("/signin/callback", "code", to(query.Get("code")))
	if got := victim.signIn("bob"); got.status != 400 || victim.me("").Status != 401 {
		t.Errorf("the code of somebody else: %d\n%s", got.status, got.body)
	}

	b.signIn("ann")
	thief, kept := b.another(), b.cookies()
	if got := b.open(answer); b.me("").Principal != "ann" {
		t.Fatalf("%d %s\n%s", got.status, got.at, got.body)
	}
	if got := b.open(answer); got.status != 400 {
		t.Errorf("the same browser again: %d\n%s", got.status, got.body)
	}
	thief.steal(kept)
	if got := thief.open(answer); got.status != 400 || thief.me("").Status != 401 {
		t.Errorf("somebody with the cookies of before: %d\n%s", got.status, got.body)
	}
}
