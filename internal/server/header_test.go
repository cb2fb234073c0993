package server_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// A quality of 0 excludes a type (RFC 9110, 12.4.2). It used to count as a preference.
func TestChat_AcceptHeaderSelectsStream(t *testing.T) {
	s := open(t, nil)
	for accept, stream := range map[string]bool{
		"text/event-stream":                            true,
		"application/json, text/event-stream;q=0.1":    true,
		"Text/Event-Stream; charset=utf-8; q=1":        true,
		"text/event-stream;q=0":                        false,
		"text/event-stream; Q=0.000, application/json": false,
		"text/event-stream;charset=utf-8;q=0":          false,
		"*/*":                                          false,
	} {
		got := s.chat("agent@acme", startDemo, "Accept", accept)
		if is := strings.HasPrefix(got.header.Get("Content-Type"), acceptStream); got.status != 200 || is != stream {
			t.Errorf("Accept: %s: %d, %s", accept, got.status, got.header.Get("Content-Type"))
		}
	}
}

// Several lines of a list header are combined, and other headers may occur once. Only the first
// line used to count, so respond-async on the second line was ignored, and the idempotency key was
// ambiguous.
func TestChat_RepeatedHeaders(t *testing.T) {
	s := open(t, nil)
	say := func(name string, lines ...string) answer {
		r := s.request("agent@acme", "POST", "/api/v1/ai/chat", `{"graphId":"inproc:content-review","input":{"topic":"tea"}}`)
		for _, line := range lines {
			r.Header.Add(name, line)
		}
		response, err := http.DefaultClient.Do(r)
		return answerOf(t, response, err)
	}
	if got := say("Prefer", "handling=strict", "respond-async"); got.status != 202 {
		t.Errorf("%+v", got)
	}
	if got := say("Accept", "application/json", "text/event-stream"); !strings.HasPrefix(got.header.Get("Content-Type"), acceptStream) {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"Idempotency-Key", "Authorization", "Last-Event-ID", "Content-Type"} {
		if got := say(name, "Bearer agent@acme", "b"); got.status != 400 || got.field("code") != "bad_request" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Browsers omit the session from cross-site form posts. The response used to delete the cookie
// anyway: any page could sign people out.
func TestSignOut_CrossOriginIsRejected(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	b := p.browser() // without its session, as with SameSite=Lax
	for name, headers := range map[string][]string{
		"another site":   {"Sec-Fetch-Site", "cross-site", "Origin", "https://elsewhere.example"},
		"an old browser": {"Sec-Fetch-Site", "", "Origin", "https://elsewhere.example"},
	} {
		if got := b.send("POST", "/signout", "", headers...); got.status != 403 || got.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: %d, Set-Cookie: %s", name, got.status, got.header.Get("Set-Cookie"))
		}
	}
	if got := b.send("POST", "/signout", ""); got.status != 303 || got.header.Get("Set-Cookie") == "" {
		t.Errorf("our own page with an ended session: %d, %v", got.status, got.header)
	}
}

// switchableAuth authenticates with a result that can be changed.
type switchableAuth struct {
	now   atomic.Pointer[func() (authn.Principal, error)]
	calls atomic.Int32
}

func (c *switchableAuth) set(f func() (authn.Principal, error)) { c.now.Store(&f) }

func (c *switchableAuth) Authenticate(*http.Request) (authn.Principal, error) {
	c.calls.Add(1)
	return (*c.now.Load())()
}

// A custom authenticator may know that a principal has lost a role, or has another account.
func TestStream_EndsWhenPrincipalChanges(t *testing.T) {
	reader := func(account string, roles ...authn.Role) func() (authn.Principal, error) {
		return func() (authn.Principal, error) {
			return authn.Principal{Account: account, ID: "ann", Roles: roles}, nil
		}
	}
	for name, then := range map[string]func() (authn.Principal, error){
		"without a reading role":          reader("acme"),
		"of another account":              reader("globex", authn.RoleAuditor),
		"unauthenticated now":             func() (authn.Principal, error) { return authn.Principal{}, authn.ErrUnauthenticated },
		"unauthenticated after a failure": panicsOnce(),
	} {
		auth := new(switchableAuth)
		auth.set(reader("acme", authn.RoleAdmin))
		s := open(t, func(c *server.Config) { c.Auth, c.Limits.AuthRecheck = auth, time.Millisecond })
		s.chat("", startDemo)
		// the run waits: a stream that does not end would stay open
		timeoutCtx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		r, err := http.NewRequestWithContext(timeoutCtx, "GET", s.url+"/api/v1/runs/demo-1/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil || response.StatusCode != 200 {
			t.Fatal(name, response, err)
		}
		// it continues as long as nothing has changed
		for seen := auth.calls.Load(); auth.calls.Load() < seen+3; {
			if timeoutCtx.Err() != nil {
				t.Fatal(name, "the stream has ended before")
			}
			runtime.Gosched()
		}
		auth.set(then)
		if _, err := io.ReadAll(response.Body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		response.Body.Close()
	}
}

// panicsOnce is an authenticator that fails, then panics, and then rejects. Between two checks
// there is no other recover.
func panicsOnce() func() (authn.Principal, error) {
	var calls atomic.Int32
	return func() (authn.Principal, error) {
		switch calls.Add(1) {
		case 1:
			return authn.Principal{}, errors.New("no answer")
		case 2:
			panic("bug in the embedding program")
		}
		return authn.Principal{}, authn.ErrUnauthenticated
	}
}
