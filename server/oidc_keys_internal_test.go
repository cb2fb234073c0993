package server

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// slowKeySet is what a provider said at a time; whoever asks for it may be held up with it.
type slowKeySet struct {
	name string
	wait chan struct{}
	open chan struct{}
	once sync.Once
	err  error // of the one who is held up
}

func (s *slowKeySet) VerifySignature(context.Context, string) ([]byte, error) {
	if s.wait != nil {
		s.once.Do(func() { close(s.wait); <-s.open }) // the answer is here, and nobody looks at it yet
		if s.err != nil {
			return nil, s.err
		}
	}
	if s.name == "without the stolen key" {
		return nil, errors.New("failed to verify id token signature")
	}
	return []byte("{}"), nil
}

// A key that the provider has withdrawn, and of which we know that, counts again because somebody was slow with an older answer, or got none.
func TestPublicKeys_OlderSetDoesNotReplaceNewer(t *testing.T) {
	for name, err := range map[string]error{"an older answer": nil, "no answer": errors.New("fetching keys oidc: get keys failed")} {
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
			t.Error("the key is known to be withdrawn, and counts for who was slow")
		}
	}()
	<-slow.wait
	now = now.Add(metadataMinInterval) // the process, or this goroutine, stood still; the provider has withdrawn the key
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Fatal("the key is withdrawn, and counts")
	}
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Fatal("the key is known to be withdrawn, and counts")
	}
	close(slow.open)
	<-done
	if _, err := k.VerifySignature(t.Context(), "jwt"); err == nil {
		t.Errorf("the key that was known to be withdrawn counts again; it is asked again in %v", metadataTTL-now.Sub(k.fetchedAt))
	}
}
