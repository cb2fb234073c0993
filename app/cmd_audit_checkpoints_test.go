package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/demo"
	"github.com/fermata-go/fermata/internal/sample"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
	"github.com/fermata-go/fermata/internal/store"
)

// auditorOf creates a key for an auditor.
func auditorOf(t *testing.T, credentials store.Credentials) string {
	t.Helper()
	key, kept, err := authn.NewKey(demo.Account, "aud", authn.RoleAuditor, time.Time{})
	if err == nil {
		err = credentials.AddCredential(t.Context(), kept, store.Writes{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// The server signs automatically; an auditor fetches and keeps the checkpoints; and another store
// does not pass.
func TestServe_SignsCheckpointsThatAuditorsFetch(t *testing.T) {
	dir := t.TempDir()
	outside, fetched, key := filepath.Join(dir, "outside"), filepath.Join(dir, "fetched"), filepath.Join(dir, "sign.key")
	graphs, err := sample.Graphs()
	if err == nil {
		err = os.Mkdir(outside, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	serveAs := func(name string) (*serve.Server, string) {
		url := "sqlite:" + filepath.Join(dir, name)
		c := settingsOf(t, "FERMATA_STORE_URL="+url, "FERMATA_AUDIT_SIGN_KEY="+key, "FERMATA_AUDIT_SIGN_DIR="+outside, "FERMATA_AUDIT_SIGN_EVERY=1s", "FERMATA_AUDIT_CHECK_EVERY=1s")
		r, _ := startOf(t, c, graphs...)
		if err := demo.CreateRuns(t.Context(), r.Executor); err != nil {
			t.Fatal(err)
		}
		return r, url
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for !is() {
			if err := cli.Sleep(t.Context(), 20*time.Millisecond); err != nil {
				t.Fatal(what, err)
			}
		}
	}
	r, url := serveAs("honest.db")
	at := []string{"--url", r.URL, "--token", auditorOf(t, r.Store)}
	until("signed checkpoint", func() bool {
		code, out, _ := call(t, append([]string{"audit", "checkpoints"}, at...)...)
		return code == cli.ExitOK && strings.Contains(out, "fermata-go.github.io/audit/")
	})
	if code, _, errs := call(t, append([]string{"audit", "checkpoints", "--dir", fetched}, at...)...); code != cli.ExitOK {
		t.Fatal(code, errs)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	for _, kept := range []string{outside, fetched} {
		if code, out, errs := call(t, "audit", "verify", "--account", demo.Account, "--store", url, "--kept", kept); code != cli.ExitOK || !strings.Contains(out, "Signed up to record") {
			t.Errorf("%s: %d %s%s", kept, code, out, errs)
		}
	}
	if code, _, _ := call(t, "audit", "verify", "--account", "nobody", "--store", url, "--kept", fetched); code == cli.ExitOK {
		t.Error("an account without kept checkpoints passes")
	}
	// Another store instead of the first, with the same key: the kept checkpoints reveal it.
	forged, url := serveAs("forged.db")
	until("detection", func() bool {
		seen, err := forged.Overview(t.Context())
		return err == nil && seen.LastSigning.Invalid == 1 && seen.LastCheck.Invalid == 1
	})
	for _, kept := range []string{outside, fetched} {
		if code, out, _ := call(t, "audit", "verify", "--account", demo.Account, "--store", url, "--kept", kept); code != cli.ExitFindings {
			t.Errorf("%s: %d %s", kept, code, out)
		}
	}
}

// Browser sessions are not listed among API keys.
func TestKeysList_OmitsSessions(t *testing.T) {
	c := settingsOf(t)
	r, _ := startOf(t, c)
	key, kept, err := authn.NewKey("acme", "bot", authn.RoleAgent, time.Time{})
	if err != nil {
		t.Fatal(key, err)
	}
	for _, add := range []store.Credential{kept, {ID: "session_0123", Account: "acme", Name: "ann", Role: "approver", Hash: []byte("x")}} {
		if err := r.Store.AddCredential(t.Context(), add, store.Writes{}); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := call(t, "keys", "list", "acme", "--store", c.Store.URL.Reveal()); code != cli.ExitOK || !strings.Contains(out, "bot") || strings.Contains(out, "session_") {
		t.Errorf("%d %s%s", code, out, errs)
	}
}
