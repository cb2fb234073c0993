package web_test

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/web/webtest"
)

// oneTime returns the path of a one-time link for a Slack account.
func oneTime(t *testing.T, s *webtest.Server, account, id string) string {
	t.Helper()
	token, err := s.Executor.NewLinkToken(t.Context(), channel.Sender{Account: account, Channel: "slack", ID: id, Name: "Ann <b>"})
	if err != nil {
		t.Fatal(err)
	}
	return "/link/" + token
}

// principalOf returns who a Slack account is linked to; "" if it is not linked.
func principalOf(t *testing.T, s *webtest.Server, id string) string {
	t.Helper()
	link, err := s.Executor.ChannelLink(t.Context(), channel.Sender{Account: webtest.Account, Channel: "slack", ID: id})
	if errors.Is(err, channel.ErrNotLinked) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return link.Principal
}

func TestLink_GetShowsAndPostLinks(t *testing.T) {
	s := open(t)
	path := oneTime(t, s, webtest.Account, "T1/U1")
	want(t, s.Visitor().Get(path), http.StatusUnauthorized, "/signin?return=%2Flink%2F")
	ann := s.SignIn("ann", authn.RoleApprover)
	for range 2 {
		want(t, ann.Get(path), http.StatusOK, "Slack", "Ann &lt;b&gt; (T1/U1)", "ann", "Continue only if this is your own account")
	}
	if who := principalOf(t, s, "T1/U1"); who != "" {
		t.Fatalf("GET linked the account to %q", who)
	}
	want(t, ann.Follow(ann.Post(path)), http.StatusOK, "The account is linked", "Linked accounts", "Ann &lt;b&gt; (T1/U1)")
	if who := principalOf(t, s, "T1/U1"); who != "ann" {
		t.Fatalf("linked to %q", who)
	}
	// a used link
	want(t, ann.Get(path), http.StatusGone, "unknown, expired or already used")
	want(t, ann.Post(path), http.StatusGone, "unknown, expired or already used")
}

func TestLink_Unlink(t *testing.T) {
	s := open(t)
	ann, bob := s.SignIn("ann", authn.RoleApprover), s.SignIn("bob", authn.RoleApprover)
	ann.Post(oneTime(t, s, webtest.Account, "T1/U1"))
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(ann.Get("/me").Body)
	if id == nil {
		t.Fatal("the profile does not list the account")
	}
	want(t, bob.Get("/me"), http.StatusOK, "Linked accounts", "None.")
	want(t, bob.Post("/me/unlink", "id", id[1]), http.StatusNotFound)
	if who := principalOf(t, s, "T1/U1"); who != "ann" {
		t.Fatalf("another person unlinked the account: %q", who)
	}
	want(t, ann.Follow(ann.Post("/me/unlink", "id", id[1])), http.StatusOK, "no longer linked", "None.")
	if who := principalOf(t, s, "T1/U1"); who != "" {
		t.Errorf("still linked to %q", who)
	}
}

// The account belongs to one person until they unlink it, and a link of another tenant is unknown.
func TestLink_OtherPersonAndOtherAccount(t *testing.T) {
	s := open(t)
	ann, bob := s.SignIn("ann", authn.RoleApprover), s.SignIn("bob", authn.RoleApprover)
	ann.Post(oneTime(t, s, webtest.Account, "T1/U1"))
	second := oneTime(t, s, webtest.Account, "T1/U1")
	want(t, bob.Get(second), http.StatusConflict, "linked to another person")
	want(t, bob.Post(second), http.StatusConflict, "linked to another person")
	if who := principalOf(t, s, "T1/U1"); who != "ann" {
		t.Errorf("linked to %q", who)
	}
	want(t, ann.Follow(ann.Post(second)), http.StatusOK, "The account is linked") // it extends the link
	foreign := oneTime(t, s, "other", "T1/U2")
	want(t, bob.Get(foreign), http.StatusGone, "unknown, expired or already used")
	want(t, bob.Post(foreign), http.StatusGone)
	want(t, bob.Get("/link/unknown"), http.StatusGone)
	if got := s.SignIn("eve", authn.RoleAuditor).Post(oneTime(t, s, webtest.Account, "T1/U3")); got.Status != http.StatusForbidden || principalOf(t, s, "T1/U3") != "" {
		t.Errorf("a person who may not decide: %d", got.Status)
	}
}

// A form of another site links nothing.
func TestLink_CrossOriginFormIsRejected(t *testing.T) {
	s := open(t)
	path := oneTime(t, s, webtest.Account, "T1/U1")
	b := s.SignIn("ann", authn.RoleApprover)
	r, err := http.NewRequest(http.MethodPost, s.URL+path, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if got := b.Do(r); got.Status != http.StatusForbidden || principalOf(t, s, "T1/U1") != "" {
		t.Errorf("status %d", got.Status)
	}
}
