package server

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// publicKeys are the provider's keys, as it said them last. The key set of the library asks again only for a key that it does not know: one that was stolen, and that the
// provider has withdrawn, would count for as long as nobody brings another one.
type publicKeys struct {
	now   func() time.Time
	fetch func() oidc.KeySet // makes a set that asks the provider when it is first used

	mu          sync.Mutex
	current     oidc.KeySet
	fetchedAt   time.Time // when it was asked for those that are known
	lastAttempt time.Time // when it was asked last, whether or not it answered
}

func newPublicKeys(now func() time.Time, fetch func() oidc.KeySet) *publicKeys {
	return &publicKeys{now: now, fetch: fetch, current: fetch(), fetchedAt: now()}
}

// VerifySignature goes by keys that are not older than metadataTTL. Those that are older count while somebody asks for others, and for as long as the provider does not answer.
func (k *publicKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	known, fresh, at := k.currentAndFresh()
	if fresh == nil {
		return known.VerifySignature(ctx, jwt)
	}
	payload, err := fresh.VerifySignature(context.WithoutCancel(ctx), jwt) // or whoever hangs up would keep the old ones
	if isFetchError(err) {
		return k.newest().VerifySignature(ctx, jwt) // which may have come meanwhile
	}
	if newest := k.store(fresh, at); newest != fresh { // claimsFor else was faster, and has asked later
		return newest.VerifySignature(ctx, jwt)
	}
	return payload, err
}

// sets are the keys that are known, and those to ask for at this time; nil if it is not time yet, or somebody else does.
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

// take takes keys that were asked for at a time, unless newer ones are known: a key that was withdrawn meanwhile would count again. It returns the newest.
func (k *publicKeys) store(fresh oidc.KeySet, at time.Time) oidc.KeySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !at.Before(k.fetchedAt) {
		k.current, k.fetchedAt = fresh, at
	}
	return k.current
}

// isFetchError reports whether keys could not be had. The library has no type for it.
func isFetchError(err error) bool {
	return err != nil && strings.HasPrefix(err.Error(), "fetching keys")
}
