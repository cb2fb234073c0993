package external_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/provider/external"
)

// inside are addresses that an untrusted caller must not reach through Fermata.
var inside = map[string]string{
	"loopback":              "127.0.0.1",
	"loopback, elsewhere":   "127.8.8.8",
	"loopback, IPv6":        "::1",
	"unspecified":           "0.0.0.0",
	"unspecified, IPv6":     "::",
	"this network":          "0.1.2.3",
	"private A":             "10.0.0.1",
	"private B":             "172.16.0.1",
	"private C":             "192.168.1.1",
	"link-local, metadata":  "169.254.169.254",
	"link-local, IPv6":      "fe80::1",
	"carrier-grade NAT":     "100.64.0.1",
	"unique local":          "fd00::1",
	"metadata, IPv6":        "fd00:ec2::254",
	"NAT64":                 "64:ff9b::a00:1",
	"NAT64, local":          "64:ff9b:1::a00:1",
	"v4-mapped":             "::ffff:10.0.0.1",
	"v4-mapped, public":     "::ffff:8.8.8.8",
	"v4-compatible":         "::127.0.0.1",
	"6to4":                  "2002:a00:1::",
	"6to4, relays":          "192.88.99.1",
	"Teredo":                "2001:0:a00:1::",
	"multicast":             "224.0.0.1",
	"multicast, IPv6":       "ff02::1",
	"broadcast":             "255.255.255.255",
	"reserved":              "240.0.0.1",
	"benchmarks":            "198.18.0.1",
	"protocol assignments":  "192.0.0.8",
	"documentation":         "192.0.2.1",
	"documentation, second": "198.51.100.1",
	"documentation, third":  "203.0.113.1",
	"documentation, IPv6":   "2001:db8::1",
	"documentation, new":    "3fff::1",
	"site-local":            "fec0::1",
	"never given out":       "4000::1",
}

func TestGuard_AnAddressThatIsNotPublicIsRefusedAtTheStart(t *testing.T) {
	hosts := map[string]string{
		"decimal": "2130706433", "octal": "0177.0.0.1", "hexadecimal": "0x7f.0.0.1", "short": "127.1", "a name without a dot": "localhost",
		"a zone": "[fe80::1%25lo]", "a last label of digits": "receiver.1",
	}
	for name, address := range inside {
		hosts[name] = address
		if strings.Contains(address, ":") {
			hosts[name] = "[" + address + "]"
		}
	}
	for name, host := range hosts {
		p := newProvider(t, func(c *external.Config) { c.Allow = nil })
		result, err := begin(t, p, asking("https://"+host+"/")).execute()
		if failed, ok := result.Outcome.(provider.Failed); err != nil || !ok || !strings.HasPrefix(failed.Message, "external: callback.url: ") {
			t.Errorf("%s: %#v, %v", name, result, err)
		}
	}
	for _, host := range []string{"example.com", "EXAMPLE.com.", "8.8.8.8", "[2606:4700::1111]", "receiver.x1", "example.com:443"} {
		p := newProvider(t, func(c *external.Config) { c.Allow = nil })
		begin(t, p, asking("https://"+host+"/")).asks()
	}
}

// The resolved address of the connection counts, not an earlier resolution.
func TestGuard_ANameThatLeadsInsideIsRefusedWhenTheConnectionIsMade(t *testing.T) {
	for name, address := range inside {
		if address == "::ffff:8.8.8.8" {
			continue // as a DNS answer it is 8.8.8.8, which is public
		}
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, func(c *external.Config) {
				c.Allow = nil
				c.Resolver = names(t, "receiver.example", address)
			})
			o := begin(t, p, asking("https://receiver.example/"))
			_, err := o.execute(says(o.asks(), `1`))
			failed, ok := errors.AsType[*external.DeliveryError](err)
			if !ok || failed.Problem != "the address is not public" || !errors.Is(err, provider.ErrPark) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestAllow_AHostByName(t *testing.T) {
	r := receive(t, nil)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(r.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, func(c *external.Config) {
		c.Allow = []string{"Receiver.internal"}
		c.Resolver = names(t, "receiver.internal", "127.0.0.1")
	})
	o := begin(t, p, asking("http://receiver.internal:"+port+"/"))
	if _, err := o.execute(says(o.asks(), `1`)); err != nil {
		t.Error(err)
	}
	if taken, _ := r.got(); len(taken) != 1 {
		t.Errorf("%d taken", len(taken))
	}
	for _, other := range []string{"http://other.internal/", "http://receiver.internal.example.com/", "http://127.0.0.1/"} {
		result, err := begin(t, p, asking(other)).execute()
		if _, ok := result.Outcome.(provider.Failed); err != nil || !ok {
			t.Errorf("%s: %#v, %v", other, result, err)
		}
	}
}

func TestAllow_APrefix(t *testing.T) {
	p := newProvider(t, func(c *external.Config) { c.Allow = []string{"10.1.0.0/16", "fd00:1::/32"} })
	for _, url := range []string{"http://10.1.2.3:8080/", "https://[fd00:1::5]/", "https://10.1.0.1/"} {
		begin(t, p, asking(url)).asks()
	}
	for _, url := range []string{"http://10.2.0.1/", "https://10.2.0.1/", "http://example.com/", "https://[fd00:2::1]/"} {
		result, err := begin(t, p, asking(url)).execute()
		if _, ok := result.Outcome.(provider.Failed); err != nil || !ok {
			t.Errorf("%s: %#v, %v", url, result, err)
		}
	}
}

// A name that resolves into an allowed prefix is called, but with TLS and at port 443: only the
// address was allowed.
func TestAllow_ANameInAnAllowedPrefix(t *testing.T) {
	p := newProvider(t, func(c *external.Config) {
		c.Allow = []string{"127.0.0.0/8"}
		c.Resolver = names(t, "receiver.example", "127.0.0.1")
	})
	o := begin(t, p, asking("https://receiver.example/"))
	_, err := o.execute(says(o.asks(), `1`)) // nothing needs to listen there
	if failed, ok := errors.AsType[*external.DeliveryError](err); !ok || failed.Problem == "the address is not public" {
		t.Errorf("%v", err)
	}
	result, err := begin(t, p, asking("http://receiver.example/")).execute()
	if _, ok := result.Outcome.(provider.Failed); err != nil || !ok {
		t.Errorf("%#v, %v", result, err)
	}
}

// The account's secret signs only messages to the account's agents.
func TestI8_SecretsAreThoseOfTheAccount(t *testing.T) {
	asked := make(map[string]bool)
	p := newProvider(t, func(c *external.Config) {
		c.Secrets = func(_ context.Context, account string) ([]string, error) {
			asked[account] = true
			return []string{secret}, nil
		}
	})
	r := receive(t, nil)
	o := begin(t, p, asking(r.URL))
	if _, err := o.execute(says(o.asks(), `1`)); err != nil || len(asked) != 1 || !asked["acme"] {
		t.Errorf("%v, %v", asked, err)
	}
}
