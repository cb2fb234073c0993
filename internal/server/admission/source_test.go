package admission_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/fermata-go/fermata/internal/server/admission"
)

func TestSource_IsTheClientOfATrustedProxy(t *testing.T) {
	proxies := append(admission.Loopback(), netip.MustParsePrefix("10.0.0.0/24"))
	for _, c := range []struct {
		peer      string
		forwarded []string
		want      string
	}{
		{"203.0.113.7:1", nil, "203.0.113.7"},
		{"203.0.113.7:1", []string{"198.51.100.1"}, "203.0.113.7"}, // any client can send the header
		{"10.0.1.1:1", []string{"198.51.100.1"}, "10.0.1.1"},       // a private address is not enough
		{"10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"10.0.0.1:1", []string{"192.0.2.9, 198.51.100.1", "10.0.0.2, 127.0.0.1"}, "198.51.100.1"}, // a chain of trusted proxies
		{"127.0.0.1:1", []string{"192.0.2.9, 192.0.2.8", "192.0.2.7,  198.51.100.1"}, "198.51.100.1"},
		{"[::1]:1", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		{"[::ffff:10.0.0.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"[2001:db8:1:2::9]:1", nil, "2001:db8:1:2::/64"},
		{"[fe80::1%eth0]:1", nil, "fe80::/64"},
		{"[::ffff:203.0.113.7]:1", nil, "203.0.113.7"},
		{"10.0.0.1:1", []string{"unknown"}, "10.0.0.1"},
		{"10.0.0.1:1", []string{"10.0.0.9"}, "10.0.0.9"}, // a client that is in the network of the proxies
		{"@", nil, ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		if got := proxies.Source(r); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}
