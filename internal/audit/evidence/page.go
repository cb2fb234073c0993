package evidence

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/audit"
)

//go:embed bundle.html
var bundleSource string

// A page of one format never changes: Check compares it byte by byte. Count up the format to
// change the page.
var bundleTemplate = template.Must(template.New("bundle").Funcs(template.FuncMap{"mark": markInvisible, "json": indentJSON}).Parse(bundleSource))

const (
	bundleDataBegin = `<script type="application/json" id="evidence">`
	bundleDataEnd   = "</script>"
)

// Write writes the page, with the data in it.
func (b Bundle) Write(w io.Writer) error {
	data, err := json.Marshal(b) // it escapes <, > and &
	if err != nil {
		return err
	}
	var page bytes.Buffer
	err = bundleTemplate.Execute(&page, b.page(template.HTML(bundleDataBegin+string(data)+bundleDataEnd)))
	if err == nil {
		_, err = w.Write(page.Bytes())
	}
	return err
}

// bundlePage is what the template shows.
type bundlePage struct {
	Bundle
	Data      template.HTML
	Run       audit.Location
	Signed    int64 // the last record that the checkpoint covers; 0 without one
	Asked     *audit.RequestAsked
	Arguments string
	Decisions []bundleDecision
	Trail     *audit.Trail
	Rows      []bundleRow
}

// bundleDecision is a vote with what its actor saw.
type bundleDecision struct {
	audit.Record
	Vote                 audit.RequestDecided
	Edited, Answer, Said string
	// Text is what was on the screen; "" if it was not kept or is withheld.
	Text string
}

// bundleRow is a record in the list of records.
type bundleRow struct {
	Seq  int64
	Time audit.Timestamp
	Kind audit.Kind
	By   string
	Via  string
	Says []string
	Raw  string
}

func (b Bundle) page(data template.HTML) bundlePage {
	p := bundlePage{Bundle: b, Data: data}
	if c, err := audit.ParseUnverified([]byte(b.Checkpoint)); err == nil {
		p.Signed = c.Size
	}
	for _, r := range b.Records {
		record, err := audit.Parse([]byte(r.Record))
		row := bundleRow{Raw: r.Record}
		if err == nil {
			row = bundleRow{Seq: record.Seq, Time: record.Time, Kind: record.Kind(), By: record.Actor.Principal, Via: viaOf(record.Actor), Says: says(record.Body), Raw: r.Record}
			p.add(record)
		}
		p.Rows = append(p.Rows, row)
	}
	trails, err := audit.Trails(func(yield func(audit.Record, error) bool) {
		for _, r := range b.parsed() {
			if !yield(r, nil) {
				return
			}
		}
	})
	if err == nil && len(trails) > 0 {
		p.Trail = &trails[0]
	}
	return p
}

func (p *bundlePage) add(r audit.Record) {
	p.Run = audit.Location{Run: cmp.Or(p.Run.Run, r.Location.Run), StateKey: cmp.Or(p.Run.StateKey, r.Location.StateKey), Graph: cmp.Or(p.Run.Graph, r.Location.Graph)}
	switch body := r.Body.(type) {
	case audit.RequestAsked:
		p.Asked, p.Arguments = &body, p.ValueOf(r.Seq, ValueArguments)
	case audit.RequestDecided:
		p.Decisions = append(p.Decisions, bundleDecision{
			Record: r, Vote: body, Edited: p.ValueOf(r.Seq, ValueEdited), Answer: p.ValueOf(r.Seq, ValueAnswer), Said: p.ValueOf(r.Seq, ValueReason), Text: p.TextOf(body.Shown.Screen),
		})
	default: // it is in the list of records
	}
}

// Visible says how much of the text was on the screen.
func (d bundleDecision) Visible() string {
	switch d.Vote.Shown.Extent() {
	case audit.VisibleAll:
		return "every line was on the screen"
	case audit.VisiblePart:
		return "a part was folded or not on the screen"
	default:
		return "it is unknown how much of it was on the screen"
	}
}

// Via returns how the actor of the decision was authenticated.
func (d bundleDecision) Via() string { return viaOf(d.Actor) }

func viaOf(a audit.Actor) string {
	var parts []string
	for _, part := range []string{a.Via, a.Auth, a.Identity} {
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if a.MFA {
		parts = append(parts, "MFA")
	}
	return strings.Join(parts, ", ")
}

// says returns the facts of a record in the list, in short.
func says(body audit.Body) (facts []string) {
	add := func(name string, values ...string) {
		if text := strings.Join(slices.DeleteFunc(values, func(s string) bool { return s == "" }), ", "); text != "" {
			facts = append(facts, name+": "+text)
		}
	}
	digest := func(name string, d audit.Digest) {
		if d.Sum != "" {
			add(name, d.Short())
		}
	}
	switch b := body.(type) {
	case audit.RequestAsked:
		add("kind", b.Kind)
		add("action", b.Action.Name)
		digest("arguments", b.Action.Args)
		add("rules", b.Ruling.Rules...)
	case audit.RequestDelivered:
		add("target", b.Surface, string(b.State), b.Error)
	case audit.RequestRendered:
		add("template", b.Shown.Template)
		digest("text", b.Shown.Screen)
	case audit.RequestRevealed:
		add("fields", b.Fields...)
	case audit.RequestDecided:
		add("decision", string(b.Verb))
		digest("edited", b.Edited)
		digest("approved", b.Approved)
		digest("text", b.Shown.Screen)
	case audit.RequestRefused:
		add("refused", string(b.Verb), b.Act, string(b.Why))
	case audit.RequestExpired:
		add("then", b.Then)
	case audit.RequestWithdrawn:
		add("why", b.Why)
	case audit.GrantUsed:
		add("grant", b.Grant)
	case audit.EffectBegun:
		add("effect", strconv.Itoa(b.Number), b.Action.Name)
		digest("arguments", b.Action.Args)
		add("idempotency key", b.Key)
	case audit.EffectEnded:
		add("effect", strconv.Itoa(b.Number), string(b.State))
		digest("receipt", b.Receipt)
	case audit.AgentReceipt:
		add("outcome", string(b.Outcome))
		digest("executed", b.Ran)
		digest("result", b.Result)
	default: // the stored record is shown
	}
	return facts
}

func indentJSON(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

// markInvisible shows the characters that change how a text looks, or that are invisible, as codes.
func markInvisible(text any) string {
	var b strings.Builder
	for _, r := range fmt.Sprint(text) {
		switch {
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < ' ', r >= 0x7f && r < 0xa0, r == 0xad, r == 0x34f, r == 0x61c, r == 0x115f, r == 0x1160, r == 0x17b4, r == 0x17b5, r >= 0x180b && r <= 0x180f, r >= 0x200b && r <= 0x200f,
			r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r == 0x3164, r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff, r == 0xffa0, r >= 0xfff0 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
