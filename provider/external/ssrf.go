package external

import (
	"crypto/tls"
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

// What a receiver gets of our time and memory.
const (
	connectTimeout = 3 * time.Second
	totalTimeout   = 15 * time.Second
	busyTimeout    = 3 * time.Second // if the account has a crowd on its way: those who take long would hold up all others
	busyThreshold  = 32
	maxResponse    = 64 << 10 // bytes of the head; the body is not read
	maxURL         = 2048     // bytes
)

// errForbidden says that a connection to this address is not to be made.
var errForbidden = errors.New("the address is not public")

// ssrfGuard decides whom we call. An agent that is under somebody else's control must not reach with our hands what it cannot reach itself.
type ssrfGuard struct {
	names    map[string]bool
	prefixes []netip.Prefix
	strict   *http.Client // looks at each address before it connects
	trusting *http.Client // for the hosts that are allowed by name
}

func newSSRFGuard(config Config) (*ssrfGuard, error) {
	g := &ssrfGuard{names: make(map[string]bool)}
	for _, entry := range config.Allow {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			g.prefixes = append(g.prefixes, prefix.Masked())
		} else if address, err := netip.ParseAddr(entry); err == nil {
			g.prefixes = append(g.prefixes, netip.PrefixFrom(address, address.BitLen()))
		} else if entry == "" || strings.ContainsAny(entry, ":/@?#* ") {
			return nil, fmt.Errorf("external: Config.Allow: %q is no host name, address or prefix", entry)
		} else {
			g.names[hostName(entry)] = true
		}
	}
	free := &net.Dialer{Timeout: connectTimeout, Resolver: config.Resolver}
	careful := *free
	careful.Control = g.control
	g.strict, g.trusting = client(&careful, config), client(free, config)
	return g, nil
}

// client makes an HTTP client that does one thing only. It keeps no connections: the address is looked at for each delivery.
func client(dialer *net.Dialer, config Config) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // one from the environment would connect in our place, to wherever it likes
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

// hostName is the one spelling of a host's name.
func hostName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// parse reads the URL of a callback, or says what is wrong with it. It never repeats it: it may hold a secret.
func (g *ssrfGuard) parse(text string) (*url.URL, error) {
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
	if g.trusts(target.Hostname()) {
		return target, nil
	}
	switch {
	case target.Scheme != "https":
		return nil, errors.New("only https is allowed")
	case target.Port() != "" && target.Port() != "443":
		return nil, errors.New("only port 443 is allowed")
	}
	return target, checkHost(target.Hostname())
}

// trusts reports whether a host, as it stands in a URL, is allowed by the config.
func (g *ssrfGuard) trusts(host string) bool {
	address, err := netip.ParseAddr(host)
	return g.names[hostName(host)] || err == nil && g.allows(address)
}

// checkHost refuses what can be refused without asking anybody for its address.
func checkHost(host string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		if !isPublic(address) {
			return errForbidden
		}
		return nil
	}
	name := hostName(host)
	last := name[strings.LastIndexByte(name, '.')+1:]
	if last == name || last == "" || last[0] >= '0' && last[0] <= '9' { // resolvers know more ways to write 127.0.0.1 than anybody remembers
		return errors.New("its host is not a public name")
	}
	return nil
}

// client returns what a URL that parse let through is called with.
func (g *ssrfGuard) client(target *url.URL) *http.Client {
	if g.names[hostName(target.Hostname())] {
		return g.trusting
	}
	return g.strict
}

// control is asked before each connection, with the address that it will go to: whatever a name meant before does not count.
func (g *ssrfGuard) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp4" && network != "tcp6" {
		return errForbidden
	}
	if g.allows(to.Addr()) || isPublic(to.Addr()) {
		return nil
	}
	return errForbidden
}

func (g *ssrfGuard) allows(address netip.Addr) bool {
	address = address.Unmap()
	return slices.ContainsFunc(g.prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

// global6 is all that has been given out of the IPv6 addresses. It leaves out loopback, unique local and link-local addresses, those that a
// NAT64 turns into IPv4, and whatever will be invented.
var global6 = netip.MustParsePrefix("2000::/3")

// reservedPrefixes are the addresses that look public and are not: those that only one network knows, and those that are tunnelled to another one.
var reservedPrefixes = prefixes(
	"0.0.0.0/8",       // this network
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

// isPublic reports whether everybody can reach the address. One with a zone, or an IPv4 address that is written as an IPv6 one, is in no prefix.
func isPublic(address netip.Addr) bool {
	switch {
	case !address.IsGlobalUnicast() || address.IsPrivate():
		return false
	case address.Is6() && !global6.Contains(address):
		return false
	}
	return !slices.ContainsFunc(reservedPrefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}
