package evidence_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/ident"
)

// noon is the start time of these tests.
var noon = time.Date(2026, 11, 14, 12, 0, 0, 123456789, time.UTC)

func trustIn(t *testing.T, key *audit.Key, origin string) audit.Trust {
	t.Helper()
	trust, err := key.Trust(origin)
	if err != nil {
		t.Fatal(err)
	}
	return trust
}

// refundBundle returns a bundle of a log in which bob approves a refund after an edit, and its key.
func refundBundle(t *testing.T) (file []byte, trust audit.Trust) {
	t.Helper()
	salt := audit.Salt{1, 2, 3}
	of := func(text string) audit.Digest {
		return audit.Payload{ID: "run_1", Salt: salt, Data: []byte(text)}.Digest()
	}
	actionOf := func(args string) audit.Digest {
		digest, err := fermata.ApprovalRequest{Action: "refund"}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: []byte(args)})
		if err != nil {
			t.Fatal(err)
		}
		return of(digest)
	}
	const asked, edited, text = `{"order":17,"amount":"49.00"}`, `{"order":17,"amount":"12.00"}`, "refund\norder 17\namount 49.00 \u202e</pre>"
	screen := audit.Payload{ID: "run_1", Salt: salt.Derive(audit.ScreenPurpose), Data: []byte(ident.TextHash(text))}.Digest()
	refund := audit.Action{Name: "refund", Args: actionOf(asked)}
	shown := audit.Shown{Surface: "web", Screen: screen, Template: "web-approval@2", Visible: audit.VisibleAll, At: audit.TimestampOf(noon)}
	var lines [][]byte
	m, key := new(audit.Memory), audit.NewKey()
	for i, body := range []audit.Body{
		audit.RequestAsked{Kind: "approval", Action: refund, Need: []audit.GroupCount{{Group: "group:support", Count: 1}}},
		audit.RequestRendered{Shown: shown},
		audit.RequestDecided{Verb: audit.VerbApprove, Settles: true, Action: refund, Edited: actionOf(edited), Approved: actionOf(edited), Shown: shown, Reason: of("only the shipping")},
		audit.EffectBegun{Number: 1, Action: audit.Action{Name: "refund", Args: actionOf(edited)}, Key: "k"},
		audit.EffectEnded{Number: 1, State: audit.EffectStateSucceeded},
	} {
		r := audit.NewRecord(noon.Add(time.Duration(i)*time.Second), audit.Actor{Principal: "alice", Kind: audit.ActorPerson, Via: "http", Auth: "sso"}, audit.Location{}, body)
		r.Location = audit.Location{Run: "run_1", StateKey: "refund-17", Graph: "inproc:refund", Interrupt: "int_1", Request: "int_1"}
		if _, err := m.Append(t.Context(), "acme", r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := audit.CreateCheckpoint(t.Context(), m, "acme", key); err != nil {
		t.Fatal(err)
	}
	for raw, err := range m.Records(t.Context(), "acme", 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, raw)
	}
	head, err := m.Head(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	public, err := key.Verifier(head.Origin())
	if err != nil {
		t.Fatal(err)
	}
	b, err := evidence.New(t.Context(), m, "acme", "int_1", lines, public, audit.TimestampOf(noon))
	if err != nil {
		t.Fatal(err)
	}
	b.AddText(text, salt.Derive(audit.ScreenPurpose))
	b.AddText("refund\norder 18", salt.Derive(audit.ScreenPurpose)) // no record has it
	b.AddValue(evidence.ValueArguments, asked, salt)
	b.AddValue(evidence.ValueEdited, edited, salt)
	b.AddValue(evidence.ValueReason, "only the shipping", salt)
	b.AddValue(evidence.ValueReason, "everything", salt) // no record has it
	var page bytes.Buffer
	if err := b.Write(&page); err != nil {
		t.Fatal(err)
	}
	return page.Bytes(), trustIn(t, key, head.Origin())
}

func TestBundle_ShowsWhatWasSeenAndDecided(t *testing.T) {
	file, trust := refundBundle(t)
	var said strings.Builder
	report, err := evidence.Check(file, trust, &said)
	if err != nil || report.Records != 5 || report.Signed != 5 || report.Texts != 1 || report.Values != 3 || report.OwnKey {
		t.Fatalf("%+v: %v", report, err)
	}
	if !strings.Contains(said.String(), "All 5 records are in the signed log.") || strings.Contains(said.String(), "--pub") {
		t.Errorf("it says %s", said.String())
	}
	for _, want := range []string{
		"The executed action is the approved one.", "approve by alice", "only the shipping", "every line was on the screen", "amount 49.00 [U&#43;202E]&lt;/pre&gt;", `&#34;amount&#34;: &#34;12.00&#34;`,
	} {
		if !strings.Contains(string(file), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	own, err := evidence.Check(file, audit.Trust{}, &said)
	if err != nil || !own.OwnKey || !strings.Contains(said.String(), "Only the key in the file was trusted.") {
		t.Errorf("without a key: %+v: %v: %s", own, err, said.String())
	}
}

// One changed byte is found wherever it is: in the page, a record, a text, a value, a salt or a
// hash.
func TestBundle_EveryChangedByteIsFound(t *testing.T) {
	file, trust := refundBundle(t)
	for i := 0; i < len(file); i += 37 {
		changed := bytes.Clone(file)
		changed[i] ^= 1
		if report, err := evidence.Check(changed, trust, io.Discard); err == nil {
			t.Fatalf("byte %d of %d: %+v\n%s", i, len(file), report, file[max(0, i-40):min(len(file), i+40)])
		}
	}
}

// A forger can also write the page again; the records show the forgery.
func TestBundle_ConsistentForgeryIsFound(t *testing.T) {
	file, trust := refundBundle(t)
	for name, forge := range map[string]func(*evidence.Bundle){
		"another text":      func(b *evidence.Bundle) { b.Texts[0] = strings.Replace(b.Texts[0], "49.00", "12.00", 1) },
		"other arguments":   func(b *evidence.Bundle) { b.Values[0].Text = strings.Replace(b.Values[0].Text, "49.00", "12.00", 1) },
		"another reason":    func(b *evidence.Bundle) { b.Values[2].Text = "everything" },
		"a value elsewhere": func(b *evidence.Bundle) { b.Values[2].Seq = 1 },
		"another salt":      func(b *evidence.Bundle) { b.Salt = strings.Replace(b.Salt, "010203", "020203", 1) },
		"another record": func(b *evidence.Bundle) {
			b.Records[2].Record = strings.Replace(b.Records[2].Record, "alice", "malle", 1)
		},
		"the order of records":   func(b *evidence.Bundle) { b.Records[0], b.Records[1] = b.Records[1], b.Records[0] },
		"a record without proof": func(b *evidence.Bundle) { b.Records[4].Hashes = nil },
		"another request":        func(b *evidence.Bundle) { b.Request = "int_2" },
		"another account":        func(b *evidence.Bundle) { b.Account = "evil" },
		"no checkpoint":          func(b *evidence.Bundle) { b.Checkpoint = "" },
		"no checkpoint and key":  func(b *evidence.Bundle) { b.Checkpoint, b.PublicKey = "", "" },
	} {
		b, err := evidence.Read(file)
		if err != nil {
			t.Fatal(err)
		}
		forge(&b)
		var page bytes.Buffer
		if err := b.Write(&page); err != nil {
			t.Fatal(err)
		}
		if report, err := evidence.Check(page.Bytes(), trust, io.Discard); err == nil {
			t.Errorf("%s: %+v", name, report)
		}
	}
	b, err := evidence.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := audit.ParseUnverified([]byte(b.Checkpoint))
	if err != nil {
		t.Fatal(err)
	}
	stranger := trustIn(t, audit.NewKey(), signed.Origin)
	if _, err := evidence.Check(file, stranger, io.Discard); !errors.Is(err, audit.ErrUntrusted) {
		t.Errorf("another key: %v", err)
	}
}

// The page of a format never changes: otherwise old bundles look changed.
func TestBundle_PageOfTheFormatIsGolden(t *testing.T) {
	b := evidence.Bundle{Format: "fermata-evidence/1", Account: "acme", Request: "int_1", Created: audit.TimestampOf(noon)}
	files, err := filepath.Glob("../testdata/v1/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		b.Records = append(b.Records, evidence.BundleRecord{Record: strings.TrimSuffix(string(raw), "\n")})
	}
	for _, why := range []evidence.Withheld{"", evidence.WithheldSensitive, evidence.WithheldRunning, evidence.WithheldHidden, evidence.WithheldErased} {
		if b.Withheld, b.TextsWithheld = why, 0; why == evidence.WithheldSensitive {
			b.TextsWithheld = 2
		}
		var page bytes.Buffer
		if err := b.Write(&page); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, fmt.Sprintf("testdata/page%s.html", why), page.Bytes())
	}
}
