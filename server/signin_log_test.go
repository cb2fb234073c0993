package server_test

import (
	"strings"
	"testing"
)

// Nobody has to be known to be refused at these doors. One stranger could fill the disk of an operator with the log.
func TestLog_AnonymousClientsCannotFloodIt(t *testing.T) {
	p := openSignInSite(t, signInOptions{})
	const visits = 60
	for _, path := range []string{"/signin/callback?state=x", "/signin/callback?error=x", "/signin/dev?token=x"} {
		for range visits {
			p.browser().get(path)
		}
	}
	if lines := strings.Count(p.log.String(), "a sign-in was refused"); lines == 0 || lines > visits {
		t.Errorf("%d visits of strangers are %d lines", 3*visits, lines)
	}
	p.idp.Break(true)
	for range visits {
		p.browser().get("/signin")
	}
	if lines := strings.Count(p.log.String(), "a sign-in could not be finished"); lines == 0 || lines > visits/2 {
		t.Errorf("%d visits while the provider is down are %d lines", visits, lines)
	}
	if strings.Contains(p.log.String(), "too often") {
		t.Error("it is said of those who were not asked for")
	}
}
