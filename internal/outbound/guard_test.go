package outbound

import "testing"

// Public hosts are accepted: the check is not tested by calling them, but it must accept something.
func TestControl_LetsPublicAddressesThrough(t *testing.T) {
	g, err := NewClient(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{"8.8.8.8:443", "[2606:4700::1111]:443", "172.15.0.1:443", "172.32.0.1:443", "100.128.0.1:443"} {
		if err := g.control("tcp"+map[bool]string{true: "6", false: "4"}[address[0] == '['], address, nil); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for network, address := range map[string]string{"udp4": "8.8.8.8:443", "unix": "/run/docker.sock", "tcp4": "8.8.8.8"} {
		if err := g.control(network, address, nil); err == nil {
			t.Errorf("%s %s is accepted", network, address)
		}
	}
}
