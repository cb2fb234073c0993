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
	whole             bool       // it is the whole value, not a member
	schema            formSchema // the schema it belongs to

	edit     editor
	options  []json.RawMessage
	selected int // index of the option, or unset

	// original is the initial value; nil if there was none. An untouched field returns it byte for
	// byte.
	original json.RawMessage
	initial  string // its initial text
	err      string
}

// unset means that no option is selected.
const unset = -1

type fieldKind uint8

const (
	textField fieldKind = iota
	integerField
	numberField
	choiceField
	rawField
)

// fieldKinds defines the name of each kind, and how typed text becomes JSON.
var fieldKinds = [...]struct {
	hint string
	read func(text string) (json.RawMessage, error)
}{
	textField:    {"text", func(text string) (json.RawMessage, error) { return jsonString(text), nil }},
	integerField: {"integer", literalAs(regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`), "not an integer, such as 42 or -7")},
	numberField:  {"number", literalAs(regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`), "not a number, such as 42 or -0.5")},
	choiceField:  {"", nil},
	rawField:     {"JSON", readRaw},
}

// literalAs accepts numbers as typed, without losing digits.
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
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	return json.RawMessage(strings.TrimSpace(text)), nil
}

func (f *field) setOptions(options ...json.RawMessage) { f.kind, f.options = choiceField, options }

// setInitial sets the initial value.
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
		if f.selected == unset { // not one of the options
			f.kind = rawField
			f.edit = newEditor(indented(value))
		}
	case f.kind == textField && json.Unmarshal(value, &text) == nil:
		f.edit = newEditor(text)
	case f.kind == textField: // not a string
		f.kind = rawField
		f.edit = newEditor(indented(value))
	default:
		f.edit = newEditor(indented(value))
	}
	f.edit.at = 0
	f.initial = f.state()
}

// indented formats JSON for editing. Only white space changes.
func indented(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}

// state returns what the person sees in the field.
func (f *field) state() string {
	if f.kind == choiceField {
		return fmt.Sprint(f.selected)
	}
	return f.edit.value()
}

// isTouched reports whether the field was edited.
func (f *field) isTouched() bool {
	if f.original == nil && f.kind == choiceField {
		return f.selected != unset
	}
	return f.state() != f.initial
}

// value returns the field as JSON; nil if it is omitted.
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
		return nil, errors.New("required")
	}
	return nil, nil
}

// key handles a key; it returns false if the key has no meaning here.
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

// view renders the field.
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

// viewChoice shows all options in a row if they fit, or else the selected one.
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
