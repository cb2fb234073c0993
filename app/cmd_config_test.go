package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
)

// A file used to be reported as valid although no server could start with it: each value was valid,
// but the files it names were not.
func TestConfigCheck_ReportsStartupErrors(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("bad.yaml", []byte("default: maybe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"desk: {policyFile: none.yaml}":                          "desk.policyFile: open none.yaml: no such file",
		"desk: {policyFile: bad.yaml}":                           "bad.yaml:1",
		"desk: {routesFile: none.yaml}":                          "desk.routesFile",
		"desk: {routesFile: none.yaml, policyFile: bad.yaml}":    "no such file or directory\n  desk.policyFile: policy: load failed",
		"desk: {groupsFile: none.yaml}":                          "desk.groupsFile",
		"desk: {timeZone: Mars}":                                 `desk.timeZone: unknown time zone "Mars"`,
		"webhooks: {allow: [10.0.0.0/99]}":                       "webhooks.allow",
		"webhooks: {secrets: [whsec_c2hvcnQ=]}":                  "webhooks.secrets: secret 1 is not whsec_ and the base64 of 24 to 64 bytes",
		"audit: {sign: {key: sign.key, dir: gone}}":              "audit.sign.dir: stat gone: no such file",
		"audit: {sign: {key: sign.key, dir: bad.yaml}}":          "audit.sign.dir: bad.yaml is not a directory",
		"key: {file: bad.yaml}":                                  "key.file: seal: a key must have 64 hexadecimal digits",
		"audit: {sign: {key: bad.yaml}}":                         "audit.sign.key: audit: invalid key file",
		"audit: {sign: {key: gone/sign.key}}":                    "audit.sign.key: no such directory gone",
		"store: {url: 'postgres://db/x'}":                        "key.file",
		"listen: {tls: {certFile: none.pem, keyFile: none.key}}": "listen.tls",
		"store: {url: 'postgres://db/x'}\nkey: {file: none.key}": "key.file: the key file none.key is missing",
		"store: {url: 'postgres://db/x'}\nkey: {file: bad.yaml}": "key.file: seal: a key must have 64 hexadecimal digits",
		"auth: {oidc: {issuer: 'http://idp', clientID: a, redirectURL: 'https://f/signin/callback', account: a, roles: {a: admin}}}": "auth.oidc: authn: OIDC.Issuer must use https",
	} {
		file := filepath.Join(dir, "fermata.yaml")
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if exit, out, errOut := call(t, "config", "check", file); exit != cli.ExitUsage || !strings.Contains(errOut, want) || out != "" {
			t.Errorf("%s: %d %s%s", text, exit, out, errOut)
		}
		// A server reports the same. It used to exit with 1, as if a retry could help, and partly
		// only after it had created a store.
		if exit, out, errOut := call(t, "serve", "--config", file); exit != cli.ExitUsage || !strings.Contains(errOut, want) || out != "" {
			t.Errorf("serve with %s: %d %s%s", text, exit, out, errOut)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) != 2 {
		t.Errorf("a check creates nothing: %v", left)
	}
}
