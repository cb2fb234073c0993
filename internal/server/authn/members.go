package authn

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/server/problems"
	"github.com/fermata-go/fermata/internal/store"
)

// A member is a person who signs in with a password or a passkey, for teams without an identity
// provider. An administrator invites them with a link; the person who opens it chooses a password,
// or creates a passkey. The store keeps a credential with the hash of the password. Its id is
// derived from the name and a generation: a new invitation for the same name replaces the previous
// credential.

// InvitationTTL is how long an invitation is valid.
const InvitationTTL = 72 * time.Hour

const (
	memberIDKind     = "member"
	invitationIDKind = "invitation"
	invitationLabel  = "invitation"
	// maxGenerations is how often a name can be invited.
	maxGenerations = 100
)

// ErrNameTaken is returned for an invitation if the name belongs to a member of another account, or
// was used too often.
var ErrNameTaken = errors.New("authn: the name is taken; choose another one")

// invitation is the sealed content of an invitation link.
type invitation struct {
	// ID is that of a credential, with which the invitation can be revoked.
	ID            string
	Account, Name string
	Roles         []Role
	Generation    int
	Until         time.Time
}

// Member is a person who may sign in with a password or a passkey.
type Member struct {
	ID, Name string
	Roles    []Role
	Created  time.Time
}

// members keeps the members of the accounts and their invitations.
type members struct{ passkeys }

// HasMembers reports whether people sign in as members: there is no identity provider.
func (p *core) HasMembers() bool { return p.idp == nil }

// Invite returns the path of a link with which a person becomes a member, once. Another invitation
// for the same name replaces their password.
func (p *members) Invite(ctx context.Context, account, name string, roles []Role, by Principal) (path string, until time.Time, err error) {
	switch {
	case account == "" || !isPrincipalName(name) || strings.TrimSpace(name) != name:
		return "", until, fmt.Errorf("%w: an invitation needs an account and a name without surrounding spaces, invisible characters and characters that imitate others", store.ErrInvalid)
	case len(roles) == 0 || slices.ContainsFunc(roles, func(r Role) bool { return !slices.Contains(Roles, r) }):
		return "", until, fmt.Errorf("%w: an invitation needs roles of %v", store.ErrInvalid, Roles)
	}
	current, next, err := p.findMember(ctx, name)
	if err != nil {
		return "", until, err
	}
	if next >= maxGenerations || current != nil && current.Account != account {
		return "", until, ErrNameTaken
	}
	other, err := p.lookAlike(ctx, account, name)
	if err == nil && other != "" {
		err = fmt.Errorf("%w: the name looks like that of the member %s; choose another one", store.ErrInvalid, other)
	}
	if err != nil {
		return "", until, err
	}
	until = p.now().Add(InvitationTTL).Truncate(time.Second)
	id, role := ident.Random(invitationIDKind), strings.Join(RoleNames(roles), ",")
	line, err := by.auditLine(account, audit.APIKeyMade{Key: id, Name: name, Role: role, Until: audit.TimestampOf(until)})
	if err == nil {
		err = p.Credentials.AddCredential(ctx, store.Credential{ID: id, Account: account, Name: name, Role: role, Hash: noPassword, Expires: until}, line)
	}
	if err != nil {
		return "", until, err
	}
	token, err := p.sealCookie(invitationLabel, invitation{ID: id, Account: account, Name: name, Roles: roles, Generation: next, Until: until})
	return "/signin/invitation?token=" + url.QueryEscape(token), until, err
}

// lookAlike returns the name of a member that looks like the name of a new one, and is another; ""
// if there is none.
func (p *members) lookAlike(ctx context.Context, account, name string) (string, error) {
	members, err := p.Members(ctx, account)
	for _, m := range members {
		if !strings.EqualFold(m.Name, name) && safehtml.LooksLike(m.Name, name) {
			return m.Name, nil
		}
	}
	return "", err
}

func memberID(name string, generation int) string {
	return ident.Derive(memberIDKind, strings.ToLower(name), strconv.Itoa(generation))
}

// findMember returns the valid credential of a name, or nil, and the next free generation.
func (p *core) findMember(ctx context.Context, name string) (current *store.Credential, next int, err error) {
	for ; next < maxGenerations; next++ {
		c, err := p.Credentials.Credential(ctx, memberID(name, next))
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		if current = nil; c.Revoked.IsZero() {
			current = &c
		}
	}
	return current, next, nil
}

// Members lists the members of an account by name.
func (p *members) Members(ctx context.Context, account string) (members []Member, err error) {
	all, err := p.Credentials.Credentials(ctx, account)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		if isMember(c.ID) && c.Revoked.IsZero() {
			members = append(members, Member{ID: c.ID, Name: c.Name, Roles: rolesOf(c.Role), Created: c.Created})
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return members, nil
}

// RemoveMember removes a member and ends their sessions. It returns store.ErrNotFound if the
// account has no such member.
func (p *members) RemoveMember(ctx context.Context, account, id string, by Principal) error {
	all, err := p.Credentials.Credentials(ctx, account)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(c store.Credential) bool { return c.ID == id && isMember(id) && c.Revoked.IsZero() })
	if i < 0 {
		return store.ErrNotFound
	}
	name := all[i].Name
	for _, c := range all {
		var did audit.Body
		switch {
		case c.Name != name || !c.Revoked.IsZero():
			continue
		case c.ID == id:
			did = audit.APIKeyRevoked{Key: id}
		case IsSession(c.ID):
			did = audit.SessionEnded{Session: c.ID}
		default:
			continue
		}
		line, err := by.auditLine(account, did)
		if err != nil {
			return err
		}
		if err := p.Credentials.RevokeCredential(ctx, account, c.ID, line); err != nil {
			return err
		}
	}
	return p.clearPasskeys(ctx, all[i], by)
}

// clearPasskeys deletes the passkeys of a removed member, which are no longer accepted.
func (p *members) clearPasskeys(ctx context.Context, member store.Credential, by Principal) error {
	if p.Passkeys == nil {
		return nil
	}
	m, err := p.readPasskeys(ctx, member, "")
	if err != nil || len(m.all) == 0 {
		return err
	}
	m.all = nil
	if err = p.writePasskeys(ctx, m, by); errors.Is(err, store.ErrStale) {
		return nil // the member was just signing in; nothing reads the passkeys any more
	}
	return err
}

func isMember(id string) bool { return strings.HasPrefix(id, memberIDKind+"_") }

func rolesOf(text string) (roles []Role) {
	for name := range strings.SplitSeq(text, ",") {
		roles = append(roles, Role(name))
	}
	return roles
}

// auditLine returns an audit record with the principal as its actor.
func (p Principal) auditLine(account string, body audit.Body) (store.Writes, error) {
	actor := audit.Actor{Principal: p.ID, Kind: audit.ActorPerson, Via: p.Auth.Via(), Auth: string(p.Auth.Strength), MFA: p.Auth.Strength.AtLeast(requirement.AuthMFA)}
	line, err := audit.NewLine(account, actor, audit.Location{}, body)
	return store.Writes{Audit: [][]byte{line}}, err
}

func (i invitation) principal() Principal {
	return Principal{Account: i.Account, ID: i.Name, Name: i.Name, Roles: i.Roles, Auth: Auth{Method: MethodPassword, Strength: requirement.AuthToken}}
}

// readInvitation returns the invitation of a request.
func (p *members) readInvitation(ctx context.Context, token string) (i invitation, err error) {
	invalid := problems.New("forbidden", "this invitation is invalid, was used or has expired; ask for a new one")
	if !p.openCookie(invitationLabel, token, &i) || !p.now().Before(i.Until) {
		return i, invalid
	}
	c, err := p.Credentials.Credential(ctx, i.ID)
	if errors.Is(err, store.ErrNotFound) || err == nil && !c.Revoked.IsZero() {
		return i, invalid
	}
	return i, err
}

// showInvitation shows the form in which an invited person chooses a password.
func (p *Sessions) showInvitation(w http.ResponseWriter, r *http.Request) {
	token := r.URL.Query().Get("token")
	i, err := p.readInvitation(r.Context(), token)
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.writePage(w, p.pageInvitation(r, i.Name, token, ""))
}

// acceptInvitation stores the password or the passkey of an invited person and signs them in.
func (p *Sessions) acceptInvitation(w http.ResponseWriter, r *http.Request) {
	if p.origins.Check(r) != nil {
		p.rejectSignIn(w, r, problems.New("forbidden", "cross-origin request"))
		return
	}
	token, password := r.PostFormValue("token"), r.PostFormValue("password")
	i, err := p.readInvitation(r.Context(), token)
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	if r.PostFormValue("response") != "" {
		who, err := p.acceptWithPasskey(r, i)
		if why, ok := errors.AsType[*problems.Problem](err); ok && why.Code == "bad_request" {
			p.logSignInFailure(why, err)
			p.writePage(w, p.pageInvitation(r, i.Name, token, sentence(why.Detail)))
			return
		}
		if err != nil {
			p.rejectSignIn(w, r, err)
			return
		}
		p.startSession(w, r, who, rand.Text(), "/")
		return
	}
	if length := len([]rune(password)); length < minPassword || len(password) > maxPassword {
		p.writePage(w, p.pageInvitation(r, i.Name, token, fmt.Sprintf("The password needs %d to %d characters.", minPassword, maxPassword)))
		return
	}
	done, err := p.guesses.acquire(r.Context(), p.hooks.Source(r))
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	hash := hashPassword(password)
	done()
	who := i.principal()
	if err := p.addMember(r.Context(), i, who, hash); err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	who.Auth.At = p.now().Truncate(time.Second)
	p.startSession(w, r, who, rand.Text(), "/")
}

// credential returns what the store keeps of a member.
func (i invitation) credential(hash []byte) store.Credential {
	return store.Credential{ID: memberID(i.Name, i.Generation), Account: i.Account, Name: i.Name, Role: strings.Join(RoleNames(i.Roles), ","), Hash: hash}
}

func errInvitationUsed() error {
	return problems.New("forbidden", "this invitation was already used; ask for a new one")
}

// addMember stores a member. Of several uses of an invitation one succeeds, because the store
// accepts an id once.
func (p *members) addMember(ctx context.Context, i invitation, who Principal, hash []byte) error {
	before, _, err := p.findMember(ctx, i.Name)
	if err != nil {
		return err
	}
	// a look-alike may have been invited before, and become a member since
	if other, err := p.lookAlike(ctx, i.Account, i.Name); err != nil {
		return err
	} else if other != "" {
		return problems.New("forbidden", "your name looks like that of the member %s; ask for an invitation with another one", other)
	}
	member := i.credential(hash)
	line, err := who.auditLine(i.Account, audit.APIKeyMade{Key: member.ID, Name: member.Name, Role: member.Role})
	if err != nil {
		return err
	}
	err = p.Credentials.AddCredential(ctx, member, line)
	if errors.Is(err, store.ErrExists) {
		return errInvitationUsed()
	}
	if err == nil {
		err = p.EndCredential(ctx, i.Account, TypeInvitation, i.Name, i.ID, who)
	}
	if err != nil || before == nil {
		return err
	}
	return p.RemoveMember(ctx, i.Account, before.ID, who)
}

// passwordSignIn signs in a member. Unknown names and wrong passwords have the same response.
func (p *Sessions) passwordSignIn(w http.ResponseWriter, r *http.Request) {
	if p.origins.Check(r) != nil {
		p.rejectSignIn(w, r, problems.New("forbidden", "cross-origin request"))
		return
	}
	name, password, back := r.PostFormValue("name"), r.PostFormValue("password"), localPath(r.PostFormValue("return"))
	source := p.hooks.Source(r)
	if limited := p.guesses.allow(source, name, p.now()); limited != nil {
		p.rejectSignIn(w, r, limited)
		return
	}
	who, err := p.checkPassword(r.Context(), source, name, password)
	if errors.Is(err, ErrUnauthenticated) {
		p.hooks.Rejected("unauthenticated")
		wrong := p.pageSignIn(r, name, back, "The name or the password is wrong.")
		wrong.Status = http.StatusUnauthorized
		p.writePage(w, wrong)
		return
	}
	if err != nil {
		p.rejectSignIn(w, r, err)
		return
	}
	p.guesses.succeeded(source)
	p.startSession(w, r, who, rand.Text(), back)
}

func (p *Sessions) checkPassword(ctx context.Context, source, name, password string) (Principal, error) {
	var hash []byte
	found, _, err := p.findMember(ctx, name)
	if err != nil {
		return Principal{}, err
	}
	if found != nil {
		hash = found.Hash
	}
	if len(password) > maxPassword {
		password = "" // no member has an empty one
	}
	done, err := p.guesses.acquire(ctx, source)
	if err != nil {
		return Principal{}, err
	}
	defer done()
	if !isPassword(hash, password) {
		return Principal{}, ErrUnauthenticated
	}
	who := invitation{Account: found.Account, Name: found.Name, Roles: rolesOf(found.Role)}.principal()
	who.Auth.At = p.now().Truncate(time.Second)
	return who, nil
}
