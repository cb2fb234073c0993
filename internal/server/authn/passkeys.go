package authn

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// A member may have passkeys (WebAuthn), next to a password or instead of one. The authenticator
// always verifies its user, so that a passkey counts as two factors. The passkeys of a member are
// one document. They are bound to the member's credential: a new invitation, which replaces that
// credential, also replaces the passkeys.

const (
	passkeyIDKind = "passkey"
	ceremonyLabel = "passkey ceremony"
	// ceremonyTTL is how long a browser may take to create or use a passkey.
	ceremonyTTL = 5 * time.Minute
	// maxPasskeys is how many passkeys a member may have.
	maxPasskeys = 20
	// maxPasskeyName is the maximum length of the name of a passkey, in bytes.
	maxPasskeyName = 100
	// freshSignIn is how long after the sign-in a session may change passkeys.
	freshSignIn = 15 * time.Minute
	// passkeyTries is how often a use of a passkey is recorded if other uses interfere.
	passkeyTries = 5
)

// PasskeyStore stores the passkeys of members. An executor implements it.
type PasskeyStore interface {
	// Passkeys returns what WritePasskeys has stored for a member, and its revision; 0 if there is
	// nothing.
	Passkeys(ctx context.Context, account, member string) (data []byte, revision int64, err error)
	// WritePasskeys stores the passkeys of a member together with audit lines. It returns
	// store.ErrStale if the stored ones do not have the revision.
	WritePasskeys(ctx context.Context, account, member string, data []byte, revision int64, audit ...[]byte) error
}

// Passkey describes a passkey of a member.
type Passkey struct {
	ID, Name string
	Created  time.Time
	Used     time.Time // zero: never
	// Synced says that the authenticator may copy the passkey to other devices.
	Synced bool
}

// storedPasskey is a passkey with its public key.
type storedPasskey struct {
	Passkey
	// RPID is the host that the passkey is bound to.
	RPID       string
	Credential webauthn.Credential
}

// memberPasskeys are the passkeys of a member for one host. It implements webauthn.User.
type memberPasskeys struct {
	member   store.Credential
	rpID     string
	all      []storedPasskey
	revision int64
}

// WebAuthnID returns the id of the member, which authenticators keep.
func (m *memberPasskeys) WebAuthnID() []byte { return []byte(m.member.ID) }

// WebAuthnName returns the name of the member.
func (m *memberPasskeys) WebAuthnName() string { return m.member.Name }

// WebAuthnDisplayName returns the name of the member.
func (m *memberPasskeys) WebAuthnDisplayName() string { return m.member.Name }

// WebAuthnCredentials returns the passkeys for the host.
func (m *memberPasskeys) WebAuthnCredentials() (list []webauthn.Credential) {
	for _, k := range m.all {
		if k.RPID == m.rpID {
			list = append(list, k.Credential)
		}
	}
	return list
}

// ceremony is the sealed state of a browser that creates or uses a passkey.
type ceremony struct {
	Session webauthn.SessionData
	// Member is the member who creates a passkey; "" for a sign-in.
	Member string
	// Revision is that of the member's passkeys. It changes with each use of the ceremony, so that
	// a ceremony creates one passkey.
	Revision int64
	Until    time.Time
}

// PasskeyOptions is what a browser needs to create or use a passkey.
type PasskeyOptions struct {
	// Options are those of navigator.credentials.create or get, with binary values in base64url.
	Options any `json:"options"`
	// State has to be sent back with the response of the authenticator.
	State string `json:"state"`
}

// passkeys keeps the passkeys of members.
type passkeys struct{ core }

// HasPasskeys reports whether members may have passkeys at the address of a request. Browsers
// create passkeys for host names only, not for IP addresses.
func (p *passkeys) HasPasskeys(host string) bool {
	return p.HasMembers() && p.Passkeys != nil && p.rpID(host) != ""
}

// rpID returns the host that passkeys are bound to; "" if it cannot have any.
func (p *passkeys) rpID(host string) string {
	if p.PublicURL != "" {
		u, err := url.Parse(p.PublicURL)
		if err != nil {
			return ""
		}
		host = u.Host
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host = strings.ToLower(host); net.ParseIP(strings.Trim(host, "[]")) != nil || protocol.ValidateRPID(host) != nil {
		return ""
	}
	return host
}

// relyingParty returns the settings for the address of a request. Without a public URL the host of
// the request counts: a browser uses a passkey only for the host that it was created for.
func (p *passkeys) relyingParty(host string) (*webauthn.WebAuthn, error) {
	if !p.HasPasskeys(host) {
		return nil, problems.New("bad_request", "passkeys need a server with a host name, without an identity provider")
	}
	id, origins := p.rpID(host), []string{"https://" + host}
	switch {
	case p.PublicURL != "":
		u, err := url.Parse(p.PublicURL)
		if err != nil {
			return nil, err
		}
		origins = []string{u.Scheme + "://" + u.Host}
	case isLoopbackHost(id):
		origins = append(origins, "http://"+host)
	}
	return webauthn.New(&webauthn.Config{
		RPID: id, RPDisplayName: "Fermata", RPOrigins: origins, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired},
	})
}

// readPasskeys returns the passkeys of a member.
func (p *passkeys) readPasskeys(ctx context.Context, member store.Credential, rpID string) (*memberPasskeys, error) {
	data, revision, err := p.Passkeys.Passkeys(ctx, member.Account, member.ID)
	m := &memberPasskeys{member: member, rpID: rpID, revision: revision}
	if err == nil && len(data) > 0 {
		err = json.Unmarshal(data, &m.all)
	}
	return m, err
}

// writePasskeys stores the passkeys of a member, if they have not changed since.
func (p *passkeys) writePasskeys(ctx context.Context, m *memberPasskeys, by Principal, did ...audit.Body) error {
	data, err := json.Marshal(m.all)
	if err != nil {
		return err
	}
	var lines [][]byte
	for _, body := range did {
		line, err := by.auditLine(m.member.Account, body)
		if err != nil {
			return err
		}
		lines = append(lines, line.Audit...)
	}
	return p.Passkeys.WritePasskeys(ctx, m.member.Account, m.member.ID, data, m.revision, lines...)
}

// beginPasskey starts the creation of a passkey.
func (p *passkeys) beginPasskey(host string, m *memberPasskeys) (o PasskeyOptions, err error) {
	rp, err := p.relyingParty(host)
	if err != nil {
		return o, err
	}
	creation, session, err := rp.BeginRegistration(m, webauthn.WithExclusions(webauthn.Credentials(m.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return o, err
	}
	o.Options = creation.Response
	o.State, err = p.sealCookie(ceremonyLabel, ceremony{Session: *session, Member: m.member.ID, Revision: m.revision, Until: p.now().Add(ceremonyTTL)})
	return o, err
}

// finishPasskey adds the passkey that an authenticator created to those of a member.
func (p *passkeys) finishPasskey(host string, m *memberPasskeys, name, state, response string) (added Passkey, err error) {
	rp, err := p.relyingParty(host)
	if err != nil {
		return added, err
	}
	c, err := p.openCeremony(state, m.member.ID, rp.Config.RPID)
	if err != nil {
		return added, err
	}
	if name, err = passkeyName(name); err != nil {
		return added, err
	}
	switch {
	case len(m.all) >= maxPasskeys:
		return added, problems.New("bad_request", "there are %d passkeys, which is the maximum; remove one first", maxPasskeys)
	case c.Revision != m.revision:
		return added, store.ErrStale
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes([]byte(response))
	var created *webauthn.Credential
	if err == nil {
		created, err = rp.CreateCredential(m, c.Session, parsed)
	}
	if err != nil {
		return added, rejectedPasskey(err)
	}
	added = Passkey{ID: ident.Derive(passkeyIDKind, string(created.ID)), Name: name, Created: p.now().UTC().Truncate(time.Second), Synced: created.Flags.BackupEligible}
	if slices.ContainsFunc(m.all, func(k storedPasskey) bool { return k.ID == added.ID }) {
		return added, problems.New("bad_request", "this passkey is already registered")
	}
	m.all = append(m.all, storedPasskey{Passkey: added, RPID: rp.Config.RPID, Credential: *created})
	return added, nil
}

// passkeyName returns the name of a passkey without space around it.
func passkeyName(name string) (string, error) {
	if name = strings.TrimSpace(name); len(name) > maxPasskeyName || name != "" && !isDisplayable(name, maxPasskeyName) {
		return "", problems.New("bad_request", "the name of a passkey has at most %d bytes, without control characters", maxPasskeyName)
	}
	return name, nil
}

// openCeremony returns the state of a browser.
func (p *passkeys) openCeremony(state, member, rpID string) (c ceremony, err error) {
	if !p.openCookie(ceremonyLabel, state, &c) || !p.now().Before(c.Until) || c.Member != member || c.Session.RelyingPartyID != rpID {
		return c, problems.New("bad_request", "the passkey took too long, or was meant for something else; try again")
	}
	return c, nil
}

// rejectedPasskey is the problem of a response that was not accepted. The log has the reason.
func rejectedPasskey(err error) error {
	p := problems.New("forbidden", "the passkey was not accepted")
	if why, ok := errors.AsType[*protocol.Error](err); ok {
		err = errors.New(strings.TrimSpace(why.Type + ": " + why.Details + " " + why.DevInfo))
	}
	p.Cause = err
	return p
}

// passkeyMember returns the member whose session a principal uses.
func (p *passkeys) passkeyMember(ctx context.Context, who Principal, host string) (*memberPasskeys, error) {
	if who.Auth.Method != MethodPassword && who.Auth.Method != MethodPasskey || p.Passkeys == nil {
		return nil, problems.New("not_found", "only people who sign in as members have passkeys")
	}
	member, _, err := p.findMember(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	if member == nil || member.Account != who.Account {
		return nil, problems.New("not_found", "you are not a member")
	}
	return p.readPasskeys(ctx, *member, p.rpID(host))
}

// MyPasskeys returns the passkeys of a signed-in member, and whether the session may change them.
// It is a not_found problem for people who sign in otherwise.
func (p *passkeys) MyPasskeys(ctx context.Context, who Principal, host string) (list []Passkey, mayChange bool, err error) {
	m, err := p.passkeyMember(ctx, who, host)
	if err != nil {
		return nil, false, err
	}
	for _, k := range m.all {
		list = append(list, k.Passkey)
	}
	return list, p.mayChangePasskeys(m, who) == nil, nil
}

// mayChangePasskeys requires a fresh sign-in, with a passkey if there is one: a stolen session or
// password must not become a passkey.
func (p *passkeys) mayChangePasskeys(m *memberPasskeys, who Principal) error {
	var rejected *problems.Problem
	switch {
	case len(m.all) > 0 && who.Auth.Method != MethodPasskey:
		rejected = problems.New("stronger_auth_required", "sign in again with one of your passkeys to change them")
		rejected.MinAuth = string(requirement.AuthMFA)
	case p.now().Sub(who.Auth.At) >= freshSignIn:
		rejected = problems.New("stronger_auth_required", "sign in again to change your passkeys: the sign-in is older than %d minutes", int(freshSignIn.Minutes()))
		rejected.MinAuth = string(who.Auth.Strength)
	default:
		return nil
	}
	return rejected
}

// BeginPasskey starts the creation of a passkey for a signed-in member.
func (p *passkeys) BeginPasskey(ctx context.Context, who Principal, host string) (o PasskeyOptions, err error) {
	m, err := p.passkeyMember(ctx, who, host)
	if err == nil {
		err = p.mayChangePasskeys(m, who)
	}
	if err != nil {
		return o, err
	}
	return p.beginPasskey(host, m)
}

// AddPasskey stores the passkey that an authenticator created after BeginPasskey.
func (p *passkeys) AddPasskey(ctx context.Context, who Principal, host, name, state, response string) (added Passkey, err error) {
	m, err := p.passkeyMember(ctx, who, host)
	if err == nil {
		err = p.mayChangePasskeys(m, who)
	}
	if err != nil {
		return added, err
	}
	if added, err = p.finishPasskey(host, m, name, state, response); err == nil {
		err = p.writePasskeys(ctx, m, who, audit.APIKeyMade{Key: added.ID, Name: m.member.Name, Role: m.member.Role})
	}
	if errors.Is(err, store.ErrStale) {
		err = problems.New("bad_request", "your passkeys have changed in the meantime; try again")
	}
	return added, err
}

// RemovePasskey removes a passkey of a signed-in member. It returns store.ErrNotFound if there is
// no such passkey.
func (p *passkeys) RemovePasskey(ctx context.Context, who Principal, host, id string) error {
	m, err := p.passkeyMember(ctx, who, host)
	if err == nil {
		err = p.mayChangePasskeys(m, who)
	}
	if err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Clone(m.all), func(k storedPasskey) bool { return k.ID == id })
	switch {
	case len(left) == len(m.all):
		return store.ErrNotFound
	case len(left) == 0 && !isPasswordHash(m.member.Hash):
		return problems.New("bad_request", "this is your only way to sign in; add another passkey first")
	}
	m.all = left
	return p.writePasskeys(ctx, m, who, audit.APIKeyRevoked{Key: id})
}

// RenamePasskey gives a passkey of a signed-in member another name. It returns store.ErrNotFound if
// there is no such passkey.
func (p *passkeys) RenamePasskey(ctx context.Context, who Principal, host, id, name string) (renamed Passkey, err error) {
	m, err := p.passkeyMember(ctx, who, host)
	if err == nil {
		err = p.mayChangePasskeys(m, who)
	}
	if err == nil {
		name, err = passkeyName(name)
	}
	if err != nil {
		return renamed, err
	}
	at := slices.IndexFunc(m.all, func(k storedPasskey) bool { return k.ID == id })
	switch {
	case at < 0:
		return renamed, store.ErrNotFound
	case name == "":
		return renamed, problems.New("bad_request", "the name of a passkey is empty")
	}
	m.all[at].Name = name
	if err = p.writePasskeys(ctx, m, who); errors.Is(err, store.ErrStale) {
		err = problems.New("bad_request", "your passkeys have changed in the meantime; try again")
	}
	return m.all[at].Passkey, err
}

// amrOf returns the authentication methods of a passkey, as an identity provider would report them:
// two factors, with a key that cannot be copied or one that can.
func amrOf(k Passkey) []string {
	if k.Synced {
		return []string{"mfa", "swk"}
	}
	return []string{"mfa", "hwk"}
}

// passkeyPrincipal returns a member who used a passkey.
func passkeyPrincipal(member store.Credential, k Passkey, now time.Time) Principal {
	auth := Auth{Method: MethodPasskey, AMR: amrOf(k), At: now.Truncate(time.Second)}
	auth.Strength = auth.strengthOf(nil)
	return Principal{Account: member.Account, ID: member.Name, Name: member.Name, Roles: rolesOf(member.Role), Auth: auth}
}

// DeviceName is the default name of a passkey: the kind of device that a browser reports.
func DeviceName(userAgent string) string {
	for _, d := range []struct{ sign, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"CrOS", "Chromebook"}, {"Windows", "Windows"}, {"Mac OS X", "Mac"}, {"Linux", "Linux"},
	} {
		if strings.Contains(userAgent, d.sign) {
			return d.name
		}
	}
	return "Passkey"
}

// checkPasskey returns the member whose authenticator signed a challenge, and the challenge, with
// which one session can begin.
func (p *passkeys) checkPasskey(r *http.Request, state, response string) (who Principal, challenge string, err error) {
	rp, err := p.relyingParty(r.Host)
	if err != nil {
		return who, "", err
	}
	c, err := p.openCeremony(state, "", rp.Config.RPID)
	if err != nil {
		return who, "", err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes([]byte(response))
	if err != nil {
		return who, "", rejectedPasskey(err)
	}
	for range passkeyTries {
		if who, err = p.usePasskey(r.Context(), rp, c, parsed); !errors.Is(err, store.ErrStale) {
			break
		}
	}
	return who, c.Session.Challenge, err
}

// usePasskey verifies the signature of an authenticator and records the use. It returns ErrStale if
// another use was recorded at the same time.
func (p *passkeys) usePasskey(ctx context.Context, rp *webauthn.WebAuthn, c ceremony, parsed *protocol.ParsedCredentialAssertionData) (who Principal, err error) {
	var m *memberPasskeys
	var unavailable error
	_, used, err := rp.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		member, err := p.Credentials.Credential(ctx, string(handle))
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && (!isMember(member.ID) || !member.Revoked.IsZero()):
			return nil, store.ErrNotFound
		case err == nil:
			m, err = p.readPasskeys(ctx, member, rp.Config.RPID)
		}
		unavailable = err
		return m, err
	}, c.Session, parsed)
	switch {
	case unavailable != nil:
		return who, unavailable
	case err != nil:
		return who, rejectedPasskey(err)
	case used.Authenticator.CloneWarning:
		return who, rejectedPasskey(errors.New("the signature counter has not increased: the passkey may have been copied"))
	}
	at := slices.IndexFunc(m.all, func(k storedPasskey) bool { return string(k.Credential.ID) == string(used.ID) })
	m.all[at].Credential, m.all[at].Used = *used, p.now().UTC().Truncate(time.Second)
	who = passkeyPrincipal(m.member, m.all[at].Passkey, p.now())
	return who, p.writePasskeys(ctx, m, who)
}
