package authn

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
)

// I7: some providers put rejected values into the error code, which may be a sign-in code or a
// token.
func TestI7_ProviderErrorResponseIsNotLogged(t *testing.T) {
	secret := "eyJhbGciOiJFUzI1NiJ9." + strings.Repeat("c2VjcmV0", 20)
	for _, said := range []string{secret, "invalid_request: code " + secret[:20], secret[:21] + "\nmore"} {
		if err := exchangeError(&oauth2.RetrieveError{ErrorCode: said}); strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%v", err)
		}
	}
	if err := exchangeError(&oauth2.RetrieveError{ErrorCode: "invalid_client"}); !strings.Contains(err.Error(), "invalid_client") {
		t.Errorf("the error is not explained: %v", err)
	}
}

// roundTripFunc is a transport without a network.
type roundTripFunc func(*http.Request) *http.Response

func (n roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return n(r), nil }

func responseWith(status int, header http.Header, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: io.NopCloser(body)}
}

// An attacker on a connection without TLS could replace the endpoints and the keys.
func TestProvider_RedirectWithoutTLSIsRejected(t *testing.T) {
	var reached []string
	p := newIDP(OIDC{Issuer: "https://idp.example", ClientID: "fermata", Client: &http.Client{Transport: roundTripFunc(func(r *http.Request) *http.Response {
		reached = append(reached, r.URL.String())
		return responseWith(http.StatusFound, http.Header{"Location": {"http://idp.example/elsewhere"}}, strings.NewReader(""))
	})}}, time.Now)
	_, err := p.fetchMetadata(t.Context())
	if err == nil || len(reached) != 1 {
		t.Errorf("it went to %q: %v", reached, err)
	}
	for _, client := range []*http.Client{p.Client, p.keysClient, p.discoveryClient} {
		reached = nil
		response, err := client.Get("https://idp.example/x")
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || len(reached) != 1 {
			t.Errorf("it went to %q: %v", reached, err)
		}
	}
}

// endlessReader never ends.
type endlessReader struct{ read int64 }

func (e *endlessReader) Read(p []byte) (int, error) {
	e.read += int64(len(p))
	return copy(p, strings.Repeat(" ", len(p))), nil
}

// An oversize provider response uses neither memory nor log space.
func TestProvider_ResponseSizeIsLimited(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusBadGateway} {
		body := new(endlessReader)
		there := roundTripFunc(func(*http.Request) *http.Response {
			// so that the test ends
			return responseWith(status, http.Header{"Content-Type": {"application/json"}}, io.LimitReader(body, 16*maxProviderResponse))
		})
		_, err := newIDP(OIDC{Issuer: "https://idp.example", ClientID: "fermata", Client: &http.Client{Transport: there}}, time.Now).fetchMetadata(t.Context())
		if err == nil || body.read > 2*maxProviderResponse || len(err.Error()) > 2*maxProviderError {
			t.Errorf("%d: %d bytes were read, and %d are in the error", status, body.read, len(err.Error()))
		}
	}
}

// Providers move, and redirect.
func TestProvider_TLSRedirectIsFollowedAndLoopsEnd(t *testing.T) {
	hops := 0
	there := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hops++; r.URL.Path == "/once" {
			return
		}
		http.Redirect(w, r, strings.TrimSuffix(r.URL.Path, "/again")+"/once", http.StatusFound)
	}))
	defer there.Close()
	client := newIDP(OIDC{Client: there.Client()}, time.Now).Client
	response, err := client.Get(there.URL + "/again")
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response, err = client.Get(there.URL + "/round"); err == nil {
		_ = response.Body.Close()
		t.Errorf("it was redirected %d times", hops)
	}
}
