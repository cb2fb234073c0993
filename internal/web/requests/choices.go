package requests

import (
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/web/page"
)

// span is a duration that people can choose.
type span struct {
	name   string
	length time.Duration
}

// spans are the durations that people can choose, shortest first.
var spans = []span{{"30m", 30 * time.Minute}, {"1h", time.Hour}, {"4h", 4 * time.Hour}, {"1d", 24 * time.Hour}, {"3d", 72 * time.Hour}, {"7d", 168 * time.Hour}}

// spanMost extends the deadline as far as possible.
const spanMost = "most"

// Spans lists the durations that are possible for the action.
func (f *actionForm) Spans(v *page.Visit) []string { return f.spansFor(f.Act, v.Now) }

// spansFor lists the durations that are possible for an action. A snooze ends before the deadline,
// and the rules limit an extension.
func (m *Model) spansFor(act string, now time.Time) (names []string) {
	for _, s := range spans {
		switch {
		case act == "snooze" && m.Deadline != nil && !now.Add(s.length).Before(*m.Deadline):
		case act == "extend" && (m.latest() == nil || m.Deadline.Add(s.length).After(*m.latest())):
		default:
			names = append(names, s.name)
		}
	}
	if act == "extend" && m.latest() != nil {
		names = append(names, spanMost)
	}
	return names
}

// latest returns until when the deadline can be extended; nil if it cannot be.
func (m *Model) latest() *time.Time {
	if m.Activity == nil || m.Deadline == nil {
		return nil
	}
	return m.Activity.ExtendUntil
}

// chosenSpan returns the selected duration; false if it is not possible.
func (f *actionForm) chosenSpan(v *page.Visit) (time.Duration, bool) {
	if !slices.Contains(f.Spans(v), f.Span) {
		return 0, false
	}
	if f.Span == spanMost {
		return f.latest().Sub(*f.Deadline), true
	}
	i := slices.IndexFunc(spans, func(s span) bool { return s.name == f.Span })
	return spans[i].length, true
}

// SpanText words a duration, with its end.
func (f *actionForm) SpanText(v *page.Visit, name string) string {
	i := slices.IndexFunc(spans, func(s span) bool { return s.name == name })
	switch {
	case i < 0:
		return v.T("span.most", v.Clock(*f.latest()))
	case f.Act == "extend":
		return v.T("span."+name) + ", " + v.T("span.until", v.Clock(f.Deadline.Add(spans[i].length)))
	}
	return v.T("span."+name) + ", " + v.T("span.until", v.Clock(v.Now.Add(spans[i].length)))
}

// endTime is a time at which an approval can end.
type endTime struct{ Value, Text string }

// EndTimes lists when an approval can end. They are times and not durations, so that the same form
// sent again is the same decision.
func (f *actionForm) EndTimes(v *page.Visit) (all []endTime) {
	for _, s := range spans[1:] {
		at := v.Now.Add(s.length).UTC().Truncate(time.Minute)
		all = append(all, endTime{at.Format(time.RFC3339), v.T("span."+s.name) + ", " + v.T("span.until", v.Clock(at))})
	}
	known := func(e endTime) bool { return e.Value == f.Until }
	if at, err := time.Parse(time.RFC3339, f.Until); err == nil && !slices.ContainsFunc(all, known) { // of a form that was sent before
		all = append(all, endTime{f.Until, v.T("span.until", v.Clock(at))})
	}
	return all
}

// SpanOr returns the selected duration, or else one that is neither the shortest nor too long.
func (f *actionForm) SpanOr(names []string) string {
	if slices.Contains(names, f.Span) {
		return f.Span
	}
	return names[min(2, len(names)-1)]
}

// escalationText says what an escalation does next.
func (m *Model) escalationText(v *page.Visit) string {
	if m.Activity == nil || len(m.Activity.Escalation) == 0 {
		return v.T("action.then.escalate")
	}
	var texts []string
	for _, what := range []string{"page", "notify", "widen"} {
		var targets []string
		for _, step := range m.Activity.Escalation {
			if target, ok := strings.CutPrefix(step, what+" "); ok {
				targets = append(targets, target)
			}
		}
		if len(targets) > 0 {
			texts = append(texts, v.T("escalate."+what, targetNames(v, targets)))
		}
	}
	return strings.Join(texts, " ")
}

// targetNames words the targets of a route: "on-call of dba, group finance".
func targetNames(v *page.Visit, targets []string) string {
	words := make([]string, len(targets))
	for i, target := range targets {
		kind, name, named := strings.Cut(target, ":")
		switch _, known := v.Texts["target."+kind]; {
		case known && named:
			words[i] = v.T("target."+kind, name)
		case known:
			words[i] = v.T("target." + kind)
		default:
			words[i] = target
		}
	}
	return strings.Join(words, ", ")
}

// RejectReasons lists the reason codes of which a rejection must name one.
func (m *Model) RejectReasons() []string {
	if m.Activity == nil {
		return nil
	}
	return m.Activity.RejectReasons
}

// ConfirmText is what an approver types; "" if nothing has to be typed.
func (m *Model) ConfirmText() string {
	if m.Activity == nil {
		return ""
	}
	return m.Activity.Confirm
}

// Types reports whether the person types the name of the object to send the form.
func (f *actionForm) Types() bool {
	return f.ConfirmText() != "" && slices.Contains([]string{"approve", "remember", "edit"}, f.Act)
}

// TypedFields names the arguments whose edited values are typed; "" if the name of the tool is.
func (f *actionForm) TypedFields() string {
	if f.ConfirmText() == f.tool() {
		return ""
	}
	var names []string
	for _, pointer := range f.Activity.ConfirmFields {
		if slices.ContainsFunc(f.Args, func(a Arg) bool { return pointer == a.Pointer || strings.HasPrefix(pointer, a.Pointer+"/") }) {
			names = append(names, strings.TrimPrefix(pointer, "/"))
		}
	}
	return strings.Join(names, ", ")
}

// offersSpan reports whether an action is allowed and has a possible duration.
func offersSpan(name string, allowed requirement.Verb) func(*Model, *page.Visit) bool {
	return func(m *Model, v *page.Visit) bool {
		return verb(string(allowed))(m, v) && len(m.spansFor(name, v.Now)) > 0
	}
}
