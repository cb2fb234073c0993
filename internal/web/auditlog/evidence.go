package auditlog

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/evidence"
	"github.com/fermata-go/fermata/internal/web/page"
)

// evidenceData is the data of the page with the records about one request.
type evidenceData struct {
	ID      string
	Records []evidenceRecord
	// Question and Answer are those of the request; nil if the person may not see it, or if it was
	// deleted.
	Question, Answer json.RawMessage
	// Withheld says why texts or values are missing. TextsWithheld counts the texts that are left
	// out because they contain sensitive values.
	Withheld      evidence.Withheld
	TextsWithheld int
	// Trail compares what was proposed, approved and executed; nil if the request is not about an
	// action.
	Trail *audit.Trail
	// Unknown counts records of kinds that this version does not know.
	Unknown   int
	Signed    int64 // the last record that a checkpoint covers
	PublicKey string
}

// evidenceRecord is a record as evidence.
type evidenceRecord struct {
	audit.Record
	Facts []fact
	Raw   json.RawMessage
	// Screen reports that the record names what was on the screen, and Text is that text; "" if it
	// was not kept.
	Screen bool
	Text   string
	Values []evidence.BundleValue
}

// fact is a part of a record. Key names its text, audit.fact.KEY.
type fact struct {
	Key, Value string
	// Code reports a digest or an id.
	Code bool
}

// showEvidence shows the records about a request in order: what was asked and shown, who decided
// and how they were authenticated, the rules, the digests, the effect and its receipt.
func showEvidence(v *page.Visit) (page.Response, error) {
	data := evidenceData{ID: v.PathValue("id")}
	file, err := v.API.AuditBundle(v.Context(), data.ID)
	if err != nil {
		return nil, err
	}
	bundle, err := evidence.Read(file)
	if err != nil {
		return nil, err
	}
	for _, r := range bundle.Records {
		record, err := audit.Parse([]byte(r.Record))
		if errors.Is(err, audit.ErrUnknownKind) {
			data.Unknown++
			continue
		}
		if err != nil {
			return nil, err
		}
		shown := evidenceRecord{Record: record, Facts: facts(v, record.Body), Raw: json.RawMessage(r.Record)}
		if screen := audit.ShownIn(record.Body).Screen; screen != (audit.Digest{}) {
			shown.Screen, shown.Text = true, bundle.TextOf(screen)
		}
		for _, value := range bundle.Values {
			if value.Seq == record.Seq {
				shown.Values = append(shown.Values, value)
			}
		}
		data.Records = append(data.Records, shown)
	}
	data.Withheld, data.TextsWithheld = bundle.Withheld, bundle.TextsWithheld
	if r, err := v.API.Request(v.Context(), data.ID); err == nil {
		data.Question = r.Data
		if r.Decision != nil {
			data.Answer = r.Decision.Answer
		}
	} else if p, refused := errors.AsType[*api.Problem](err); !refused || p.Status != http.StatusForbidden && p.Status != http.StatusNotFound {
		return nil, err
	}
	if len(data.Records) == 0 {
		return nil, page.ErrNotFound
	}
	trails, err := audit.Trails(recordsOf(data.Records))
	if err != nil {
		return nil, err
	}
	if len(trails) > 0 {
		data.Trail = &trails[0]
	}
	data.PublicKey = bundle.PublicKey
	if signed, err := audit.ParseUnverified([]byte(bundle.Checkpoint)); err == nil {
		data.Signed = signed.Size
	}
	return page.Page{Name: "audit_evidence", Title: v.T("audit.evidence"), Nav: "/audit", Data: data}, nil
}

// downloadEvidence downloads the evidence of a request.
func downloadEvidence(v *page.Visit) (page.Response, error) {
	file, err := v.API.AuditBundle(v.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return page.Download{Name: "fermata-evidence-" + v.PathValue("id") + ".html", Type: "text/html; charset=utf-8", Body: file}, nil
}

func recordsOf(list []evidenceRecord) iter.Seq2[audit.Record, error] {
	return func(yield func(audit.Record, error) bool) {
		for _, r := range list {
			if !yield(r.Record, nil) {
				return
			}
		}
	}
}

// Authentication returns how the actor was authenticated: the channel, the method and the identity.
func (r evidenceRecord) Authentication() string {
	var parts []string
	for _, part := range []string{r.Actor.Via, r.Actor.Auth, r.Actor.Identity} {
		if part != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	if r.Actor.MFA {
		parts = append(parts, "MFA")
	}
	return strings.Join(parts, ", ")
}

// Approving returns the last step before the effects: the approval, or nil.
func (d evidenceData) Approving() *audit.TrailStep {
	if d.Trail == nil || d.Trail.Approved.Seq == 0 {
		return nil
	}
	return &d.Trail.Approved
}

// factList collects facts and leaves out those that are empty.
type factList struct {
	v    *page.Visit
	list []fact
}

func (f *factList) text(key string, values ...string) {
	if value := strings.Join(slices.DeleteFunc(slices.Clone(values), func(s string) bool { return s == "" }), ", "); value != "" {
		f.list = append(f.list, fact{Key: key, Value: value})
	}
}

func (f *factList) code(key, value string) {
	if value != "" {
		f.list = append(f.list, fact{Key: key, Value: value, Code: true})
	}
}

func (f *factList) digest(key string, d audit.Digest) { f.code(key, d.Sum) }

func (f *factList) time(key string, at audit.Timestamp) {
	if !at.IsZero() {
		f.text(key, f.v.Exact(at.Time))
	}
}

func (f *factList) yes(key string, is bool) {
	if is {
		f.text(key, f.v.T("audit.yes"))
	}
}

func (f *factList) action(a audit.Action) {
	f.code("action", a.Name)
	f.digest("arguments", a.Args)
	f.text("effects", a.Effects...)
	f.text("cost", a.Cost)
}

func (f *factList) ruling(r audit.Ruling) {
	f.text("rules", r.Rules...)
	f.code("grant", r.Grant)
	f.text("policy", r.Version)
	f.code("policydigest", r.Digest)
	f.yes("breakglass", r.BreakGlass)
}

func (f *factList) shown(s audit.Shown) {
	f.text("surface", s.Surface)
	f.text("template", s.Template)
	f.digest("screen", s.Screen)
	f.digest("rendered", s.Rendered)
	if s.Template != "" {
		f.text("visible", f.v.T("audit.visible."+cmp.Or(string(s.Extent()), "unknown")))
	}
	if s.Opened() {
		f.time("opened", s.At)
	} else {
		f.time("recorded", s.At)
	}
}

func (f *factList) need(list []audit.GroupCount) {
	var groups []string
	for _, g := range list {
		groups = append(groups, strconv.Itoa(g.Count)+" × "+g.Group)
	}
	f.text("need", groups...)
}

// facts returns what a record says, in addition to its time and actor. Other records have none;
// their stored form is shown.
func facts(v *page.Visit, body audit.Body) []fact {
	f := factList{v: v}
	switch b := body.(type) {
	case audit.RequestAsked:
		f.text("kind", b.Kind)
		f.action(b.Action)
		f.digest("question", b.Question)
		f.need(b.Need)
		f.ruling(b.Ruling)
		f.text("route", b.Route)
		f.time("deadline", b.Deadline)
	case audit.RequestDelivered:
		f.text("surface", b.Surface)
		f.text("state", string(b.State), b.Error)
	case audit.RequestViewed:
		f.shown(b.Shown)
	case audit.RequestRendered:
		f.shown(b.Shown)
	case audit.RequestRevealed:
		f.text("fields", b.Fields...)
	case audit.RequestDecided:
		f.text("verb", string(b.Verb))
		f.yes("settles", b.Settles)
		f.action(b.Action)
		f.digest("edited", b.Edited)
		f.digest("approved", b.Approved)
		f.text("codes", b.Codes...)
		f.digest("answer", b.Answer)
		f.digest("reason", b.Reason)
		f.time("until", cmp.Or(b.ApprovedConditions.Until, b.Conditions.Until))
		f.shown(b.Shown)
		f.text("groups", b.Groups...)
		f.need(b.Quorum.Need)
		f.text("have", b.Quorum.Have...)
		f.ruling(b.Ruling)
		f.digest("message", b.Click.Raw)
	case audit.RequestRefused:
		f.text("verb", string(b.Verb), b.Act)
		f.text("why", string(b.Why))
		f.shown(b.Shown)
		f.ruling(b.Ruling)
	case audit.RequestExpired:
		f.time("deadline", b.Deadline)
		f.text("then", b.Then)
		f.digest("answer", b.Answer)
	case audit.RequestWithdrawn:
		f.text("why", b.Why)
	case audit.GrantUsed:
		f.code("grant", b.Grant)
		f.action(b.Action)
		f.ruling(b.Ruling)
	case audit.EffectBegun:
		f.text("effect", strconv.Itoa(b.Number))
		f.action(b.Action)
		f.code("idempotency", b.Key)
		f.yes("repeatable", b.Repeatable)
		f.ruling(b.Ruling)
	case audit.EffectEnded:
		f.text("effect", strconv.Itoa(b.Number))
		f.text("state", string(b.State))
		f.action(b.Action)
		f.digest("receipt", b.Receipt)
		f.digest("failure", b.Error)
	case audit.AgentReceipt:
		f.text("state", string(b.Outcome))
		f.digest("ran", b.Ran)
		f.digest("result", b.Result)
	default: // the stored record is shown
	}
	return f.list
}
