package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// formScreen asks for the input of a verb: a reason, edited arguments, or a whole answer. It is
// kept after it closes, so that typed text is restored when the same verb is chosen for the same
// request.
type formScreen struct {
	d            *detailScreen
	action       action
	fields       []*field
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
	if !o.needsForm() && parseSchema(d.r.AnswerSchema).check(o.answer()) == nil {
		m.push(m.confirm(d, nil, o, o.answer()))
		return
	}
	key := draftKey{d.r.ID, d.r.Shown, string(d.r.AnswerSchema), o.verb}
	form, ok := m.drafts[key]
	if !ok {
		form = &formScreen{fields: fieldsOf(d, o)}
		m.drafts[key] = form
	}
	form.d, form.action, form.err = d, o, ""
	m.push(form)
}

// needsForm reports whether the verb needs input.
func (o action) needsForm() bool {
	return o.verb == verbAnswer || o.verb == verbApproveEdited || o.reason != ""
}

// fieldsOf returns the fields of a form.
func fieldsOf(d *detailScreen, o action) []*field {
	s := parseSchema(d.r.AnswerSchema)
	switch {
	case o.act != "":
		return []*field{{name: o.reason, kind: textField, required: true, selected: unset}}
	case o.verb == verbApproveEdited:
		approval, _ := approvalOf(d.r)
		return argFields(parseSchema(approval.ArgsSchema), argsOf(d.r))
	case IsHold(d.r):
		return argFields(s, d.r.Data)
	case o.reason != "" && s.check(writeObject(append(o.base[:len(o.base):len(o.base)], rawMember{o.reason, json.RawMessage(`"x"`)}))) == nil:
		f := s.field(o.reason, s.property(o.reason))
		f.required = true
		return []*field{f}
	}
	fields := s.fields()
	for _, f := range fields { // an approval that needs more than the verb
		if value := get(o.base, f.name); value != nil {
			f.setInitial(value)
		}
	}
	return fields
}

// argFields returns the fields for existing arguments. Arguments that the schema does not know
// become JSON fields.
func argFields(s formSchema, args json.RawMessage) []*field {
	members, isObject := rawMembers(args)
	if !isObject || len(s.properties) == 0 && len(members) == 0 {
		f := s.wholeField()
		f.setInitial(args)
		return []*field{f}
	}
	var fields []*field
	if len(s.properties) > 0 {
		fields = s.fields()
	}
	for _, m := range members {
		if s.property(m.name) == nil {
			fields = append(fields, &field{name: m.name, kind: rawField, selected: unset, schema: s})
		}
	}
	for _, f := range fields {
		if value := get(members, f.name); value != nil {
			f.setInitial(value)
		}
	}
	return fields
}

// scrollStep is how many lines the question scrolls.
const scrollStep = 5

func (f *formScreen) isTouched() bool {
	for _, field := range f.fields {
		if field.isTouched() {
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
	if field := f.fields[f.focus]; field.kind != choiceField {
		field.edit.insert(text)
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
	reply, err := f.buildAnswer(value)
	if err == nil {
		err = f.action.checkVerb(reply) //mutate:form-matches-choice
	}
	if err == nil && f.action.act == "" {
		err = parseSchema(f.d.r.AnswerSchema).check(reply)
	}
	if err != nil {
		f.err = err.Error()
		return
	}
	m.push(m.confirm(f.d, f, f.action, reply))
}

// read reads all fields, and moves to the first invalid one.
func (f *formScreen) read() (members []rawMember, ok bool) {
	f.err, ok = "", true
	for i, field := range f.fields {
		value, err := field.value()
		field.err = ""
		if err != nil {
			field.err = err.Error()
			if ok {
				f.focus = i
			}
			ok = false
		}
		if value != nil {
			members = append(members, rawMember{field.name, value})
		}
	}
	return members, ok
}

// buildAnswer builds the answer from the fields.
func (f *formScreen) buildAnswer(values []rawMember) (json.RawMessage, error) {
	whole := len(f.fields) == 1 && f.fields[0].whole
	switch {
	case f.action.verb == verbApproveEdited:
		args := writeObject(values)
		if whole {
			args = values[0].value
		}
		approval, _ := approvalOf(f.d.r)
		if !f.isTouched() {
			return nil, fmt.Errorf("nothing was edited: go back and use %s", verbs[verbApprove].label)
		}
		return writeObject(append(f.action.base[:len(f.action.base):len(f.action.base)], rawMember{"args", args})), validate(approval.ArgsSchema, args)
	case whole:
		return values[0].value, nil
	case len(f.fields) == 1 && f.fields[0].name == f.action.reason:
		if strings.TrimSpace(f.fields[0].edit.value()) == "" {
			f.fields[0].err = "required"
			return nil, fmt.Errorf("say why")
		}
		if f.action.act != "" {
			return writeObject([]rawMember{{"text", values[0].value}}), nil
		}
		return writeObject(append(f.action.base[:len(f.action.base):len(f.action.base)], values...)), nil
	}
	return writeObject(values), nil
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
	if f.fields[f.focus].kind == choiceField {
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
