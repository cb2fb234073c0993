package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
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

// A caller who may not see a request gets its records only. Of a run with sensitive values the
// salt of its digests is never given out.
func TestAudit_BundleRespectsVisibility(t *testing.T) {
	s := openPaySite(t, memory.NewStore(nil))
	s.chat("agent@acme", startPay)
	id := s.openRequests("acme")[0].ID
	shown := s.activity("fay@acme", id).Shown
	const text = "pay\namount 5"
	view := fmt.Sprintf(`{"shown":%q,"rendering":{"hash":%q,"channel":"terminal","template":"inbox@2","text":%q}}`, shown, desk.RenderingHash(text), text)
	const before = "pay\ncard " + card // as if it was shown before the card became sensitive
	earlier := fmt.Sprintf(`{"shown":%q,"rendering":{"hash":%q,"channel":"terminal","template":"inbox@2","text":%q}}`, shown, desk.RenderingHash(before), before)
	for _, body := range []string{view, earlier} {
		if got := s.call("fay@acme", "POST", "/api/v1/requests/"+id+"/view", body); got.status != 200 {
			t.Fatalf("%+v", got)
		}
	}
	for token, want := range map[string]evidence.Bundle{
		"auditor@acme": {Withheld: evidence.WithheldHidden},
		"admin@acme":   {Withheld: evidence.WithheldSensitive, Texts: []string{text}, TextsWithheld: 1},
	} {
		got := s.call(token, "GET", "/api/v1/audit/requests/"+id+"/bundle", "")
		b, err := evidence.Read([]byte(got.body))
		if err != nil || len(b.Records) == 0 || b.Withheld != want.Withheld || fmt.Sprint(b.Texts) != fmt.Sprint(want.Texts) || b.TextsWithheld != want.TextsWithheld || len(b.Values) != 0 || b.Salt != "" {
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

// The salt of a run opens the digests of values that are written later, so there are no values
// before the run has ended. The salt of the texts opens those of one request only.
func TestAudit_BundleHasNoValuesWhileTheRunGoesOn(t *testing.T) {
	s := openWith(t, nil, nil, single(t, "steps", func(ctx context.Context, in int) (int, error) {
		for _, step := range []string{"first", "second"} {
			if _, err := fermata.Approve(ctx, fermata.Action[int]{Name: step, Args: in}); err != nil {
				return in, err
			}
		}
		return in, nil
	}))
	s.chat("agent@acme", `{"graphId":"inproc:steps","stateKey":"s-1","input":7}`)
	bundleOf := func(id string) evidence.Bundle {
		t.Helper()
		b, err := evidence.Read([]byte(s.call("admin@acme", "GET", "/api/v1/audit/requests/"+id+"/bundle", "").body))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var ids []string
	var bundles []evidence.Bundle
	for n := range 2 {
		id := s.openRequests("acme")[0].ID
		shown, text := s.activity("approver@acme", id).Shown, fmt.Sprintf("step %d", n)
		view := fmt.Sprintf(`{"shown":%q,"rendering":{"hash":%q,"channel":"terminal","template":"inbox@2","text":%q}}`, shown, desk.RenderingHash(text), text)
		if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/view", view); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		b := bundleOf(id)
		if b.Withheld != evidence.WithheldRunning || len(b.Values) != 0 || b.Salt != "" || len(b.Texts) != 1 {
			t.Errorf("request %d: %+v", n, b)
		}
		ids, bundles = append(ids, id), append(bundles, b)
		if got := s.call("approver@acme", "POST", "/api/v1/requests/"+id+"/decision", fmt.Sprintf(`{"resumeId":"r%d","answer":{"verb":"approve"},"shown":%q}`, n, shown)); got.status != 200 {
			t.Fatalf("%+v", got)
		}
		if n == 0 { // the run waits again, so its salt would open the second action
			if b := bundleOf(id); b.Withheld != evidence.WithheldRunning || b.Salt != "" {
				t.Errorf("a decided request of a waiting run: %+v", b)
			}
		}
	}
	if bundles[0].ScreenSalt == bundles[1].ScreenSalt {
		t.Error("two requests have the same salt of texts")
	}
	for _, id := range ids {
		if b := bundleOf(id); b.Withheld != "" || len(b.Values) != 1 || b.Values[0].Text != "7" {
			t.Errorf("after the end: %+v", b)
		}
	}
}
