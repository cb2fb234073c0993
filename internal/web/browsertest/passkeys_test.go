package browsertest

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

// authenticator adds an authenticator to a tab, which verifies its user without asking.
func (b *tab) authenticator() webauthn.AuthenticatorID {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, webauthn.Enable, webauthn.EnableParams{}); err != nil {
		b.Fatal(err)
	}
	added, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.Fatal(err)
	}
	return added.AuthenticatorID
}

// An invited person creates a passkey, signs out, signs in with it, adds a second one and removes
// the first.
func TestPasskeys_InvitationSignInAddRemove(t *testing.T) {
	s := openServer(t)
	b := newTab(t, s.AtHostName(), phone)
	first := b.authenticator()
	b.open(s.Invite("bob"))
	b.do(chromedp.WaitVisible(`form[data-passkey]`))
	for _, colours := range []string{"light", "dark"} {
		b.do(scheme(colours))
		b.check("invitation-" + colours)
	}
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.waitText("Nothing is waiting for you")
	b.do(chromedp.Click(`button[popovertarget=side]`), chromedp.WaitVisible(`form[action="/signout"] button`), chromedp.Click(`form[action="/signout"] button`))
	b.waitText("You are signed out")
	b.open("/signin?return=/me")
	b.do(chromedp.WaitVisible(`form[data-passkey]`))
	for _, colours := range []string{"light", "dark"} {
		b.do(scheme(colours))
		b.check("signin-" + colours)
	}
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.waitText("hardware")
	// a second authenticator, because the first one has a passkey already
	b.do(chromedp.WaitVisible(`#passkey-name`), chromedp.SendKeys(`#passkey-name`, "Spare key"))
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.waitText("The passkey was not created")
	if _, err := chromedp.Call(b.ctx, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: first}); err != nil {
		t.Fatal(err)
	}
	b.authenticator()
	b.do(chromedp.Click(`form[data-passkey] button`))
	b.waitText("The passkey was added.")
	for _, colours := range []string{"light", "dark"} {
		b.do(scheme(colours))
		b.check("me-" + colours)
	}
	b.do(chromedp.Click(`#passkeys .rename summary`))
	b.fill(`#passkeys .rename input[name="name"]`, "Old phone")
	b.check("rename")
	b.do(chromedp.Click(`#passkeys .rename button`))
	b.waitText("The passkey was renamed.")
	b.waitText("Old phone")
	b.do(chromedp.Click(`#passkeys form[action$="/remove"] button`))
	b.waitText("The passkey was removed.")
	if n := eval[int](b, `document.querySelectorAll("#passkeys li").length`); n != 1 || !strings.Contains(b.text(), "Spare key") {
		t.Errorf("%d passkeys\n%s", n, b.text())
	}
}

// Without scripts there is the password only.
func TestPasskeys_PasswordWithoutScripts(t *testing.T) {
	s := openServer(t)
	b := newTab(t, s.AtHostName(), desk)
	b.do(noScript)
	b.open(s.Invite("bob"))
	if eval[bool](b, `document.querySelector("form[data-passkey]").checkVisibility()`) {
		t.Error("a form that needs scripts is visible")
	}
	b.do(chromedp.SendKeys(`input[name="password"]`, "correct horse battery"), chromedp.Click(`form:not([data-passkey]) button`), chromedp.WaitVisible(".side"))
	b.open("/me")
	b.waitText("Password")
}

// A browser whose person cancels says so, and the password remains.
func TestPasskeys_RefusedByItsUser(t *testing.T) {
	s := openServer(t)
	b := newTab(t, s.AtHostName(), desk)
	id := b.authenticator()
	if _, err := chromedp.Call(b.ctx, webauthn.SetUserVerified, webauthn.SetUserVerifiedParams{AuthenticatorID: id, IsUserVerified: false}); err != nil {
		t.Fatal(err)
	}
	b.open(s.Invite("bob"))
	b.do(chromedp.WaitVisible(`form[data-passkey]`), chromedp.Click(`form[data-passkey] button`))
	b.waitText("The passkey was not used.")
	b.do(chromedp.SendKeys(`input[name="password"]`, "correct horse battery"), chromedp.Click(`form:not([data-passkey]) button`))
	b.waitText("Nothing is waiting for you")
}
