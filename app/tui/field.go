package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// field is one value of a form.
type field struct {
	name, description string
	kind              fieldKind
	required          bool
	nullable          bool
	whole             bool       // it is the whole value, and no member of one
	schema            formSchema // whose part it is

	edit     editor
	options  []json.RawMessage
	selected int // which option, or unset

	// before is the value that the form began with; nil if there was none. As long as nobody touches the field it is the value, byte by byte.
	original json.RawMessage
	initial  string // what the person saw of it
	err      string
}

// unset is the choice of nothing.
const unset = -1

type fieldKind uint8

const (
	textField fieldKind = iota
	integerField
	numberField
	choiceField
	rawField
)

// fieldKinds says how each kind is called, and how what was typed becomes JSON.
var fieldKinds = [...]struct {
	hint string
	read func(text string) (json.RawMessage, error)
}{
	textField:    {"text", func(text string) (json.RawMessage, error) { return jsonString(text), nil }},
	integerField: {"whole number", literalAs(regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`), "this is no whole number, as 42 or -7")},
	numberField:  {"number", literalAs(regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`), "this is no number, as 42 or -0.5")},
	choiceField:  {"", nil},
	rawField:     {"JSON", readRaw},
}

// literalAs takes numbers as they are typed: no digit is lost, however many there are.
func literalAs(form *regexp.Regexp, complaint string) func(string) (json.RawMessage, error) {
	return func(text string) (json.RawMessage, error) {
		text = strings.TrimSpace(text)
		if !form.MatchString(text) {
			return nil, errors.New(complaint)
		}
		return json.RawMessage(text), nil
	}
}

func readRaw(text string) (json.RawMessage, error) {
	if err := strictjson.Check([]byte(text)); err != nil {
		return nil, fmt.Errorf("this is no JSON: %w", err)
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

func (f *field) setOptions(options ...json.RawMessage) { f.kind, f.options = choiceField, options }

// begin fills in the value that the form begins with.
func (f *field) setInitial(value json.RawMessage) {
	f.original = value
	var text string
	switch {
	case f.kind == choiceField:
		for i, option := range f.options {
			if string(option) == string(value) {
				f.selected = i
			}
		}
		if f.selected == unset { // none of those that are allowed
			f.kind = rawField
			f.edit = newEditor(indented(value))
		}
	case f.kind == textField && json.Unmarshal(value, &text) == nil:
		f.edit = newEditor(text)
	case f.kind == textField: // no text
		f.kind = rawField
		f.edit = newEditor(indented(value))
	default:
		f.edit = newEditor(indented(value))
	}
	f.edit.at = 0
	f.initial = f.state()
}

// indented is JSON for people to edit. Only the spaces differ.
func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}

// state is what the person sees in the field.
func (f *field) state() string {
	if f.kind == choiceField {
		return fmt.Sprint(f.selected)
	}
	return f.edit.value()
}

// isTouched reports whether somebody wrote something there.
func (f *field) isTouched() bool {
	if f.original == nil && f.kind == choiceField {
		return f.selected != unset
	}
	return f.state() != f.initial
}

// value is the field as JSON; nil if it is left out.
func (f *field) value() (json.RawMessage, error) {
	if f.original != nil && !f.isTouched() {
		return f.original, nil
	}
	value, err := f.read()
	if err != nil || value == nil {
		return nil, err
	}
	if f.whole {
		err = f.schema.check(value)
	} else {
		err = f.schema.checkMember(f.name, value)
	}
	return value, err
}

func (f *field) read() (json.RawMessage, error) {
	empty := f.edit.value() == ""
	switch {
	case f.kind == choiceField && f.selected != unset:
		return f.options[f.selected], nil
	case f.kind != choiceField && !empty:
		return fieldKinds[f.kind].read(f.edit.value())
	case f.original != nil && f.kind == textField && f.required: // emptied on purpose
		return json.RawMessage(`""`), nil
	case f.required && f.nullable:
		return json.RawMessage("null"), nil
	case f.required && f.kind == choiceField:
		return nil, errors.New("choose one")
	case f.required:
		return nil, errors.New("this must be filled in")
	}
	return nil, nil
}

// key does what a key asks for; false if it means nothing here.
func (f *field) key(k tea.KeyPressMsg) bool {
	if f.kind != choiceField {
		switch k.String() {
		case "up":
			return f.edit.up()
		case "down":
			return f.edit.down()
		}
		return f.edit.key(k)
	}
	lowest := unset
	if f.required {
		lowest = 0
	}
	switch k.String() {
	case "left", "h":
		f.selected = max(f.selected-1, lowest)
	case "right", "l", "space":
		f.selected++
		if f.selected >= len(f.options) {
			f.selected = lowest
		}
	case "backspace", "delete":
		f.selected = unset
	default:
		return false
	}
	return true
}

// How many lines of a text are shown in a form.
const maxFieldLines, maxRawLines = 5, 8

// view shows the field in the form.
func (f *field) view(s *renderer, focused bool) {
	mark := "  "
	if focused {
		mark = "▸ "
	}
	title := append(ownText(mark, styleStrong), cells(f.name, modeLine, styleStrong)...)
	hint := fieldKinds[f.kind].hint
	if f.required {
		hint = strings.TrimPrefix(hint+", required", ", ")
	}
	if hint != "" {
		title = append(title, ownText("  ("+hint+")", styleFaint)...)
	}
	s.add(nil, spaces(2), title)
	if f.description != "" {
		s.add(spaces(2), spaces(2), cells(f.description, modeLine, styleFaint))
	}
	if f.kind == choiceField {
		f.viewChoice(s)
	} else {
		height := maxFieldLines
		if f.kind == rawField {
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

// viewChoice shows all options beside each other if there is room, or else the one that is chosen.
func (f *field) viewChoice(s *renderer) {
	all := spaces(2)
	var chosen []cell
	for i, option := range f.options {
		text := optionCells(option)
		if i == f.selected {
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
	if f.selected == unset {
		chosen = ownText("nothing", styleFaint)
	}
	s.add(ownText(fmt.Sprintf("  ‹ %d/%d ", f.selected+1, len(f.options)), styleFaint), spaces(4), append(chosen[:len(chosen):len(chosen)], ownText(" ›", styleFaint)...))
}

// optionCells shows a choice: a word as it is, everything else as JSON.
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
