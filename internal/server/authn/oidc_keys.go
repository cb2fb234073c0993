package authn

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// publicKeys caches the provider's public keys. The library's key set fetches keys only for an
// unknown key id, so a stolen key that the provider has withdrawn would stay valid indefinitely.
// publicKeys also refreshes them after metadataTTL.
type publicKeys struct {
	now   func() time.Time
	fetch func() oidc.KeySet // returns a key set that queries the provider on first use

	mu          sync.Mutex
	current     oidc.KeySet
	fetchedAt   time.Time // when the current keys were fetched
	lastAttempt time.Time // when a fetch was last attempted
}

func newPublicKeys(now func() time.Time, fetch func() oidc.KeySet) *publicKeys {
	return &publicKeys{now: now, fetch: fetch, current: fetch(), fetchedAt: now()}
}

// VerifySignature verifies with keys that are not older than metadataTTL. Older keys are used while
// they are refreshed, and while the provider does not answer.
func (k *publicKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	known, fresh, at := k.currentAndFresh()
	if fresh == nil {
		return known.VerifySignature(ctx, jwt)
	}
	// a client that disconnects must not abort the refresh
	payload, err := fresh.VerifySignature(context.WithoutCancel(ctx), jwt)
	if isFetchError(err) {
		return k.newest().VerifySignature(ctx, jwt) // another caller may have replaced them
	}
	if newest := k.store(fresh, at); newest != fresh { // another caller has stored newer keys
		return newest.VerifySignature(ctx, jwt)
	}
	return payload, err
}

// currentAndFresh returns the current keys and, if they are due for a refresh, a fresh set; nil if
// a refresh is not due or is running.
func (k *publicKeys) currentAndFresh() (known, fresh oidc.KeySet, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	if now.Sub(k.fetchedAt) < metadataTTL || now.Sub(k.lastAttempt) < metadataMinInterval {
		return k.current, nil, now
	}
	k.lastAttempt = now
	return k.current, k.fetch(), now
}

func (k *publicKeys) newest() oidc.KeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current
}

// store stores keys that were fetched at a time, unless newer ones are stored: a key withdrawn
// since then would become valid again. It returns the newest keys.
func (k *publicKeys) store(fresh oidc.KeySet, at time.Time) oidc.KeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !at.Before(k.fetchedAt) {
		k.current, k.fetchedAt = fresh, at
	}
	return k.current
}

// isFetchError reports whether keys could not be fetched. The library has no error type for it.
func isFetchError(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "fetching keys")
}
