package authn

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/sanitize"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// claims are the claims of a token.
type claims map[string]any

// claimsOf returns the claims of a verified token.
func claimsOf(token *oidc.IDToken) (c claims, err error) {
	if err := token.Claims(&c); err != nil {
		return nil, verifyError(err)
	}
	return c, nil
}

// lookup finds a claim by its name, or else by its path. A null claim counts as missing.
func (c claims) lookup(name string) any {
	if value := c[name]; value != nil {
		return value
	}
	var value any = map[string]any(c)
	for part := range strings.SplitSeq(name, ".") {
		members, _ := value.(map[string]any)
		value = members[part]
	}
	return value
}

// text returns a string claim; "" if it is not a string.
func (c claims) text(name string) string {
	text, _ := c.lookup(name).(string)
	return text
}

// list returns a claim that is a list of strings, or a single string.
func (c claims) list(name string) (list []string) {
	switch value := c.lookup(name).(type) {
	case string:
		return []string{value}
	case []any:
		for _, item := range value {
			if text, ok := item.(string); ok {
				list = append(list, text)
			}
		}
	}
	return list
}

// Maximum sizes of identity claims, in bytes. The standard limits a subject to 255; the session
// cookie must hold all of them.
const (
	maxPrincipal   = 255
	maxAccount     = 255
	maxDisplayName = 128
)

// principal converts verified claims to a principal.
func (p *idp) principal(c claims, by Method) (Principal, error) {
	who := Principal{Account: p.Account, ID: c.text(p.PrincipalClaim), Name: displayName(c), Auth: Auth{Method: by, ACR: c.text("acr")}}
	if p.AccountClaim != "" {
		who.Account = c.text(p.AccountClaim)
	}
	switch {
	case isDisplayable(who.ID, maxPrincipal) && !isPrincipalName(who.ID):
		return Principal{}, problems.New("forbidden", "your identity at the identity provider (claim %s) has characters that imitate others: %+q", p.PrincipalClaim, who.ID)
	case !isPrincipalName(who.ID):
		return Principal{}, problems.New("forbidden", "the identity provider did not send your identity (claim %s)", p.PrincipalClaim)
	case p.PrincipalClaim == "email" && c["email_verified"] != true && c["email_verified"] != "true":
		return Principal{}, problems.New("forbidden", "the identity provider has not verified your e-mail address")
	case !isDisplayable(who.Account, maxAccount):
		return Principal{}, problems.New("forbidden", "the identity provider did not send your account (claim %s)", p.AccountClaim)
	}
	var err error
	if who.Roles, err = p.roles(c); err != nil {
		return Principal{}, err
	}
	for _, m := range c.list("amr") {
		if isVisibleToken(m, maxAMR) && len(who.Auth.AMR) < maxAMRs {
			who.Auth.AMR = append(who.Auth.AMR, m)
		}
	}
	if !isVisibleToken(who.Auth.ACR, maxACR) {
		who.Auth.ACR = ""
	}
	who.Auth.Strength = requirement.AuthToken
	if by == MethodOIDC {
		who.Auth.Strength = who.Auth.strengthOf(p.ACR)
	}
	if at, ok := c["auth_time"].(float64); ok && at > 0 && at < 1<<40 {
		who.Auth.At = time.Unix(int64(at), 0).UTC()
	}
	return who, nil
}

// roles returns the roles of all groups of a person. A person without any role is rejected.
func (p *idp) roles(c claims) (roles []Role, err error) {
	groups := c.list(p.GroupsClaim)
	if len(groups) == 0 {
		return nil, problems.New("forbidden", "the identity provider did not send your groups (claim %s)", p.GroupsClaim)
	}
	for _, role := range Roles {
		if slices.ContainsFunc(groups, func(group string) bool { return slices.Contains(p.Roles[group], role) }) {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return nil, problems.New("forbidden", "none of your groups has a role on this server; ask its operator")
	}
	return roles, nil
}

// displayName returns the name to show for a person.
func displayName(c claims) string {
	for _, claim := range []string{"name", "preferred_username", "email"} {
		if name := c.text(claim); isDisplayable(name, maxDisplayName) {
			return name
		}
	}
	return ""
}

// isDisplayable reports whether a text can be shown in a record: it has no invisible characters and
// none that change the direction of text.
func isDisplayable(text string, most int) bool {
	return text != "" && len(text) <= most && utf8.ValidString(text) && !strings.ContainsFunc(text, sanitize.IsHidden)
}

// isPrincipalName reports whether a text can identify a person. It has no characters that imitate
// others: two people whose names look the same would be one person in records.
func isPrincipalName(text string) bool {
	return isDisplayable(text, maxPrincipal) && safehtml.Flags(text) == 0
}
