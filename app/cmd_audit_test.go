package app

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/executor"
)

// Later, an export, a public key and a proof are enough to verify the log, and changes are
// detected.
func TestAudit_VerifyProveAndExport(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	if _, err := e.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "memo-1", ResumeID: "1", Actor: "ann", Value: json.RawMessage(`"Ann"`)}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	audit := func(want int, args ...string) string {
		t.Helper()
		code, out, errs := call(t, append([]string{"audit"}, args...)...)
		if code != want {
			t.Fatalf("audit %s: %d, not %d\n%s%s", strings.Join(args, " "), code, want, out, errs)
		}
		return out
	}
	at := []string{"--store", url, "--account", "acme"}
	var sealed operatorcmd.CheckpointReport
	if err := json.Unmarshal([]byte(audit(0, append([]string{"sign", "--key", filepath.Join(dir, "audit.key"), "--json"}, at...)...)), &sealed); err != nil || sealed.Size != 4 {
		t.Fatalf("%+v, %v", sealed, err)
	}
	pub := filepath.Join(dir, "audit.pub")
	if err := os.WriteFile(pub, []byte(sealed.Public+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := audit(0, append([]string{"verify", "--pub", pub}, at...)...); !strings.Contains(out, "4") {
		t.Errorf("%s", out)
	}
	proof := filepath.Join(dir, "proof.json")
	if err := os.WriteFile(proof, []byte(audit(0, append([]string{"prove", "memo-1", "--pub", pub}, at...)...)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := audit(0, "check", proof, "--pub", pub); !strings.Contains(out, "request.decided") || !strings.Contains(out, `Decision: respond by "ann"`) {
		t.Errorf("%s", out)
	}
	written, err := os.ReadFile(proof)
	if err != nil {
		t.Fatal(err)
	}
	forged := filepath.Join(dir, "forged.json")
	if err := os.WriteFile(forged, bytes.Replace(written, []byte("request.decided"), []byte("request.claimed"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(written, []byte("request.decided")) {
		t.Fatalf("the proof does not name the event: %s", written)
	}
	audit(cli.ExitFindings, "check", forged, "--pub", pub)
	if _, _, errs := call(t, append([]string{"audit", "prove", "memo-1", "--pub", pub}, at...)...); !strings.Contains(errs, "The screen was not recorded.") {
		t.Errorf("%s", errs)
	}
	// nothing can be proved without a key
	for _, args := range [][]string{append([]string{"prove", "memo-1"}, at...), {"check", proof}} {
		if code, _, errs := call(t, append([]string{"audit"}, args...)...); code != cli.ExitUsage || !strings.Contains(errs, "--pub") {
			t.Errorf("audit %s: %d %s", args[0], code, errs)
		}
	}
	audit(3, append([]string{"prove", "nothing", "--pub", pub}, at...)...)
	if out := audit(0, append([]string{"reconcile"}, at...)...); !strings.Contains(out, "agree") {
		t.Errorf("%s", out)
	}

	exported := audit(0, append([]string{"export"}, at...)...)
	if strings.Contains(exported, "Ann") {
		t.Errorf("I7: the log contains an answer: %s", exported)
	}
	file := filepath.Join(dir, "log.jsonl")
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"unchanged": {exported, 0},
		"a byte":    {strings.Replace(exported, `"principal":"ann"`, `"principal":"eve"`, 1), cli.ExitFindings},
		"a line":    {strings.Join(strings.SplitAfter(exported, "\n")[1:], ""), cli.ExitFindings},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Log(name)
		audit(c.want, "verify", "--account", "acme", "--file", file, "--pub", pub)
	}
	again := audit(0, append([]string{"export", "--format", "cloudevents"}, at...)...)
	if n := bytes.Count([]byte(again), []byte("\n")); n != 5 || !strings.Contains(again, `"specversion":"1.0"`) || !strings.Contains(again, "audit.exported") {
		t.Errorf("%d lines: %s", n, again)
	}
}

// A mistyped account is an error: it used to look like a valid log, could be signed, and had a log
// after its export.
func TestAudit_AccountWithoutLog(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	key := filepath.Join(t.TempDir(), "audit.key")
	for range 2 { // none of them creates a log
		for _, args := range [][]string{{"verify"}, {"verify", "--json"}, {"sign", "--key", key}, {"export"}, {"reconcile"}, {"reconcile", "--json"}} {
			code, out, errs := call(t, append(append([]string{"audit"}, args...), "--store", url, "--account", "acmee")...)
			if code != cli.ExitNotFound || out != "" || !strings.Contains(errs, "acmee") {
				t.Errorf("audit %s: %d %s%s", strings.Join(args, " "), code, out, errs)
			}
		}
	}
	if _, err := os.Stat(key); !os.IsNotExist(err) {
		t.Errorf("a key was created for nothing: %v", err)
	}
	code, out, errs := call(t, "audit", "verify", "--json", "--store", url, "--account", "acme")
	if code != cli.ExitOK || !strings.Contains(out, `"account"`) || !strings.Contains(out, `"to"`) || strings.Contains(out, `"To"`) {
		t.Errorf("%d %s%s", code, out, errs)
	}
}

// Compared with a checkpoint without the signer's key, a valid log was reported as broken; and a
// missing key file was taken for a key.
func TestAudit_CheckpointWithoutPublicKeyIsNotTrusted(t *testing.T) {
	url, e := openServer(t)
	startMemo(t, e, "acme")
	dir := t.TempDir()
	at := []string{"--store", url, "--account", "acme"}
	code, signed, errs := call(t, append([]string{"audit", "sign", "--key", filepath.Join(dir, "audit.key")}, at...)...)
	if code != cli.ExitOK {
		t.Fatal(errs)
	}
	_, public, _ := strings.Cut(errs, "public key: ")
	kept := filepath.Join(dir, "acme.checkpoint")
	if err := os.WriteFile(kept, []byte(signed), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := append([]string{"audit", "verify", "--kept", kept}, at...)
	if code, out, errs := call(t, verify...); code != cli.ExitUsage || out != "" || !strings.Contains(errs, "--pub") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := call(t, append(verify, "--pub", filepath.Join(dir, "audit.pub"))...); code != cli.ExitUsage || out != "" || !strings.Contains(errs, "neither a public key nor a file") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	if code, out, errs := call(t, append(verify, "--pub", strings.TrimSpace(public))...); code != cli.ExitOK || !strings.Contains(out, "Valid.") {
		t.Errorf("%d %s %s", code, out, errs)
	}
}
