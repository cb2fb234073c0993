package tui

import (
	"encoding/json"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata/internal/schemaform"
)

// field is one field of a form on the screen.
type field struct {
	*schemaform.Field
	label string
	edit  editor
	err   string
}

// newField returns the field with the cursor after the text. Nested values are edited as JSON.
func newField(f *schemaform.Field) *field {
	switch f.Kind {
	case schemaform.Object, schemaform.List, schemaform.OneOf:
		f.AsJSON()
	default:
	}
	return &field{Field: f, label: firstNonEmpty(f.Name, "answer"), edit: newEditor(f.Text)}
}

// newFields returns the fields of a form: one for each member of an object, else one for the whole
// value.
func newFields(root *schemaform.Field) []*field {
	if root.Kind != schemaform.Object || len(root.Fields) == 0 {
		return []*field{newField(root)}
	}
	var fields []*field
	for _, f := range root.Fields {
		fields = append(fields, newField(f))
	}
	return fields
}

func firstNonEmpty(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// isChoice reports whether the field has options instead of a text.
func (f *field) isChoice() bool { return f.Kind == schemaform.Choice || f.Kind == schemaform.Boolean }

// state returns what the person sees in the field.
func (f *field) state() string { return fmt.Sprint(f.Selected, f.Null, f.Text) }

// insert inserts a pasted text.
func (f *field) insert(text string) {
	f.edit.insert(text)
	f.takeText()
}

// takeText makes the text of the editor the input.
func (f *field) takeText() {
	if text := f.edit.value(); text != f.Text {
		f.Text, f.Null = text, false
	}
}

// key handles a key; it returns false if the key has no meaning here.
func (f *field) key(k tea.KeyPressMsg) bool {
	if !f.isChoice() {
		defer f.takeText()
		switch k.String() {
		case "up":
			return f.edit.up()
		case "down":
			return f.edit.down()
		}
		return f.edit.key(k)
	}
	lowest := schemaform.Unset
	if f.Required {
		lowest = 0
	}
	switch k.String() {
	case "left", "h":
		f.Selected = max(f.Selected-1, lowest)
	case "right", "l", "space":
		f.Selected++
		if f.Selected >= len(f.Options) {
			f.Selected = lowest
		}
	case "backspace", "delete":
		f.Selected = schemaform.Unset
	default:
		return false
	}
	return true
}

// How many lines of a text are shown in a form.
const maxFieldLines, maxRawLines = 5, 8

// view renders the field.
func (f *field) view(s *renderer, focused bool) {
	mark := "  "
	if focused {
		mark = "▸ "
	}
	title := append(ownText(mark, styleStrong), cells(f.label, modeLine, styleStrong)...)
	hint := ""
	if !f.isChoice() {
		hint = f.Kind.String()
	}
	if f.Null {
		hint = strings.TrimPrefix(hint+", null", ", ")
	}
	if f.Required {
		hint = strings.TrimPrefix(hint+", required", ", ")
	}
	if hint != "" {
		title = append(title, ownText("  ("+hint+")", styleFaint)...)
	}
	s.add(nil, spaces(2), title)
	if f.Description != "" {
		s.add(spaces(2), spaces(2), cells(f.Description, modeLine, styleFaint))
	}
	if f.isChoice() {
		f.viewChoice(s)
	} else {
		height := maxFieldLines
		if f.Kind == schemaform.JSON {
			height = maxRawLines
		}
		for _, line := range f.edit.view(s.width-4, height, focused) {
			s.lines = append(s.lines, draw(ownText("  │ ", styleFaint))+line)
		}
	}
	if f.err != "" {
		s.add(ownText("  ! ", styleStrong), spaces(4), cells(f.err, modeLine, styleStrong))
	}
}

// viewChoice shows all options in a row if they fit, or else the selected one.
func (f *field) viewChoice(s *renderer) {
	all := spaces(2)
	var chosen []cell
	for i, option := range f.Options {
		text := optionCells(option.Value)
		if i == f.Selected {
			chosen = text
			text = append(append(ownText("(•) ", styleStrong), text...), spaces(2)...)
		} else {
			text = append(append(ownText("( ) ", styleFaint), text...), spaces(2)...)
		}
		all = append(all, text...)
	}
	if widthOfCells(all) <= s.width {
		s.add(nil, nil, all)
		return
	}
	if f.Selected == schemaform.Unset {
		chosen = ownText("nothing", styleFaint)
	}
	s.add(ownText(fmt.Sprintf("  ‹ %d/%d ", f.Selected+1, len(f.Options)), styleFaint), spaces(4), append(chosen[:len(chosen):len(chosen)], ownText(" ›", styleFaint)...))
}

// optionCells renders an option: a string as it is, other values as JSON.
func optionCells(option json.RawMessage) []cell {
	var text string
	if json.Unmarshal(option, &text) == nil && isPlainName(text) {
		return cells(text, modeLine, styleNormal)
	}
	switch string(option) {
	case "true":
		return ownText("yes", styleNormal)
	case "false":
		return ownText("no", styleNormal)
	}
	return cells(string(option), modeLine, styleNormal)
}
