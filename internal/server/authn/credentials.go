package authn

import (
	"context"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/store"
)

// CredentialType is a type of credential. Members are listed by [Sessions.Members].
type CredentialType string

// The types of credentials.
const (
	TypeKey        CredentialType = "key"
	TypeSession    CredentialType = "session"
	TypeInvitation CredentialType = "invitation"
)

// typeOf returns the type of a credential; "" for a member.
func typeOf(id string) CredentialType {
	switch {
	case isMember(id):
		return ""
	case IsSession(id):
		return TypeSession
	case strings.HasPrefix(id, invitationIDKind+"_"):
		return TypeInvitation
	}
	return TypeKey
}

// ValidCredentials lists the credentials of an account that are valid now, newest first. person
// restricts the list to one person if it is not empty.
func (p *core) ValidCredentials(ctx context.Context, account string, of CredentialType, person string) ([]store.Credential, error) {
	all, err := p.Credentials.Credentials(ctx, account)
	if err != nil {
		return nil, err
	}
	now := p.now()
	return slices.DeleteFunc(all, func(c store.Credential) bool {
		return typeOf(c.ID) != of || person != "" && c.Name != person || !c.Revoked.IsZero() || !c.Expires.IsZero() && !now.Before(c.Expires)
	}), nil
}

// EndCredential revokes a credential that ValidCredentials lists. Otherwise it returns
// store.ErrNotFound.
func (p *core) EndCredential(ctx context.Context, account string, of CredentialType, person, id string, by Principal) error {
	valid, err := p.ValidCredentials(ctx, account, of, person)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(valid, func(c store.Credential) bool { return c.ID == id }) {
		return store.ErrNotFound
	}
	var did audit.Body = audit.APIKeyRevoked{Key: id}
	if of == TypeSession {
		did = audit.SessionEnded{Session: id}
	}
	line, err := by.auditLine(account, did)
	if err != nil {
		return err
	}
	return p.Credentials.RevokeCredential(ctx, account, id, line)
}

// RolesOf returns the roles of a credential.
func RolesOf(c store.Credential) []Role { return rolesOf(c.Role) }
