package authn

import (
	"net/url"
	"strings"
	"testing"
)

// The return path stays on this server, also as browsers parse it: they treat a backslash as a
// slash and ignore tabs and line ends.
func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/", "/a?b#c", "//b", `/\b`, "/\t/b", "http://b", "///b", "/%2f/b", "javascript:1", "/.//b"} {
		f.Add(seed)
	}
	home := &url.URL{Scheme: "https", Host: "here.example"}
	f.Fuzz(func(t *testing.T, path string) {
		got := localPath(path)
		u, err := home.Parse(got)
		if err != nil || u.Host != home.Host || u.Scheme != home.Scheme {
			t.Fatalf("%q leads to %q", path, u)
		}
		if got[0] != '/' || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\t\r\n\x00") || len(got) > maxReturn {
			t.Fatalf("%q becomes %q", path, got)
		}
	})
}

func TestVia_ValuesCannotForgeOtherFields(t *testing.T) {
	long := strings.Repeat("x", 200)
	for want, auth := range map[string]Auth{
		"http":                            {},
		"http/key":                        {Method: MethodAPIKey},
		"http/key id=k1":                  {Method: MethodAPIKey, Credential: "k1"},
		"http/oidc amr=pwd,otp acr=urn:a": {Method: MethodOIDC, AMR: []string{"pwd", "otp"}, ACR: "urn:a"},
		"http/oidc amr=pwd":               {Method: MethodOIDC, AMR: []string{"pwd", "a,b", "a b", "", long, "\x00"}, ACR: "a b"},
		"http/oidc amr=1,2,3,4,5,6,7,8":   {Method: MethodOIDC, AMR: strings.Split("123456789", ""), ACR: long},
	} {
		if got := auth.Via(); got != want {
			t.Errorf("%+v is %q, and not %q", auth, got, want)
		}
	}
}
