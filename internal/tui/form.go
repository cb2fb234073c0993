package tui

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// formScreen asks for the input of a verb: a reason, edited arguments, or a whole answer. It is
// kept after it closes, so that typed text is restored when the same verb is chosen for the same
// request.
type formScreen struct {
	d            *detailScreen
	action       action
	fields       []*field
	root         *schemaform.Field // the value that the fields are part of; nil for a reason
	code         *field            // the reason code, if the rules ask for one; the last of fields
	focus        int
	scroll       scroller
	scrollOffset int // how far the question below the fields is scrolled
	err          string
}

type draftKey struct {
	id     string
	shown  string
	schema string
	verb   verb
}

// openAction starts an action: with a form if the verb needs one, else with the confirmation.
func (m *model) openAction(d *detailScreen, o action) {
	if !o.needsForm() && (o.act != "" || takesVerbs(d.r) || schemaform.Check(d.r.AnswerSchema, o.answer()) == nil) {
		m.push(m.confirm(d, nil, o, o.answer()))
		return
	}
	key := draftKey{d.r.ID, d.r.Shown, string(d.r.AnswerSchema), o.verb}
	form, ok := m.drafts[key]
	if !ok {
		form = &formScreen{}
		form.fields, form.root = openForm(d, o)
		if codes := reasonCodes(d.r, o.verb); len(codes) > 0 {
			form.code = codeField(codes)
			form.fields = append(form.fields, form.code)
			if form.root == nil {
				form.fields[0].Required = false
			}
		}
		m.drafts[key] = form
	}
	form.d, form.action, form.err = d, o, ""
	m.push(form)
}

// needsForm reports whether the verb needs input.
func (o action) needsForm() bool {
	return o.verb == verbAnswer || o.verb == verbApproveEdited || o.reason != "" || len(o.form) > 0
}

// reasonCodes lists the codes of which a decision must name one.
func reasonCodes(r api.Request, v verb) []string {
	if r.Activity == nil {
		return nil
	}
	switch v {
	case verbReject:
		return r.Activity.RejectReasons
	case verbApproveEdited:
		return r.Activity.EditReasons
	}
	return nil
}

func codeField(codes []string) *field {
	schema, _ := json.Marshal(map[string]any{"type": "string", "enum": codes}) // texts always have a JSON
	f := newField(schemaform.New(schema, nil))
	f.label, f.Required = "reason code", true
	return f
}

// editable returns the fields that the rules let people change.
func editable(fields []*field, activity *api.Activity) []*field {
	if activity == nil || activity.Policy == "" || slices.Contains(activity.Editable, "") {
		return fields
	}
	return slices.DeleteFunc(fields, func(f *field) bool {
		return !slices.ContainsFunc(activity.Editable, func(p string) bool {
			return p == f.Pointer() || strings.HasPrefix(p, f.Pointer()+"/") || strings.HasPrefix(f.Pointer(), p+"/")
		})
	})
}

// openForm returns the fields of a form, and the value that they are part of; nil if there is one
// field for a reason.
func openForm(d *detailScreen, o action) ([]*field, *schemaform.Field) {
	s := schemaform.New(d.r.AnswerSchema, nil)
	switch {
	case o.act != "":
		s = schemaform.New(o.form, nil)
		fields := newFields(s)
		for _, f := range fields {
			f.label = f.Title
		}
		return fields, s
	case o.verb == verbApproveEdited && IsHold(d.r):
		s = schemaform.New(d.r.AnswerSchema, d.r.Data)
		if some := editable(newFields(s), d.r.Activity); len(some) > 0 {
			return some, s
		}
	case o.verb == verbApproveEdited:
		approval, _ := approvalOf(d.r)
		s = schemaform.New(approval.ArgsSchema, argsOf(d.r))
		if some := editable(newFields(s), d.r.Activity); len(some) > 0 {
			return some, s
		}
	case o.verb == verbReject && s.Field(o.reason) == nil: // a gate or a hold
		f := schemaform.New(json.RawMessage(`{"type":"string","title":"reason"}`), nil)
		f.Required = true
		reason := newField(f)
		reason.label = o.reason
		return []*field{reason}, nil
	case o.reason != "" && s.Check(o.base.With(schemaform.Member{Name: o.reason, Value: json.RawMessage(`"x"`)}).JSON()) == nil:
		f := s.Field(o.reason)
		f.Required = true
		return []*field{newField(f)}, nil
	default:
		for _, m := range o.base { // an approval that needs more than the verb
			if f := s.Field(m.Name); f != nil {
				f.SetInitial(m.Value)
			}
		}
	}
	return newFields(s), s
}

// scrollStep is how many lines the question scrolls.
const scrollStep = 5

func (f *formScreen) isTouched() bool {
	for _, field := range f.fields {
		if field != f.code && field.Touched() {
			return true
		}
	}
	return false
}

func (f *formScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	switch name {
	case "pgdown":
		f.scrollOffset += scrollStep
		return nil
	case "pgup":
		f.scrollOffset = max(f.scrollOffset-scrollStep, 0)
		return nil
	}
	f.scrollOffset = 0
	switch name {
	case "esc":
		m.pop()
	case "ctrl+s":
		f.review(m)
	case "enter":
		if f.focus == len(f.fields)-1 {
			f.review(m)
		} else {
			f.focus++
		}
	case "tab":
		f.move(1)
	case "shift+tab":
		f.move(-1)
	default:
		f.typed(k)
	}
	return nil
}

func (f *formScreen) typed(k tea.KeyPressMsg) {
	field := f.fields[f.focus]
	before := field.state()
	handled := field.key(k)
	if field.state() != before {
		field.err, f.err = "", ""
	}
	switch name := k.String(); {
	case handled:
	case name == "down":
		f.move(1)
	case name == "up":
		f.move(-1)
	}
}

func (f *formScreen) move(by int) { f.focus = (f.focus + by + len(f.fields)) % len(f.fields) }

func (f *formScreen) paste(_ *model, text string) {
	if field := f.fields[f.focus]; !field.isChoice() {
		field.insert(text)
		field.err, f.err = "", ""
	}
}

// review opens the confirmation if the input is valid.
func (f *formScreen) review(m *model) {
	value, ok := f.read()
	if !ok || f.d.frozen != "" {
		return
	}
	for _, o := range f.d.actions(m) { // the answer may contain the time
		if o.verb == f.action.verb {
			f.action = o
		}
	}
	reply, err := f.buildAnswer(value, m.now)
	if err == nil {
		err = f.action.checkVerb(reply) //mutate:form-matches-choice
	}
	if err == nil && f.code != nil {
		reply, err = f.withCode(reply)
	}
	if err == nil && f.action.act == "" && !takesVerbs(f.d.r) {
		err = schemaform.Check(f.d.r.AnswerSchema, reply)
	}
	if err != nil {
		f.err = err.Error()
		return
	}
	m.push(m.confirm(f.d, f, f.action, reply))
}

// withCode returns an answer with the selected reason code.
func (f *formScreen) withCode(answer json.RawMessage) (json.RawMessage, error) {
	code, err := f.code.Value()
	if err != nil || code == nil {
		f.code.err, f.focus = "choose one", len(f.fields)-1
		return nil, errors.New("choose a reason code")
	}
	members, _ := schemaform.ParseObject(answer) // an answer with a verb is an object
	return members.With(schemaform.Member{Name: "codes", Value: json.RawMessage("[" + string(code) + "]")}).JSON(), nil
}

// read returns the value of the form. If a field is invalid, it moves to the first one.
func (f *formScreen) read() (value json.RawMessage, ok bool) {
	root := f.root
	if root == nil {
		root = f.fields[0].Field
	}
	value, err := root.Value()
	invalid, _ := errors.AsType[schemaform.Errors](err)
	f.err, ok = invalid.At(""), true
	for i, field := range f.fields {
		if field == f.code {
			continue // see withCode
		}
		field.err = invalid.At(field.Pointer())
		if field.err != "" && ok {
			f.focus, ok = i, false
		}
		if field.Pointer() == "" {
			f.err = ""
		}
	}
	return value, err == nil
}

// buildAnswer builds the answer from the value of the form.
func (f *formScreen) buildAnswer(value json.RawMessage, now time.Time) (json.RawMessage, error) {
	switch {
	case f.action.verb == verbApproveEdited:
		if !f.isTouched() {
			return nil, fmt.Errorf("nothing was edited: go back and use %s", verbs[verbApprove].label)
		}
		approval, _ := approvalOf(f.d.r)
		return f.action.base.With(schemaform.Member{Name: "args", Value: value}).JSON(), schemaform.Check(approval.ArgsSchema, value)
	case f.action.act != "":
		return actBody(value, now)
	case f.root != nil:
		return value, nil
	case strings.TrimSpace(f.fields[0].Text) == "" && f.code != nil:
		return f.action.base.JSON(), nil
	case strings.TrimSpace(f.fields[0].Text) == "":
		f.fields[0].err = "required"
		return nil, fmt.Errorf("say why")
	}
	return f.action.base.With(schemaform.Member{Name: f.action.reason, Value: value}).JSON(), nil
}

func (f *formScreen) title(m *model) []cell {
	return append(ownText("‹ "+verbs[f.action.verb].title+" ", styleStrong), cells(Summary(f.d.r), modeLine, styleNormal)...)
}

func (f *formScreen) hints(*model) []hint {
	hints := []hint{{"^s", "continue"}}
	if f.focus == len(f.fields)-1 {
		hints[0].key = "↵"
	}
	if len(f.fields) > 1 {
		hints = append(hints, hint{"tab", "next"})
	}
	if f.fields[f.focus].isChoice() {
		hints = append(hints, hint{"←/→", "choose"})
	} else {
		hints = append(hints, hint{"alt+↵", "new line"})
	}
	if f.scroll.more() > 0 || f.scrollOffset > 0 {
		hints = append(hints, hint{"pgup/dn", "scroll"})
	}
	return append(hints, hint{"esc", "back (text is kept)"})
}

func (f *formScreen) body(_ *model, width, height int) []string {
	s := &renderer{width: width}
	if f.d.frozen != "" {
		s.add(ownText("! ", styleStrong), spaces(2), ownText(f.d.frozen+" This can no longer be sent; your text is kept.", styleStrong))
		s.blank()
	}
	if f.err != "" {
		s.add(ownText("! ", styleStrong), spaces(2), cells(f.err, modeLine, styleStrong))
		s.blank()
	}
	from, to := 0, 0
	for i, field := range f.fields {
		start := len(s.lines)
		field.view(s, i == f.focus)
		if i == f.focus {
			from, to = start, len(s.lines)
		}
		s.blank()
	}
	s.add(nil, nil, ownText(strings.Repeat("╌", width), styleFaint))
	f.d.addQuestion(s)
	// The focused field is always on the screen, with the notice above if it fits.
	if to <= height {
		f.scroll.top = 0
	} else {
		f.scroll.top = min(max(f.scroll.top, to-height), from)
	}
	f.scrollOffset = min(f.scrollOffset, max(len(s.lines)-height-f.scroll.top, 0))
	f.scroll.top += f.scrollOffset
	return f.scroll.show(s.lines, height)
}
