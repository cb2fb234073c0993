package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// Clients disconnect all the time, also during authentication. Each used to be an error in the log
// and in an alerting metric.
func TestLog_ClientDisconnectIsNotAnAuthenticationError(t *testing.T) {
	s := open(t, func(c *server.Config) {
		c.Auth = authn.AuthenticatorFunc(func(r *http.Request) (authn.Principal, error) { return authn.Principal{}, r.Context().Err() })
	})
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, "GET", "/api/v1/me", nil))
	metrics := httptest.NewRecorder()
	s.server.Metrics().ServeHTTP(metrics, httptest.NewRequest("GET", "/metrics", nil))
	if strings.Contains(s.log.String(), "authentication failed") || !strings.Contains(metrics.Body.String(), `fermata_errors_total{where="authentication"} 0`) {
		t.Errorf("%s", s.log.String())
	}
}
