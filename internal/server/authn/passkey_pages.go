package authn

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"net/http"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

//go:embed pages/passkeys.js
var passkeyScript []byte

// PasskeyScript is the path of the script that creates and uses passkeys. A form with the attribute
// data-passkey is shown if the browser has passkeys, and sent after the authenticator responded.
const PasskeyScript = "/signin/passkeys.js"

func (p *Sessions) registerPasskeys(handle func(pattern string, handler func(http.ResponseWriter, *http.Request))) {
	handle("GET "+PasskeyScript, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(passkeyScript) // a disconnected client does not read it
	})
	handle("POST /signin/passkey/options", p.form(p.passkeyOptions))
	handle("POST /signin/passkey", p.form(p.passkeySignIn))
	handle("POST /signin/invitation/options", p.form(p.invitationOptions))
}

// passkeyOptions starts a sign-in with a passkey.
func (p *Sessions) passkeyOptions(w http.ResponseWriter, r *http.Request) {
	rp, err := p.relyingParty(r.Host)
	if err != nil {
		p.rejectScript(w, err)
		return
	}
	assertion, session, err := rp.BeginDiscoverableLogin()
	o := PasskeyOptions{}
	if err == nil {
		o.Options = assertion.Response
		o.State, err = p.sealCookie(ceremonyLabel, ceremony{Session: *session, Until: p.now().Add(ceremonyTTL)})
	}
	p.writeOptions(w, o, err)
}

// invitationOptions starts the creation of a passkey for an invited person.
func (p *Sessions) invitationOptions(w http.ResponseWriter, r *http.Request) {
	if p.origins.Check(r) != nil {
		p.rejectScript(w, problems.New("forbidden", "cross-origin request"))
		return
	}
	i, err := p.readInvitation(r.Context(), r.PostFormValue("token"))
	if err != nil {
		p.rejectScript(w, err)
		return
	}
	m, err := p.invitedPasskeys(r, i)
	o := PasskeyOptions{}
	if err == nil {
		o, err = p.beginPasskey(r.Host, m)
	}
	p.writeOptions(w, o, err)
}

// invitedPasskeys returns the passkeys of an invited person: none. An invitation with passkeys was
// used.
func (p *passkeys) invitedPasskeys(r *http.Request, i invitation) (*memberPasskeys, error) {
	m, err := p.readPasskeys(r.Context(), i.credential(nil), p.rpID(r.Host))
	if err == nil && m.revision != 0 {
		err = errInvitationUsed()
	}
	return m, err
}

// acceptWithPasskey makes an invited person a member with a passkey. The member is stored first: a
// used invitation must not replace the passkeys of a member.
func (p *Sessions) acceptWithPasskey(r *http.Request, i invitation) (who Principal, err error) {
	m, err := p.invitedPasskeys(r, i)
	if err != nil {
		return who, err
	}
	added, err := p.finishPasskey(r.Host, m, DeviceName(r.UserAgent()), r.PostFormValue("state"), r.PostFormValue("response"))
	if err != nil {
		return who, err
	}
	who = passkeyPrincipal(m.member, added, p.now())
	if err = p.addMember(r.Context(), i, who, noPassword); err != nil && !p.isUnfinished(r.Context(), m.member.ID) {
		return who, err
	}
	err = p.writePasskeys(r.Context(), m, who, audit.APIKeyMade{Key: added.ID, Name: i.Name, Role: m.member.Role})
	if errors.Is(err, store.ErrStale) {
		return who, errInvitationUsed()
	}
	return who, err
}

// isUnfinished reports whether there is a member without a password. If there were never passkeys
// either, an earlier attempt to store them has failed.
func (p *passkeys) isUnfinished(ctx context.Context, id string) bool {
	c, err := p.Credentials.Credential(ctx, id)
	return err == nil && c.Revoked.IsZero() && !isPasswordHash(c.Hash)
}

// passkeySignIn signs in a member with a passkey.
func (p *Sessions) passkeySignIn(w http.ResponseWriter, r *http.Request) {
	if p.origins.Check(r) != nil {
		p.rejectSignIn(w, r, problems.New("forbidden", "cross-origin request"))
		return
	}
	back := localPath(r.PostFormValue("return"))
	who, challenge, err := p.checkPasskey(r, r.PostFormValue("state"), r.PostFormValue("response"))
	if why, ok := errors.AsType[*problems.Problem](err); ok && why.Status < http.StatusInternalServerError && wantsHTML(r) {
		p.hooks.Rejected(why.Code)
		p.logSignInFailure(why, err)
		again := p.pageSignIn(r, "", back, "")
		again.Status, again.Problem = why.Status, again.T(sentence(why.Detail))+" "+again.T("Try again, or sign in with your password.")
		p.writePage(w, again)
		return
	}
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.startSession(w, r, who, challenge, back)
}

// writeOptions answers the script of a page.
func (p *Sessions) writeOptions(w http.ResponseWriter, o PasskeyOptions, err error) {
	if err != nil {
		p.rejectScript(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(o) // a disconnected client does not read it
}

// rejectScript answers the script of a page with a problem.
func (p *Sessions) rejectScript(w http.ResponseWriter, err error) {
	why, ok := errors.AsType[*problems.Problem](err)
	if !ok {
		why = problems.Overloaded("passkeys are temporarily unavailable")
	}
	p.logSignInFailure(why, err)
	p.hooks.Rejected(why.Code)
	problems.Write(w, why)
}
