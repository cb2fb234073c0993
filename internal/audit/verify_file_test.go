package audit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

// signedLog returns a log of n records with a checkpoint at each of the given sizes.
func signedLog(t testing.TB, account string, n int, sizes ...int64) (*audit.Memory, audit.Trust) {
	t.Helper()
	m, key := new(audit.Memory), audit.NewKey()
	for i, r := range samples(n) {
		if _, err := m.Append(t.Context(), account, r); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(sizes, int64(i+1)) {
			if _, err := audit.CreateCheckpoint(t.Context(), m, account, key); err != nil {
				t.Fatal(err)
			}
		}
	}
	head, _ := m.Head(t.Context(), account)
	return m, trustIn(t, key, head)
}

func export(t testing.TB, log audit.Log, account string, wanted audit.Range) []byte {
	t.Helper()
	var file bytes.Buffer
	if _, err := audit.Export(t.Context(), log, account, wanted, audit.JSONL, &file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func verifyFile(file []byte, account string, trust audit.Trust) (audit.VerifyReport, error) {
	return audit.VerifyFile(bytes.NewReader(file), account, audit.VerifyOptions{Trust: trust}, io.Discard)
}

func TestExport_AnyRangeIsVerifiableOffline(t *testing.T) {
	m, trust := signedLog(t, "acme", 12, 4, 7, 12)
	for from := int64(1); from <= 12; from++ {
		for to := from; to <= 12; to++ {
			file := export(t, m, "acme", audit.Range{From: from, To: to})
			var last int64
			for _, size := range []int64{4, 7, 12} {
				if size >= from && size <= to {
					last = size
				}
			}
			report, err := verifyFile(file, "", trust)
			what := fmt.Sprintf("%d to %d", from, to)
			if last == 0 {
				if p := problem(t, what, err); p.Fault != audit.FaultUnsigned {
					t.Errorf("%s: found %v", what, p)
				}
				report, err = verifyFile(file, "", audit.Trust{})
			}
			if err != nil || report.From != from || report.To != to || report.Signed != last || report.Account != "acme" {
				t.Errorf("%s: %+v, %v", what, report, err)
			}
		}
	}
}

func TestExport_RecordsAreByteForByte(t *testing.T) {
	m, _ := signedLog(t, "acme", 5, 3)
	var got [][]byte
	for line := range bytes.Lines(export(t, m, "acme", audit.Range{})) {
		if bytes.HasPrefix(line, []byte(`{"v":1,`)) {
			got = append(got, bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	if !slices.EqualFunc(got, rows(t, m, "acme"), bytes.Equal) {
		t.Error("the export differs from the stored records")
	}
}

func TestExport_ReturnsAuditBody(t *testing.T) {
	m, _ := signedLog(t, "acme", 5, 3)
	var file bytes.Buffer
	got, err := audit.Export(t.Context(), m, "acme", audit.Range{From: 2, To: 99}, audit.JSONL, &file)
	sum := sha256.Sum256(file.Bytes())
	if want := (audit.LogExported{Format: "jsonl", From: 2, To: 5, SHA256: hex.EncodeToString(sum[:])}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := audit.Export(t.Context(), m, "nobody", audit.Range{}, audit.JSONL, io.Discard); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("an empty log: %v; want ErrNotFound", err)
	}
	if _, err := audit.Export(t.Context(), m, "acme", audit.Range{From: 6}, audit.JSONL, io.Discard); !errors.Is(err, audit.ErrNotFound) {
		t.Errorf("after the end: %v; want ErrNotFound", err)
	}
	if _, err := audit.Export(t.Context(), m, "acme", audit.Range{}, "xml", io.Discard); err == nil {
		t.Error("an unknown format was accepted")
	}
	gone := tampered{m, rows(t, m, "acme")[:3]}
	_, err = audit.Export(t.Context(), gone, "acme", audit.Range{}, audit.JSONL, io.Discard)
	if p := problem(t, "gone", err); p.Seq != 4 || p.Fault != audit.FaultMissing {
		t.Errorf("found %v", p)
	}
}

func TestVerifyFile_DetectsEveryChangedByte(t *testing.T) {
	m, trust := signedLog(t, "acme", 3, 1, 3)
	for account, wanted := range map[string]audit.Range{"": {}, "acme": {From: 2}} {
		good := export(t, m, "acme", wanted)
		if _, err := verifyFile(good, account, trust); err != nil {
			t.Fatal(err)
		}
		for i := range good {
			bad := bytes.Clone(good)
			bad[i] ^= 1
			if _, err := verifyFile(bad, account, trust); err == nil && !inCheckpointLine(good, i) {
				t.Errorf("from %d, account %q: byte %d (%q) was changed, but it is valid", wanted.From, account, i, good[i])
			}
		}
	}
}

// inCheckpointLine reports whether a byte is in the line of a checkpoint. A change there can make
// it a checkpoint of another key, which is ignored. Then the records are checked against the
// others.
func inCheckpointLine(file []byte, at int) bool {
	start := bytes.LastIndexByte(file[:at], '\n') + 1
	return bytes.HasPrefix(file[start:], []byte(`{"checkpoint":`))
}

func TestVerifyFile_DetectsEveryTruncation(t *testing.T) {
	m, trust := signedLog(t, "acme", 6, 3, 6)
	lines := slices.Collect(bytes.Lines(export(t, m, "acme", audit.Range{})))
	for i := range lines {
		for j := i + 1; j <= len(lines); j++ {
			left := bytes.Join(slices.Delete(slices.Clone(lines), i, j), nil)
			report, err := verifyFile(left, "acme", trust)
			onlyCheckpoints := j == i+1 && bytes.HasPrefix(lines[i], []byte(`{"checkpoint":`))
			backToCheckpoint := j == len(lines) && report.Signed == report.To
			switch {
			case err != nil:
			case onlyCheckpoints:
			// a file that ends with an older checkpoint is an older export; see below
			case backToCheckpoint:
			// so is one with a few unsigned records after it
			case j == len(lines) && report.Signed < report.To:
			default:
				t.Errorf("without lines %d to %d: %+v", i+1, j, report)
			}
		}
	}
	// A newer known checkpoint reveals an older export.
	var newest []byte
	for signed := range m.Checkpoints(t.Context(), "acme") {
		newest = signed
	}
	for n := range lines[:len(lines)-2] {
		_, err := audit.VerifyFile(bytes.NewReader(bytes.Join(lines[:n], nil)), "acme", audit.VerifyOptions{Trust: trust, KnownCheckpoints: [][]byte{newest}}, io.Discard)
		if p := problem(t, "cut", err); p.Fault != audit.FaultTruncated {
			t.Errorf("%d lines: found %v", n, p)
		}
	}
}

func TestVerifyFile_WithoutCheckpointsFails(t *testing.T) {
	m, trust := signedLog(t, "acme", 4, 4)
	var left []byte
	for line := range bytes.Lines(export(t, m, "acme", audit.Range{})) {
		if !bytes.HasPrefix(line, []byte(`{"checkpoint":`)) {
			left = append(left, line...)
		}
	}
	_, err := verifyFile(left, "acme", trust)
	if p := problem(t, "no checkpoints", err); p.Fault != audit.FaultUnsigned {
		t.Errorf("found %v", p)
	}
}

// One file for all accounts of an installation, from which each account can be extracted.
func TestI8_LinesOfOneAccountCanBeExtracted(t *testing.T) {
	acme, trustAcme := signedLog(t, "acme", 6, 3, 6)
	evil, trustEvil := signedLog(t, `ev"il`, 4, 4)
	a, e := slices.Collect(bytes.Lines(export(t, acme, "acme", audit.Range{From: 2}))), slices.Collect(bytes.Lines(export(t, evil, `ev"il`, audit.Range{From: 2})))
	var mixed []byte
	for i := range max(len(a), len(e)) {
		if i < len(a) {
			mixed = append(mixed, a[i]...)
		}
		if i < len(e) {
			mixed = append(mixed, e[i]...)
		}
	}
	if report, err := verifyFile(mixed, "acme", trustAcme); err != nil || report.To != 6 || report.Signed != 6 {
		t.Errorf("acme: %+v, %v", report, err)
	}
	if report, err := verifyFile(mixed, `ev"il`, trustEvil); err != nil || report.To != 4 || report.Signed != 4 {
		t.Errorf("evil: %+v, %v", report, err)
	}
	_, err := verifyFile(mixed, "", trustAcme)
	problem(t, "mixed", err)
	_, err = verifyFile(mixed, "nobody", trustAcme)
	if p := problem(t, "nobody", err); p.Fault != audit.FaultNoRecords {
		t.Errorf("an account that is not in the file: %v", p)
	}
	var grepped []byte
	for line := range bytes.Lines(mixed) {
		if bytes.Contains(line, []byte(`"account":"acme"`)) {
			grepped = append(grepped, line...)
		}
	}
	if report, err := verifyFile(grepped, "", trustAcme); err != nil || report.Account != "acme" || report.To != 6 || report.Signed != 6 {
		t.Errorf("after grep: %+v, %v", report, err)
	}
}

func TestVerifyFile_InvalidFileFails(t *testing.T) {
	m, trust := signedLog(t, "acme", 4, 2, 4)
	whole, later := export(t, m, "acme", audit.Range{}), export(t, m, "acme", audit.Range{From: 3})
	lines := slices.Collect(bytes.Lines(whole))
	for name, test := range map[string]struct {
		file  []byte
		fault audit.Fault
	}{
		"nothing":                           {nil, audit.FaultNoRecords},
		"another file":                      {[]byte("hello\n"), audit.FaultUnreadable},
		"an unterminated line":              {bytes.Repeat([]byte("x"), 1<<20), audit.FaultUnreadable},
		"an empty line":                     {append([]byte("\n"), whole...), audit.FaultUnreadable},
		"two exports":                       {append(slices.Clone(whole), later...), audit.FaultUnreadable},
		"an invalid head":                   {[]byte(`{"head":{"account":"acme","size":7}}` + "\n"), audit.FaultUnreadable},
		"an invalid checkpoint":             {append(slices.Clone(lines[0]), []byte(`{"checkpoint":"x","account":"acme"}`)...), audit.FaultBadCheckpoint},
		"a checkpoint of another account":   {append(slices.Clone(lines[0]), []byte(`{"checkpoint":"x","account":"evil"}`)...), audit.FaultWrongAccount},
		"a late checkpoint":                 {bytes.Join([][]byte{lines[0], lines[1], lines[3], lines[2]}, nil), audit.FaultLateCheckpoint},
		"a checkpoint with an extra member": {append(slices.Clone(lines[0]), []byte(`{"checkpoint":"x","account":"acme","x":1}`)...), audit.FaultBadCheckpoint},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verifyFile(test.file, "", trust)
			if p := problem(t, name, err); p.Fault != test.fault {
				t.Errorf("found %v; want %s", p, test.fault)
			}
		})
	}
}

func TestExport_CloudEvents(t *testing.T) {
	m := memoryLog(t, "acme", sample(0, bodies()[9]), audit.NewRecord(noon, self, audit.Location{}, audit.PolicyLoaded{Rules: 3}), audit.NewRecord(noon, self, audit.Location{Run: "run_7"}, audit.RunEnded{Status: "failed"}))
	var file bytes.Buffer
	if _, err := audit.Export(t.Context(), m, "acme", audit.Range{}, audit.CloudEvents, &file); err != nil {
		t.Fatal(err)
	}
	head, _ := m.Head(t.Context(), "acme")
	stored := rows(t, m, "acme")
	wantTypes := []string{"io.github.fermata-go.request.decided", "io.github.fermata-go.policy.loaded", "io.github.fermata-go.run.ended"}
	wantSubjects := []string{"req_1", "", "run_7"}
	i := 0
	for line := range bytes.Lines(file.Bytes()) {
		var e struct {
			SpecVersion, ID, Source, Type, Subject, Time, DataContentType, Sequence, RecordHash string
			Data                                                                                json.RawMessage
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		hash := audit.HashOf(stored[i])
		if e.SpecVersion != "1.0" || e.ID != fmt.Sprint(i+1) || e.Source != head.Origin() || e.Type != wantTypes[i] || e.Subject != wantSubjects[i] ||
			e.DataContentType != "application/json" || e.Sequence != fmt.Sprintf("%020d", i+1) || e.RecordHash != hex.EncodeToString(hash[:]) {
			t.Errorf("event %d: %s", i+1, line)
		}
		if !bytes.Equal(e.Data, stored[i]) {
			t.Errorf("event %d: the data is not the stored record", i+1)
		}
		if e.Subject == "" && strings.Contains(string(line), "subject") {
			t.Errorf("event %d: an empty subject, which CloudEvents forbids", i+1)
		}
		i++
	}
	if i != 3 {
		t.Errorf("%d events", i)
	}
}
