// Package people has the operations of people on themselves, and of admins on people: members,
// sessions and API keys, passkeys, linked accounts of channels, and notifications.
package people

import (
	"github.com/danielgtaylor/huma/v2"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// Handlers has the operations.
type Handlers struct {
	Executor *executor.Executor
	// Sessions are the sessions of people; nil if the server has no sign-in.
	Sessions *authn.Sessions
}

// Register adds the operations.
func (h *Handlers) Register(to huma.API) {
	h.registerMe(to)
	h.registerNotifications(to)
	h.registerMembers(to)
	h.registerPasskeys(to)
	h.registerCredentials(to)
	h.registerLinks(to)
}
