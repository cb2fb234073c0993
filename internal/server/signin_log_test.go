package server_test

import (
	"strings"
	"testing"
)

// Rejections need no authentication. An anonymous client must not be able to fill the disk with log
// lines.
func TestLog_AnonymousClientsCannotFloodIt(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	const visits = 60
	for _, path := range []string{"/signin/callback?state=x", "/signin/callback?error=x", "/s/x"} {
		for range visits {
			p.browser().get(path)
		}
	}
	if lines := strings.Count(p.log.String(), "sign-in rejected"); lines == 0 || lines > visits {
		t.Errorf("%d anonymous requests are %d lines", 3*visits, lines)
	}
	p.idp.Break(true)
	for range visits {
		p.browser().get("/signin")
	}
	if lines := strings.Count(p.log.String(), "sign-in failed"); lines == 0 || lines > visits/2 {
		t.Errorf("%d requests while the provider is down are %d lines", visits, lines)
	}
	if strings.Contains(p.log.String(), "too often") {
		t.Error("rate-limited requests are logged")
	}
}
