package authn

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/time/rate"

	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/server/problems"
)

// idp is an identity provider with its cached metadata.
type idp struct {
	OIDC
	now             func() time.Time
	keysClient      *http.Client // fetches public keys
	discoveryClient *http.Client // fetches metadata

	mu          sync.Mutex
	metadata    *providerMetadata
	inFlight    *discovery // nil if no discovery is running
	lastAttempt time.Time  // when discovery was last attempted
}

// discovery is a running metadata request. Concurrent callers wait for the same one.
type discovery struct {
	done     chan struct{}
	metadata *providerMetadata
	err      error
}

// discoveryTimeout is how long a provider may take to return its metadata.
const discoveryTimeout = 15 * time.Second

// Provider metadata is cached. It is fetched again after metadataTTL, or earlier if something
// fails, but not within metadataMinInterval: any client can send a token that fails.
const (
	metadataTTL         = 10 * time.Minute
	metadataMinInterval = time.Minute
)

// providerMetadata is the provider's discovery document and keys.
type providerMetadata struct {
	fetchedAt time.Time
	jwksURL   string
	oauth     oauth2.Config
	keys      oidc.KeySet
	userinfo  string // "" if it has none
}

// rateLimitedClient returns a client that limits its request rate.
func rateLimitedClient(client http.Client) *http.Client {
	client.Transport = &rateLimitedTransport{next: cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), limit: rate.NewLimiter(1, 5)}
	return &client
}

// rateLimitedTransport keeps invalid tokens, which any client can send, from causing a flood of
// requests to the provider: with unknown keys, or while the provider is down.
type rateLimitedTransport struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// ErrProviderRateLimited is returned if a request to the provider was suppressed. Anonymous clients
// can cause it; actual provider errors are reported by the requests that were sent.
var ErrProviderRateLimited = errors.New("authn: rate limit for requests to the identity provider reached")

// Maximum response sizes, in bytes. The library reads the whole body, and error responses are
// logged.
const (
	maxProviderResponse = 1 << 20
	maxProviderError    = 1 << 10
)

// RoundTrip sends a request, unless the rate limit is reached.
func (s *rateLimitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, ErrProviderRateLimited
	}
	response, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	most := int64(maxProviderResponse)
	if response.StatusCode != http.StatusOK {
		most = maxProviderError
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(response.Body, most), response.Body}
	return response, nil
}

// requireTLSRedirect rejects redirects of the provider to URLs without TLS.
func requireTLSRedirect(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, before []*http.Request) error {
		if _, err := safeURL("Issuer", r.URL.String()); err != nil {
			return errors.New("authn: the identity provider redirects to a URL without TLS")
		}
		if next != nil {
			return next(r, before)
		}
		if len(before) >= maxRedirects {
			return errors.New("authn: the identity provider redirects too often")
		}
		return nil
	}
}

// maxRedirects is how many redirects of the provider are followed.
const maxRedirects = 10

// discover returns the provider's metadata. Cached metadata is used while it is refreshed, and
// while the provider does not answer.
func (p *idp) discover(ctx context.Context) (*providerMetadata, error) {
	p.mu.Lock()
	known := p.metadata
	var l *discovery
	if known == nil || p.now().Sub(known.fetchedAt) >= metadataTTL && p.mayRefreshLocked() {
		l = p.startDiscoveryLocked(ctx)
	}
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	return l.wait(ctx)
}

// refresh fetches the metadata again after a failure. If that fails, the old metadata stays.
func (p *idp) refresh(ctx context.Context, was *providerMetadata) *providerMetadata {
	p.mu.Lock()
	if p.metadata != was || p.inFlight == nil && !p.mayRefreshLocked() {
		defer p.mu.Unlock()
		return p.metadata
	}
	l := p.startDiscoveryLocked(ctx)
	p.mu.Unlock()
	if found, err := l.wait(ctx); err == nil {
		return found
	}
	return was
}

// mayRefreshLocked reports whether the provider may be queried again. The lock must be held.
func (p *idp) mayRefreshLocked() bool { return p.now().Sub(p.lastAttempt) >= metadataMinInterval }

// startDiscoveryLocked starts a discovery, unless one is running. The lock must be held.
func (p *idp) startDiscoveryLocked(ctx context.Context) *discovery {
	if p.inFlight == nil {
		p.inFlight, p.lastAttempt = &discovery{done: make(chan struct{})}, p.now()
		// the first caller may disconnect while others wait
		go p.runDiscovery(context.WithoutCancel(ctx), p.inFlight)
	}
	return p.inFlight
}

// wait returns the result of the discovery.
func (l *discovery) wait(ctx context.Context) (*providerMetadata, error) {
	select {
	case <-l.done:
		return l.metadata, l.err
	case <-ctx.Done():
		return nil, providerUnavailable(ctx.Err())
	}
}

// runDiscovery fetches the metadata for all waiting callers.
func (p *idp) runDiscovery(ctx context.Context, l *discovery) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	l.metadata, l.err = p.fetchMetadata(ctx)
	p.mu.Lock()
	p.inFlight = nil
	if l.err == nil {
		if p.metadata != nil && p.metadata.jwksURL == l.metadata.jwksURL {
			// keep the loaded keys: fetching them again is unnecessary and may fail
			l.metadata.keys = p.metadata.keys
		}
		p.metadata = l.metadata
	}
	p.mu.Unlock()
	close(l.done)
}

// fetchMetadata requests the discovery document.
func (p *idp) fetchMetadata(ctx context.Context) (found *providerMetadata, err error) {
	defer recovery.Recover(&err) // it runs in the background, where a panic would end the process
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, p.discoveryClient), p.Issuer)
	if err != nil {
		return nil, providerUnavailable(err)
	}
	var says struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return nil, providerUnavailable(err)
	}
	endpoint := provider.Endpoint()
	endpoints := map[string]string{"authorization_endpoint": endpoint.AuthURL, "token_endpoint": endpoint.TokenURL, "jwks_uri": says.Keys}
	if provider.UserInfoEndpoint() != "" {
		endpoints["userinfo_endpoint"] = provider.UserInfoEndpoint()
	}
	for what, at := range endpoints {
		if _, err := safeURL(what, at); err != nil {
			return nil, providerUnavailable(err)
		}
	}
	endpoint.AuthStyle = authStyle(p.ClientSecret, says.Methods)
	keysCtx := oidc.ClientContext(context.WithoutCancel(ctx), p.keysClient)
	return &providerMetadata{
		fetchedAt: p.now(), jwksURL: says.Keys,
		oauth: oauth2.Config{ClientID: p.ClientID, ClientSecret: p.ClientSecret, Endpoint: endpoint, RedirectURL: p.RedirectURL, Scopes: p.Scopes},
		keys:  newPublicKeys(p.now, func() oidc.KeySet { return oidc.NewRemoteKeySet(keysCtx, says.Keys) }), userinfo: endpoints["userinfo_endpoint"],
	}, nil
}

// asymmetricAlgs are the accepted signature algorithms. Signatures with the client secret and
// "none" are rejected. All asymmetric algorithms are accepted, whatever the metadata lists: the
// provider's next key may use another one.
var asymmetricAlgs = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// authStyle returns how the client authenticates at the token endpoint. It is not probed, because a
// code can be used only once.
func authStyle(secret string, methods []string) oauth2.AuthStyle {
	if secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// providerUnavailable reports that the provider does not answer correctly. Existing sessions stay
// valid.
func providerUnavailable(err error) error {
	p := problems.Overloaded("the identity provider is unavailable; existing sessions stay valid")
	p.RetryAfter = 5 * time.Second
	return errors.Join(p, err)
}
