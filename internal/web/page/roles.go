package page

import (
	"slices"
)

// isAdmin reports whether the signed-in person is an admin.
func (v *Visit) isAdmin() bool { return slices.Contains(v.Me.Roles, "admin") }

// IsAuditor reports whether the person may read the audit log.
func (v *Visit) IsAuditor() bool { return v.isAdmin() || slices.Contains(v.Me.Roles, "auditor") }

// MayChat reports whether the person may hold conversations.
func (v *Visit) MayChat() bool { return v.isAdmin() || slices.Contains(v.Me.Roles, "user") }

// OnlyChats reports whether the person sees no other page.
func (v *Visit) OnlyChats() bool {
	return !slices.ContainsFunc(v.Me.Roles, func(role string) bool { return role != "user" })
}

// MayStart reports whether the role of the person includes starting and cancelling runs.
func (v *Visit) MayStart() bool {
	for _, role := range v.Me.Roles {
		if role == "agent" || role == "admin" {
			return true
		}
	}
	return false
}
