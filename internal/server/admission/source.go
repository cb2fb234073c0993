package admission

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// TrustedProxies are the networks of proxies that report their clients in X-Forwarded-For.
type TrustedProxies []netip.Prefix

// Loopback are the addresses of this machine.
func Loopback() TrustedProxies {
	return TrustedProxies{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// Source returns the source of a request, for limits: the client's address, or its /64 network with
// IPv6, where a client has many addresses. If a trusted proxy sent the request, the client is the
// last address in X-Forwarded-For that is not a trusted proxy: clients can write the ones before.
// Source returns "" if the connection has no address.
func (t TrustedProxies) Source(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	from := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && t.contains(from); i-- {
		client, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		from = client.Unmap()
	}
	from = from.WithZone("")
	if from.Is6() {
		if network, err := from.Prefix(64); err == nil {
			return network.String()
		}
	}
	return from.String()
}

func (t TrustedProxies) contains(a netip.Addr) bool {
	return slices.ContainsFunc(t, func(p netip.Prefix) bool { return p.Contains(a.WithZone("")) })
}
