package authn

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// slowKeySet is the key set of a provider at a time; fetching it may block.
type slowKeySet struct {
	name string
	wait chan struct{}
	open chan struct{}
	once sync.Once
	err  error // of the blocked one
}

func (s *slowKeySet) VerifySignature(context.Context, string) ([]byte, error) {
	if s.wait != nil {
		// the response has arrived, and is not processed yet
		s.once.Do(func() { close(s.wait); <-s.open })
		if s.err != nil {
			return nil, s.err
		}
	}
	if s.name == "without the stolen key" {
		return nil, errors.New("failed to verify id token signature")
	}
	return []byte("{}"), nil
}

// A withdrawn key must not become valid again because of a late older response or an error.
func TestPublicKeys_OlderSetDoesNotReplaceNewer(t *testing.T) {
	for name, err := range map[string]error{"an older response": nil, "no answer": errors.New("fetching keys oidc: get keys failed")} {
		t.Run(name, func(t *testing.T) { slowWithKeys(t, err) })
	}
}

func slowWithKeys(t *testing.T, err error) {
	now := time.Unix(1e9, 0)
	sets := []*slowKeySet{{name: "first"}, {name: "with the stolen key", wait: make(chan struct{}), open: make(chan struct{}), err: err}, {name: "without the stolen key"}}
	slow := sets[1]
	k := newPublicKeys(func() time.Time { return now }, func() oidc.KeySet {
		s := sets[0]
		sets = sets[1:]
		return s
	})
	now = now.Add(metadataTTL)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
			t.Error("the key is known to be withdrawn, and is valid for a slow caller")
		}
	}()
	<-slow.wait
	// the process, or this goroutine, was paused; the provider has withdrawn the key
	now = now.Add(metadataMinInterval)
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Fatal("the key is withdrawn, and is valid")
	}
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Fatal("the key is known to be withdrawn, and is valid")
	}
	close(slow.open)
	<-done
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Errorf("the withdrawn key is valid again; the next fetch is in %v", metadataTTL-now.Sub(k.fetchedAt))
	}
}
