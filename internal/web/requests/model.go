package requests

import (
	"encoding/json"
	"html/template"
	"slices"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/money"
	"github.com/fermata-go/fermata/internal/safehtml"
	"github.com/fermata-go/fermata/internal/schemaform"
	"github.com/fermata-go/fermata/internal/web/page"
)

// kindGate is the kind of the approval nodes of a graph.
const kindGate = "approval-gate"

// StatePending is the state of an open request.
const StatePending = "pending"

// Model is a request with what the pages derive from it.
type Model struct {
	ViewData
	view     *kindView
	language string
	// Sentence is the heading, and Line its short form in lists.
	Sentence, Line template.HTML
	Body           template.HTML
	// Risk is high, medium, low or "".
	Risk string
	// Flags counts the characters in the arguments that are shown as codes.
	Flags int
	// Votes and Needed are the approvals so far and those that are needed.
	Votes, Needed int
	// Editable reports whether the arguments can be edited.
	Editable bool
	// Broken reports that the digest of an approval does not match its arguments.
	Broken bool
	// Evidence is what the decision is based on.
	Evidence []evidence
	// masked is what the page showed before its sensitive values were revealed; nil otherwise.
	masked *api.Rendering
}

// Arg is an argument of an action.
type Arg struct {
	Name, Pointer string
	Value         json.RawMessage
	// Amount is the value as an amount of money, if the schema says that it is one.
	Amount string
	// Was is the requested value of an edited argument; nil if it was not edited.
	Was json.RawMessage
	// Flags counts its characters that are shown as codes.
	Flags  int
	Masked bool
}

// External reports whether an agent elsewhere created the request.
func (m *Model) External() bool { return strings.HasPrefix(m.GraphID, "external:") }

// Open reports whether the request waits for a decision.
func (m *Model) Open() bool { return m.State == StatePending }

// Eligible reports whether the signed-in person may decide the request.
func (m *Model) Eligible() bool {
	return m.Open() && (m.Activity == nil || m.Activity.IneligibleReason == "")
}

// Allows reports whether a verb is allowed.
func (m *Model) Allows(verb string) bool {
	return m.Activity == nil || len(m.Activity.Verbs) == 0 || slices.Contains(m.Activity.Verbs, verb)
}

// Verdicts reports whether people approve or reject the request: an action, a gate or a hold.
func (m *Model) Verdicts() bool {
	return m.Approval != nil || m.HeldAt != "" || m.Kind == kindGate
}

// EditReasons lists the reason codes of which an edit must name one.
func (m *Model) EditReasons() []string {
	if m.Activity == nil || m.Approval == nil {
		return nil
	}
	return m.Activity.EditReasons
}

// returns reports whether the rules let people send the request back for redesign, instead of
// escalating it.
func (m *Model) returns() bool { return m.Activity != nil && m.Activity.Returns }

// Revision returns the number of changes of the request.
func (m *Model) Revision() int64 {
	if m.Activity == nil {
		return 0
	}
	return m.Activity.Revision
}

// Model derives what the pages show of a request.
func (s *Pages) Model(v *page.Visit, r api.Request) (*Model, error) {
	m := &Model{ViewData: ViewData{Request: r}, language: v.Language}
	m.readOrigin()
	m.readQuestion()
	m.readEvidence(v.Texts)
	m.view = s.viewFor(m)
	var err error
	if m.Sentence, err = m.view.render(v.Language, "sentence", m.ViewData); err != nil {
		return nil, err
	}
	if m.Line, err = m.view.render(v.Language, "line", m.ViewData); err != nil {
		return nil, err
	}
	if m.Body, err = m.view.render(v.Language, "body", m.ViewData); err != nil {
		return nil, err
	}
	for _, a := range m.Args {
		m.Flags += a.Flags
	}
	return m, nil
}

// Models derives what the pages show of several requests.
func (s *Pages) Models(v *page.Visit, items []api.Request) ([]*Model, error) {
	models := make([]*Model, len(items))
	for i, r := range items {
		var err error
		if models[i], err = s.Model(v, r); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// readOrigin sets the requester, the risk and the votes.
func (m *Model) readOrigin() {
	_, m.From, _ = strings.Cut(m.GraphID, ":")
	if m.Activity == nil {
		return
	}
	if m.Activity.Requester != "" {
		m.From = m.Activity.Requester
	}
	m.Risk = [...]string{"", "low", "medium", "high"}[min(max(m.Activity.Risk, 0), 3)]
	for _, q := range m.Activity.Requirements {
		m.Needed += q.Count
	}
	for _, v := range m.Activity.Votes {
		if v.Verb == string(fermata.VerbApprove) || v.Verb == "edit" || v.Verb == "respond" {
			m.Votes++
		}
	}
	m.Needed = max(m.Needed, m.Votes)
}

// readQuestion reads the question of the built-in kinds.
func (m *Model) readQuestion() {
	if at, err := fermata.ParseAddress(m.Address); err == nil && len(at) > 0 && m.AnswerSchema == nil {
		if last := at[len(at)-1]; last.Type == fermata.SegmentHold {
			m.HeldAt, m.HeldWhen = last.SubID, last.ID
			m.Args = argsOf(m.Data, nil, m.Masked)
		}
	}
	switch m.Kind {
	case fermata.Approval.Name():
		m.readApproval()
	case fermata.EffectInDoubt.Name():
		var doubt fermata.InDoubtRequest
		if json.Unmarshal(m.Data, &doubt) == nil && doubt.Action != "" {
			m.Doubt = &doubt
			m.Args = argsOf(doubt.Args, nil, m.Masked)
		}
	}
}

func (m *Model) readApproval() {
	var approval fermata.ApprovalRequest
	if json.Unmarshal(m.Data, &approval) != nil || approval.Action == "" {
		return
	}
	m.Approval = &approval
	args, was := approval.Args, json.RawMessage(nil)
	if m.Activity != nil && m.Activity.Edit != nil {
		args, was = m.Activity.Edit.Args, approval.Args
	} else if approval.Summary != "" { // it describes the requested arguments
		m.Says = append(m.Says, approval.Summary)
	}
	m.Args = argsOf(args, was, m.Masked)
	m.addAmounts(args, approval.ArgsSchema)
	m.Editable = !approval.Fixed && len(m.Masked) == 0 && args != nil
	if len(m.Masked) == 0 && approval.Args != nil {
		digest, err := approval.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: approval.Args})
		m.Broken = err != nil || digest != approval.Digest
	}
}

// argsOf lists arguments; was are the requested ones if they were edited.
func argsOf(args, was json.RawMessage, masked []string) []Arg {
	n, err := safehtml.Parse(args)
	if err != nil {
		return nil
	}
	if n.Kind != safehtml.Object {
		return []Arg{{Value: args, Flags: n.Flags()}}
	}
	before := make(map[string]json.RawMessage)
	old, err := safehtml.Parse(was)
	edited := was != nil && err == nil
	for _, m := range old.Members {
		before[m.Name] = m.Value.Raw
	}
	var list []Arg
	for _, m := range n.Members {
		a := Arg{Name: m.Name, Pointer: "/" + escapePointer(m.Name), Value: m.Value.Raw, Flags: safehtml.Flags(m.Name) + m.Value.Flags()}
		if edited && string(before[m.Name]) != string(m.Value.Raw) {
			if a.Was = before[m.Name]; a.Was == nil {
				a.Was = json.RawMessage("null")
			}
		}
		a.Masked = slices.ContainsFunc(masked, func(p string) bool { return p == a.Pointer || strings.HasPrefix(p, a.Pointer+"/") })
		list = append(list, a)
	}
	return list
}

func (m *Model) addAmounts(args, schema json.RawMessage) {
	amounts := money.FieldsOf(schema)
	var members map[string]json.RawMessage
	if len(amounts) == 0 || json.Unmarshal(args, &members) != nil {
		return
	}
	for i, a := range m.Args {
		m.Args[i].Amount, _ = amounts.Format(a.Name, a.Value, members, m.language)
	}
}

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// shape returns the name of the view for the answer schema: choice, form or generic.
func (m *Model) shape() string {
	if m.AnswerSchema == nil {
		return genericView
	}
	switch f := schemaform.New(m.AnswerSchema, nil); f.Kind {
	case schemaform.Choice, schemaform.Boolean:
		return "choice"
	case schemaform.Object:
		return "form"
	default:
		return genericView
	}
}

// Rendering returns what the page shows of the question as text, without markup and without
// revealed values. It depends on the request, the language and the version of the templates only.
func (m *Model) Rendering() api.Rendering {
	if m.masked != nil {
		return *m.masked
	}
	text := plainText(string(m.Sentence) + "\n" + string(m.Body))
	for _, e := range m.Evidence {
		text += "\n" + safehtml.Plain(e.Title) + "\n" + string(e.Value) + e.Text
	}
	return api.NewRendering(text, "web", m.template(m.view.Kind+"@3"))
}

// template names a template and its version, and the language if it is not English.
func (m *Model) template(name string) string {
	if m.language == language.English {
		return "web-" + name
	}
	return "web-" + name + "-" + m.language
}

// Dots returns one value for each needed vote: whether it is there.
func (m *Model) Dots() []bool {
	dots := make([]bool, min(m.Needed, 12))
	for i := range dots {
		dots[i] = i < m.Votes
	}
	return dots
}

// tool returns the action that a request is about; "" if it is about none.
func (m *Model) tool() string {
	switch {
	case m.Approval != nil:
		return m.Approval.Action
	case m.Doubt != nil:
		return m.Doubt.Action
	}
	return ""
}
