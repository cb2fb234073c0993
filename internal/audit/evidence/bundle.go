// Package evidence puts all that is known about one request into a file that is checked offline.
//
// A [Bundle] has the audit records of the request with their proofs, the texts that people saw, and
// the values whose digests the records have:
//
//	server ── New, AddText, AddValue, Write ──▶ evidence.html ── Check(file, public key) ──▶ auditor
package evidence

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Bundle is the evidence of one request in one file: a page for people, with this as JSON in it.
// [Check] needs only the file and the public key. The page says nothing but what the JSON says. The
// server selects the records; the bundle does not prove that there are no others.
type Bundle struct {
	Format  string          `json:"format"`
	Account string          `json:"account"`
	Request string          `json:"request"`
	Created audit.Timestamp `json:"created"`
	// PublicKey is the key of the server. Checkpoint is the newest signed note, or "".
	PublicKey  string         `json:"publicKey,omitempty"`
	Checkpoint string         `json:"checkpoint,omitempty"`
	Records    []BundleRecord `json:"records"`
	// Texts are the texts that people saw. ScreenSalt, in hex, is the salt of their digests.
	Texts      []string `json:"texts,omitempty"`
	ScreenSalt string   `json:"screenSalt,omitempty"`
	// Values have their digests in the records. Salt, in hex, is the salt of these digests.
	Values []BundleValue `json:"values,omitempty"`
	Salt   string        `json:"salt,omitempty"`
	// Withheld is why there are no values, or no texts and no values; "" if nothing is withheld.
	Withheld Withheld `json:"withheld,omitempty"`
	// TextsWithheld is how many texts are left out because they contain values that are sensitive.
	TextsWithheld int `json:"textsWithheld,omitempty"`
}

// BundleRecord is a record as stored, and its path to the root of the checkpoint; without one if
// the checkpoint does not cover it.
type BundleRecord struct {
	Record string       `json:"record"`
	Hashes []audit.Hash `json:"hashes,omitempty"`
}

// BundleValue is a value whose digest the record with a sequence number has.
type BundleValue struct {
	Seq  int64     `json:"seq"`
	Name ValueName `json:"name"`
	Text string    `json:"text"`
}

// ValueName names a digest of a record.
type ValueName string

// The values of a bundle. Arguments and edited arguments are JSON, and so are answers and results.
const (
	ValueArguments ValueName = "arguments"
	ValueEdited    ValueName = "edited"
	ValueAnswer    ValueName = "answer"
	ValueReason    ValueName = "reason"
	ValueText      ValueName = "text"
	ValueResult    ValueName = "result"
)

// Withheld is why a bundle leaves data out.
type Withheld string

// The reasons.
const (
	WithheldSensitive Withheld = "sensitive"  // the run has sensitive values: no values
	WithheldRunning   Withheld = "running"    // the run may still go on: no values
	WithheldHidden    Withheld = "visible_to" // the caller may not see the request: no texts either
	WithheldErased    Withheld = "erased"     // the run was deleted, with its salt
)

const bundleFormat = "fermata-evidence/2"

// New returns the evidence of a request without texts and values. lines are the records about
// the request, public is the key of the server or "". Errors are those of [audit.Prove].
func New(ctx context.Context, log audit.Log, account, request string, lines [][]byte, public string, created audit.Timestamp) (Bundle, error) {
	b := Bundle{Format: bundleFormat, Account: account, Request: request, Created: created, PublicKey: public}
	var seqs []int64
	for _, line := range lines {
		record, err := audit.Parse(line)
		if err != nil {
			return b, err
		}
		seqs = append(seqs, record.Seq)
	}
	paths := make(map[int64][]audit.Hash)
	if public != "" {
		signed, found, err := audit.ProveRecords(ctx, log, account, seqs)
		if err != nil && !errors.Is(err, audit.ErrNotSigned) {
			return b, err
		}
		b.Checkpoint, paths = string(signed.Note), found
	}
	for i, line := range lines {
		b.Records = append(b.Records, BundleRecord{Record: string(line), Hashes: paths[seqs[i]]})
	}
	return b, nil
}

// AddText adds a text if a person saw it: if a record has its digest.
func (b *Bundle) AddText(text string, salt audit.Salt) {
	if slices.Contains(b.Texts, text) || !slices.ContainsFunc(b.Screens(), func(d audit.Digest) bool { return isOf(d, salt, ident.TextHash(text)) }) {
		return
	}
	b.Texts, b.ScreenSalt = append(b.Texts, text), hex.EncodeToString(salt[:])
}

// AddValue adds a value to each record that has its digest. An answer may be any JSON of the value.
func (b *Bundle) AddValue(name ValueName, text string, salt audit.Salt) {
	if name == ValueAnswer {
		answer, err := strictjson.Canonical([]byte(text))
		if err != nil {
			return
		}
		text = string(answer)
	}
	for _, r := range b.parsed() {
		value := BundleValue{r.Seq, name, text}
		if text != "" && value.isIn(r, salt) && !slices.Contains(b.Values, value) {
			b.Values, b.Salt = append(b.Values, value), hex.EncodeToString(salt[:])
		}
	}
}

// Screens returns the digests of what people saw.
func (b *Bundle) Screens() (all []audit.Digest) {
	for _, r := range b.parsed() {
		if screen := audit.ShownIn(r.Body).Screen; screen != (audit.Digest{}) && !slices.Contains(all, screen) {
			all = append(all, screen)
		}
	}
	return all
}

// TextOf returns the text with a digest; "" if the bundle does not have it.
func (b *Bundle) TextOf(screen audit.Digest) string {
	salt, _ := parseSalt(b.ScreenSalt)
	for _, text := range b.Texts {
		if isOf(screen, salt, ident.TextHash(text)) {
			return text
		}
	}
	return ""
}

// ValueOf returns a value of a record; "" if the bundle does not have it.
func (b *Bundle) ValueOf(seq int64, name ValueName) string {
	for _, v := range b.Values {
		if v.Seq == seq && v.Name == name {
			return v.Text
		}
	}
	return ""
}

// parsed returns the records that this version can read.
func (b *Bundle) parsed() (all []audit.Record) {
	for _, r := range b.Records {
		if record, err := audit.Parse([]byte(r.Record)); err == nil {
			all = append(all, record)
		}
	}
	return all
}

// isIn reports whether a record has the digest of the value.
func (v BundleValue) isIn(r audit.Record, salt audit.Salt) bool {
	if r.Seq != v.Seq {
		return false
	}
	var d audit.Digest
	text := v.Text
	switch body := r.Body.(type) {
	case audit.RequestAsked:
		if v.Name == ValueArguments {
			d, text = body.Action.Args, digestOfAction(body.Action.Name, v.Text)
		}
	case audit.RequestDecided:
		switch v.Name {
		case ValueEdited:
			d, text = body.Edited, digestOfAction(body.Action.Name, v.Text)
		case ValueAnswer:
			d = body.Answer
		case ValueReason:
			d = body.Reason
		}
	case audit.RequestCommented:
		if v.Name == ValueText {
			d = body.Text
		}
	case audit.AgentReceipt:
		if v.Name == ValueResult {
			d = body.Result
		}
	default: // the others have no value in a bundle
	}
	return isOf(d, salt, text)
}

// digestOfAction returns the digest of an action with its arguments; "" if they are not JSON.
func digestOfAction(action, args string) string {
	digest, err := fermata.ApprovalRequest{Action: action}.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: json.RawMessage(args)})
	if err != nil {
		return ""
	}
	return digest
}

// isOf reports whether d is the digest of a text.
func isOf(d audit.Digest, salt audit.Salt, text string) bool {
	return text != "" && d.Confirms(audit.Payload{ID: d.Payload, Salt: salt}, []byte(text))
}

func parseSalt(text string) (salt audit.Salt, err error) {
	if text == "" {
		return salt, nil
	}
	raw, err := hex.DecodeString(text)
	if err == nil && len(raw) != len(salt) {
		err = fmt.Errorf("a salt has %d bytes", len(salt))
	}
	copy(salt[:], raw)
	return salt, err
}

// Read returns the data of a file that [Bundle.Write] wrote. It checks nothing else.
func Read(file []byte) (b Bundle, err error) {
	_, data, found := bytes.Cut(file, []byte(bundleDataBegin))
	data, _, ended := bytes.Cut(data, []byte(bundleDataEnd))
	if !found || !ended {
		return b, fmt.Errorf("%w: the file is not an evidence bundle", audit.ErrProof)
	}
	if err := strictjson.Decode(data, &b); err != nil {
		return b, fmt.Errorf("%w: %w", audit.ErrProof, err)
	}
	if b.Format != bundleFormat {
		return b, fmt.Errorf("%w: the format is not %s", audit.ErrProof, bundleFormat)
	}
	return b, nil
}

// Report is the result of a checked bundle.
type Report struct {
	Account string `json:"account"`
	Request string `json:"request"`
	Records int    `json:"records"`
	// Signed is how many of the records a checkpoint covers. OwnKey reports that only the key in
	// the file was trusted, which proves nothing about who made the file.
	Signed int  `json:"signed"`
	OwnKey bool `json:"ownKey,omitempty"`
	Texts  int  `json:"texts"`
	Values int  `json:"values"`
}

// Check checks a bundle offline and writes the result to w: that the page is exactly what its
// data says, that the records are in the signed log, and that each text and value is the one of
// which the records have the digest. Without a trusted key it trusts the one in the file. Errors
// are ErrProof, ErrUntrusted, and ErrNotSigned if there is a trusted key but no checkpoint that
// covers all records.
func Check(file []byte, trust audit.Trust, w io.Writer) (Report, error) {
	b, err := Read(file)
	if err != nil {
		return Report{}, err
	}
	report := Report{Account: b.Account, Request: b.Request, Records: len(b.Records), Texts: len(b.Texts), Values: len(b.Values)}
	var page bytes.Buffer
	if err := b.Write(&page); err != nil {
		return report, err
	}
	if !bytes.Equal(page.Bytes(), file) {
		return report, fmt.Errorf("%w: the page is not what its data says", audit.ErrProof)
	}
	if b.Checkpoint == "" && !trust.IsEmpty() {
		return report, fmt.Errorf("%w: the bundle has no checkpoint", audit.ErrNotSigned)
	}
	trusted := !trust.IsEmpty()
	if !trusted && b.Checkpoint != "" {
		report.OwnKey = true
		if trust, err = audit.NewTrust(b.PublicKey); err != nil {
			return report, fmt.Errorf("%w: %w", audit.ErrProof, err)
		}
	}
	if report.Signed, err = b.checkRecords(trust); err != nil {
		return report, err
	}
	if err := b.checkContent(); err != nil {
		return report, err
	}
	if unsigned := report.Records - report.Signed; trusted && unsigned > 0 {
		return report, errors.Join(report.print(w), fmt.Errorf("%w: no checkpoint covers %d of the %d records; download the evidence again when the server has signed them", audit.ErrNotSigned, unsigned, report.Records))
	}
	return report, report.print(w)
}

// checkRecords returns how many of the records are in the signed log.
func (b *Bundle) checkRecords(trust audit.Trust) (signed int, err error) {
	last := audit.Checkpoint{}
	if b.Checkpoint != "" {
		if last, err = trust.Open([]byte(b.Checkpoint)); err != nil {
			return 0, err
		}
	}
	before := int64(0)
	for _, r := range b.Records {
		record, err := audit.Parse([]byte(r.Record))
		switch {
		case err != nil:
			return 0, fmt.Errorf("%w: %w", audit.ErrProof, err)
		case record.Account != b.Account || record.Location.Request != b.Request && record.Location.Interrupt != b.Request:
			return 0, fmt.Errorf("%w: record %d is not about the request", audit.ErrProof, record.Seq)
		case record.Seq <= before:
			return 0, fmt.Errorf("%w: record %d is not in order", audit.ErrProof, record.Seq)
		}
		before = record.Seq
		if record.Seq > last.Size {
			continue
		}
		if _, err := audit.NewProof(r.Record, b.Checkpoint, r.Hashes).Check(trust); err != nil {
			return 0, err
		}
		signed++
	}
	return signed, nil
}

// checkContent checks the texts and values against the digests in the records.
func (b *Bundle) checkContent() error {
	salt, err := parseSalt(b.Salt)
	screenSalt, wrong := parseSalt(b.ScreenSalt)
	if err = errors.Join(err, wrong); err != nil {
		return fmt.Errorf("%w: %w", audit.ErrProof, err)
	}
	screens, records := b.Screens(), b.parsed()
	for i, text := range b.Texts {
		if !slices.ContainsFunc(screens, func(d audit.Digest) bool { return isOf(d, screenSalt, ident.TextHash(text)) }) {
			return fmt.Errorf("%w: no record has the digest of text %d", audit.ErrProof, i+1)
		}
	}
	for _, v := range b.Values {
		if !slices.ContainsFunc(records, func(r audit.Record) bool { return v.isIn(r, salt) }) {
			return fmt.Errorf("%w: record %d does not have the digest of its %s", audit.ErrProof, v.Seq, v.Name)
		}
	}
	return nil
}

func (r Report) print(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Evidence of request %q of account %q. The page is what its data says.\n", r.Request, r.Account)
	switch {
	case r.Signed == 0:
		fmt.Fprintf(&b, "NOT SIGNED: nothing proves that its %d records are in the log.\n", r.Records)
	case r.Signed < r.Records:
		fmt.Fprintf(&b, "%d of %d records are in the signed log; no checkpoint in the file covers the others.\n", r.Signed, r.Records)
	default:
		fmt.Fprintf(&b, "All %d records are in the signed log.\n", r.Records)
	}
	if r.OwnKey {
		b.WriteString("Only the key in the file was trusted. Pass the public key that you have from elsewhere with --pub.\n")
	}
	fmt.Fprintf(&b, "Texts and values that match the digests in the records: %d and %d.\n", r.Texts, r.Values)
	_, err := w.Write(b.Bytes())
	return err
}
