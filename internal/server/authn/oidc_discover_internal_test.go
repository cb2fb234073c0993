package authn

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// discoveries is a provider that serves only its metadata, and counts the requests.
func discoveries(t *testing.T, before func(w http.ResponseWriter) bool) (*idp, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if before(w) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"issuer":%[1]q,"authorization_endpoint":"%[2]s/auth","token_endpoint":"%[2]s/token","jwks_uri":"%[2]s/keys"}`, s.URL, s.URL)
		}
	}))
	t.Cleanup(s.Close)
	return newIDP(OIDC{Issuer: s.URL, ClientID: "fermata"}, time.Now), &asked
}

// Any client can send something that looks like a token. A slow or failing provider must not get a
// request for each.
func TestDiscover_ConcurrentCallersShareOneRequest(t *testing.T) {
	t.Run("concurrent callers get the same result", func(t *testing.T) {
		var come, all sync.WaitGroup
		come.Add(50)
		p, asked := discoveries(t, func(http.ResponseWriter) bool {
			come.Wait()
			return true
		})
		for range 50 {
			all.Go(func() {
				come.Done()
				if _, err := p.discover(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if asked.Load() != 1 {
			t.Errorf("it was requested %d times", asked.Load())
		}
	})
	t.Run("and a failing one is not queried all the time", func(t *testing.T) {
		p, asked := discoveries(t, func(w http.ResponseWriter) bool {
			w.WriteHeader(http.StatusBadGateway)
			return false
		})
		for range 100 {
			if _, err := p.discover(t.Context()); err == nil {
				t.Fatal("it was found")
			}
		}
		if asked.Load() > 10 {
			t.Errorf("it was requested %d times", asked.Load())
		}
	})
}
