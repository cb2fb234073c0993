package authn

import (
	"context"
	"net/http"
	"time"
)

const (
	// endedSessionRetention is how long an ended session is kept. While it is kept, its proof
	// cannot be used again; it outlasts the validity of every proof.
	endedSessionRetention = 2 * max(flowTTL, devLinkTTL)
	// cleanupInterval is how often a replica deletes ended sessions, cleanupBatch how many at once.
	// A full batch means that there are more.
	cleanupInterval = 10 * time.Minute
	cleanupBatch    = 1000
	// cleanupTimeout bounds how long a sign-in or sign-out waits for the cleanup.
	cleanupTimeout = 2 * time.Second
)

// deleteEndedSessions deletes ended sessions at intervals, during sign-in and sign-out. Several
// replicas may do it at once. A failure does not affect the sign-in.
func (p *Sessions) deleteEndedSessions(r *http.Request) {
	if !p.lastCleanup.Due(p.now(), cleanupInterval) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cleanupTimeout)
	defer cancel()
	forgotten, err := p.Credentials.PurgeCredentials(ctx, sessionIDKind+"_", p.now().Add(-endedSessionRetention), cleanupBatch)
	if err == nil && p.HasMembers() {
		_, err = p.Credentials.PurgeCredentials(ctx, invitationIDKind+"_", p.now().Add(-endedSessionRetention), cleanupBatch)
	}
	if err != nil {
		p.hooks.Failed("sessions")
		p.hooks.Log.Error("deleting ended sessions failed", "err", err)
	}
	if forgotten >= cleanupBatch {
		p.lastCleanup.Reset()
	}
}
