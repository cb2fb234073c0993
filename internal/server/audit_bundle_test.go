package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// The evidence of a request has what the person saw and the arguments, and is checked with the
// public key alone. After the run is gone only the records are left.
func TestAudit_BundleHasWhatWasSeenAndIsCheckedOffline(t *testing.T) {
	key := audit.NewKey()
	s, kept := openSigning(t, key)
	s.call("agent@acme", "POST", "/api/v1/requests", `{"stateKey":"a","kind":"approval","data":{"action":"drop","args":{"table":"users"}},"receipt":true}`)
	id := s.openRequests("acme")[0].ID
	shown := s.activity("approver@acme", id).Shown
	const text = "drop\ntable users"
	view := fmt.Sprintf(`{"shown":%q,"rendering":{"hash":%q,"channel":"terminal","template":"inbox@2","visible":"all","text":%q}}`, shown, desk.RenderingHash(text), text)
	if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/view", view); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	decided := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision",
		fmt.Sprintf(`{"resumeId":"1","answer":{"verb":"approve"},"shown":%q,"rendering":%q}`, shown, desk.RenderingHash(text)))
	digest, _ := decided.field("output").(map[string]any)["approvedDigest"].(string)
	if got := s.call("agent@acme", "POST", "/api/v1/runs/a/receipt", `{"digest":"`+digest+`","outcome":"done","result":{"rows":3}}`); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	signed, err := audit.CreateCheckpoint(t.Context(), audit.NewStoreLog(kept), "acme", key)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := key.Trust(signed.Origin)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/audit/requests/" + id + "/bundle"
	got := s.call("auditor@acme", "GET", path, "")
	if got.status != 200 || !strings.HasPrefix(got.header.Get("Content-Disposition"), "attachment;") {
		t.Fatalf("%d %s", got.status, got.header)
	}
	report, err := evidence.Check([]byte(got.body), trust, io.Discard)
	if err != nil || report.Signed != report.Records || report.Texts != 1 || report.Values != 2 || report.OwnKey {
		t.Errorf("%+v: %v", report, err)
	}
	for _, want := range []string{text, `&#34;table&#34;: &#34;users&#34;`, "receipt done", "The executed action is the approved one.", "every line was on the screen"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page does not say %q", want)
		}
	}

	var trails []audit.Trail
	if err := json.Unmarshal([]byte(s.call("auditor@acme", "GET", "/api/v1/audit/runs/a/trail", "").body), &trails); err != nil {
		t.Fatal(err)
	}
	if len(trails) != 1 || !trails[0].AsApproved() || len(trails[0].Executed) != 1 || trails[0].Executed[0].Receipt != audit.ReceiptDone || trails[0].Executed[0].By != "agent" {
		t.Errorf("%+v", trails)
	}

	if _, err := s.e.EraseAccount(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	got = s.call("auditor@acme", "GET", path, "")
	report, err = evidence.Check([]byte(got.body), trust, io.Discard)
	if err != nil || report.Records == 0 || report.Texts != 0 || report.Values != 0 || strings.Contains(got.body, "users") || !strings.Contains(got.body, "were deleted with the run") {
		t.Errorf("after erasure: %+v: %v", report, err)
	}
}

// Who may not see a request gets its records only, and of a run with sensitive values nobody gets
// the salt of its digests.
func TestAudit_BundleRespectsVisibility(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	id := s.openRequests("acme")[0].ID
	shown := s.activity("fay@acme", id).Shown
	const text = "pay\namount 5"
	view := fmt.Sprintf(`{"shown":%q,"rendering":{"hash":%q,"channel":"terminal","template":"inbox@2","text":%q}}`, shown, desk.RenderingHash(text), text)
	if got := s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/view", view); got.status != 200 {
		t.Fatalf("%+v", got)
	}
	for token, want := range map[string]evidence.Bundle{
		"auditor@acme": {Withheld: evidence.WithheldHidden},
		"admin@acme":   {Withheld: evidence.WithheldSensitive, Texts: []string{text}},
	} {
		got := s.call(token, "GET", "/api/v1/audit/requests/"+id+"/bundle", "")
		b, err := evidence.Read([]byte(got.body))
		if err != nil || len(b.Records) == 0 || b.Withheld != want.Withheld || fmt.Sprint(b.Texts) != fmt.Sprint(want.Texts) || len(b.Values) != 0 || b.Salt != "" {
			t.Errorf("%s: %+v: %v", token, b, err)
		}
		if strings.Contains(got.body, card) {
			t.Errorf("%s: the card is in the file", token)
		}
		if _, err := evidence.Check([]byte(got.body), audit.Trust{}, io.Discard); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
}
