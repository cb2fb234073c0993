package server

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
)

// idp is an identity provider, as far as we know it.
type idp struct {
	OIDC
	now             func() time.Time
	keysClient      *http.Client // for the provider's public keys
	discoveryClient *http.Client // for its endpoints

	mu          sync.Mutex
	metadata    *providerMetadata
	inFlight    *discovery // nil if nobody asks at the moment
	lastAttempt time.Time  // when somebody asked last
}

// discovery is a question to the provider where its endpoints are. Those who come meanwhile wait for it, too.
type discovery struct {
	done     chan struct{}
	metadata *providerMetadata
	err      error
}

// discoveryTimeout is how long a provider may take to say where its endpoints are.
const discoveryTimeout = 15 * time.Second

// What a provider says of itself counts for a while. It is asked again after metadataTTL, and before that if something does not work as it said, but not
// within metadataMinInterval: anybody can make a token that does not work.
const (
	metadataTTL         = 10 * time.Minute
	metadataMinInterval = time.Minute
)

// providerMetadata is what a provider says of itself.
type providerMetadata struct {
	fetchedAt time.Time
	jwksURL   string
	oauth     oauth2.Config
	keys      oidc.KeySet
	userinfo  string // "" if it has none
}

// rateLimitedClient makes a client that asks seldom.
func rateLimitedClient(client http.Client) *http.Client {
	client.Transport = &rateLimitedTransport{next: cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport), limit: rate.NewLimiter(1, 5)}
	return &client
}

// rateLimitedTransport does not let tokens, which anybody can make, become a flood of requests to the provider: with unknown keys, or while it is down.
type rateLimitedTransport struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// errProviderRateLimited is why the provider was not asked. That is the doing of strangers: what else is wrong is said by those who did ask.
var errProviderRateLimited = errors.New("server: the identity provider was asked for its keys, or its endpoints, too often")

// What is read of an answer, in bytes. The library reads all of it, and a refusal stands in the log.
const (
	maxProviderResponse = 1 << 20
	maxProviderError    = 1 << 10
)

// RoundTrip sends a request, unless there were too many.
func (s *rateLimitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.limit.Allow() {
		return nil, errProviderRateLimited
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

// requireTLSRedirect refuses to be led from the provider to where others could listen, or say something in its name.
func requireTLSRedirect(next func(*http.Request, []*http.Request) error) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, before []*http.Request) error {
		if _, err := safeURL("Issuer", r.URL.String()); err != nil {
			return errors.New("server: the identity provider leads to a place without TLS")
		}
		if next != nil {
			return next(r, before)
		}
		if len(before) >= maxRedirects {
			return errors.New("server: the identity provider leads in circles")
		}
		return nil
	}
}

// maxRedirects is how often a provider may lead elsewhere.
const maxRedirects = 10

// discover says where the provider's endpoints are. What it said before counts while it is asked again, and for as long as it does not answer.
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

// anew asks the provider again, because what it said does not work. Without another answer it is as it was.
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

// dueLocked reports whether the provider may be asked once more. It is called with the lock held.
func (p *idp) mayRefreshLocked() bool { return p.now().Sub(p.lastAttempt) >= metadataMinInterval }

// lookLocked asks the provider, unless somebody does. It is called with the lock held.
func (p *idp) startDiscoveryLocked(ctx context.Context) *discovery {
	if p.inFlight == nil {
		p.inFlight, p.lastAttempt = &discovery{done: make(chan struct{})}, p.now()
		go p.runDiscovery(context.WithoutCancel(ctx), p.inFlight) // whoever asked first may go: others wait for it
	}
	return p.inFlight
}

// wait is what the provider said.
func (l *discovery) wait(ctx context.Context) (*providerMetadata, error) {
	select {
	case <-l.done:
		return l.metadata, l.err
	case <-ctx.Done():
		return nil, providerUnavailable(ctx.Err())
	}
}

// quotaCount asks the provider, for all who wait.
func (p *idp) runDiscovery(ctx context.Context, l *discovery) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	l.metadata, l.err = p.fetchMetadata(ctx)
	p.mu.Lock()
	p.inFlight = nil
	if l.err == nil {
		if p.metadata != nil && p.metadata.jwksURL == l.metadata.jwksURL {
			l.metadata.keys = p.metadata.keys // it need not ask for them again, and may not be able to
		}
		p.metadata = l.metadata
	}
	p.mu.Unlock()
	close(l.done)
}

// ask asks the provider for its endpoints.
func (p *idp) fetchMetadata(ctx context.Context) (found *providerMetadata, err error) {
	defer recovery.Recover(&err) // it is called in the background, where a panic would end the program
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

// asymmetricAlgs are the signatures that only the provider can make. A client secret is no key to sign with, and "none" is no signature. All of them count,
// whatever the provider said that it uses when we asked: its next key may be of another kind.
var asymmetricAlgs = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// authStyle is how we prove to the provider who we are. It is not tried out: a code is good for one try.
func authStyle(secret string, methods []string) oauth2.AuthStyle {
	if secret == "" || len(methods) > 0 && !slices.Contains(methods, "client_secret_basic") {
		return oauth2.AuthStyleInParams
	}
	return oauth2.AuthStyleInHeader
}

// providerUnavailable says that the provider does not answer, or not as it should. Sessions go on.
func providerUnavailable(err error) error {
	p := overloaded("the identity provider does not answer; whoever is signed in stays signed in")
	p.retryAfter = 5 * time.Second
	return errors.Join(p, err)
}
