// Package outbound makes HTTP calls to URLs that others have chosen: callbacks of agents, webhooks,
// chat services, models and tools of assistants. It connects only to public addresses, unless the
// configuration makes exceptions.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	connectTimeout = 3 * time.Second
	maxResponse    = 64 << 10 // bytes of the header; the body is not read
	maxURL         = 2048     // bytes
)

// Config configures a [Client].
type Config struct {
	// Allow are hosts that may be called although they are not public, by any scheme and port:
	// host names, addresses or prefixes.
	Allow []string
	// Setting is the name of the setting of Allow, for errors; "" if there is none.
	Setting string
	// Roots are the certificate authorities. Defaults to those of the system.
	Roots *x509.CertPool
	// Resolver resolves host names. Defaults to net.DefaultResolver.
	Resolver *net.Resolver
}

// errForbidden reports that connecting to an address is forbidden.
var errForbidden = errors.New("the address is not public")

// Client decides which hosts may be called, and calls them. A compromised agent must not use
// Fermata to reach hosts that it cannot reach itself (SSRF).
type Client struct {
	setting  string
	names    map[string]bool
	prefixes []netip.Prefix
	strict   *http.Client // checks each address before it connects
	trusting *http.Client // for the hosts that are allowed by name
}

// NewClient returns a client. It returns an error for an invalid entry of Config.Allow.
func NewClient(config Config) (*Client, error) {
	c := &Client{setting: config.Setting, names: make(map[string]bool)}
	for _, entry := range config.Allow {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			c.prefixes = append(c.prefixes, prefix.Masked())
		} else if address, err := netip.ParseAddr(entry); err == nil {
			c.prefixes = append(c.prefixes, netip.PrefixFrom(address, address.BitLen()))
		} else if entry == "" || strings.ContainsAny(entry, ":/@?#* ") {
			return nil, fmt.Errorf("%q is not a host name, address or prefix", entry)
		} else {
			c.names[hostName(entry)] = true
		}
	}
	free := &net.Dialer{Timeout: connectTimeout, Resolver: config.Resolver}
	careful := *free
	careful.Control = c.control
	c.strict, c.trusting = httpClient(&careful, config), httpClient(free, config)
	return c, nil
}

// httpClient creates an HTTP client that keeps no connections, so that the address is checked for
// each call.
func httpClient(dialer *net.Dialer, config Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// a proxy from the environment would bypass the address check
			Proxy:                  nil,
			DialContext:            dialer.DialContext,
			TLSClientConfig:        &tls.Config{RootCAs: config.Roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    connectTimeout,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxResponse,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hostName returns the canonical spelling of a host name.
func hostName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// ParseURL parses a URL that may be called, or returns what is wrong with it. The error never
// contains the URL, which may hold a secret.
func (c *Client) ParseURL(text string) (*url.URL, error) {
	if len(text) > maxURL {
		return nil, fmt.Errorf("it has %d bytes; %d are allowed", len(text), maxURL)
	}
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Opaque != "" || target.Hostname() == "":
		return nil, errors.New("it is not a URL with a host")
	case target.User != nil:
		return nil, errors.New("it has a user or a password")
	case target.Fragment != "":
		return nil, errors.New("it has a fragment")
	case target.Scheme != "https" && target.Scheme != "http":
		return nil, errors.New("only https is allowed")
	}
	if c.trusts(target.Hostname()) {
		return target, nil
	}
	switch {
	case target.Scheme != "https":
		err = errors.New("only https is allowed")
	case target.Port() != "" && target.Port() != "443":
		err = errors.New("only port 443 is allowed")
	default:
		err = checkHost(target.Hostname())
	}
	if err != nil && c.setting != "" {
		err = fmt.Errorf("%w; %s lists the hosts for which this does not apply", err, c.setting)
	}
	return target, err
}

// trusts reports whether the config allows a host, as spelled in a URL.
func (c *Client) trusts(host string) bool {
	address, err := netip.ParseAddr(host)
	return c.names[hostName(host)] || err == nil && c.allows(address)
}

// checkHost rejects hosts that can be rejected without resolving them.
func checkHost(host string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		if !isPublic(address) {
			return errForbidden
		}
		return nil
	}
	name := hostName(host)
	last := name[strings.LastIndexByte(name, '.')+1:]
	// resolvers accept many spellings of 127.0.0.1
	if last == name || last == "" || last[0] >= '0' && last[0] <= '9' {
		return errors.New("its host is not a public name")
	}
	return nil
}

// HTTP returns the HTTP client for a URL that ParseURL accepted. It checks the address of each
// connection, follows no redirects and has no time limit.
func (c *Client) HTTP(target *url.URL) *http.Client { return c.client(target) }

// client returns the HTTP client for a URL that ParseURL accepted.
func (c *Client) client(target *url.URL) *http.Client {
	if c.names[hostName(target.Hostname())] {
		return c.trusting
	}
	return c.strict
}

// control is called before each connection, with the resolved address: earlier resolutions do not
// count.
func (c *Client) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return errForbidden
	}
	if c.allows(to.Addr()) || isPublic(to.Addr()) {
		return nil
	}
	return errForbidden
}

func (c *Client) allows(address netip.Addr) bool {
	address = address.Unmap()
	return slices.ContainsFunc(c.prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// global6 contains all allocated global IPv6 addresses. It excludes loopback, unique local and
// link-local addresses, NAT64 addresses, and future allocations.
var global6 = netip.MustParsePrefix("2000::/3")

// reservedPrefixes are addresses that look public but are not: local to one network, or tunnelled
// to another.
var reservedPrefixes = prefixes(
	"0.0.0.0/8",       // local network
	"100.64.0.0/10",   // carrier-grade NAT
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"240.0.0.0/4",     // reserved, and broadcast
	"2001::/23",       // protocol assignments, Teredo
	"2001:db8::/32",   // documentation
	"2002::/16",       // 6to4
	"3fff::/20",       // documentation
)

func prefixes(list ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(list))
	for i, text := range list {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

// isPublic reports whether an address is publicly reachable. An address with a zone, or an IPv4
// address written as IPv6, is in no prefix.
func isPublic(address netip.Addr) bool {
	switch {
	case !address.IsGlobalUnicast() || address.IsPrivate():
		return false
	case address.Is6() && !global6.Contains(address):
		return false
	}
	return !slices.ContainsFunc(reservedPrefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}
