// Package schemaform turns a JSON Schema into the fields of a form, and the input of the fields
// into JSON. The terminal inbox, web pages and modals share it; it does not render anything.
//
//	form := schemaform.New(answerSchema, nil)
//	form.Find("/amount").Text = "120"
//	answer, err := form.Value() // err is an Errors with the JSON pointer of each invalid field
//
// Nothing is lost: numbers keep the digits as written, null and missing members differ, members
// that the schema does not know are kept, and a field that was not edited returns its original
// bytes. A part of a schema that has no field of its own becomes a field for JSON text.
package schemaform

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Kind is the kind of input that a field takes.
type Kind uint8

const (
	// Text is a string: Text.
	Text Kind = iota
	// Integer is an integer with any number of digits: Text.
	Integer
	// Number is a number with any number of digits: Text.
	Number
	// Boolean is a choice between true and false: Selected.
	Boolean
	// Choice is one of several values: Selected.
	Choice
	// Object has a field for each member: Fields.
	Object
	// List has a field for each item: Fields, AddItem and RemoveItem.
	List
	// OneOf is one of several schemas: Selected is an index of Fields.
	OneOf
	// JSON is any other value, written as JSON: Text.
	JSON
)

// String returns the kind as people read it.
func (k Kind) String() string {
	return [...]string{"text", "integer", "number", "yes or no", "choice", "object", "list", "variant", "JSON"}[k]
}

// Unset is Selected if nothing is selected.
const Unset = -1

// Option is a value that can be selected.
type Option struct {
	Value json.RawMessage
	Title string // "" if the schema has none
}

// Limits are the bounds of a value as the schema writes them; "" and nil for those it does not
// have.
type Limits struct {
	Minimum, Maximum                   json.Number
	ExclusiveMinimum, ExclusiveMaximum json.Number
	MinLength, MaxLength               *int
	MinItems, MaxItems                 *int
	Pattern                            string
}

// Field is one input of a form. It is not safe for concurrent use.
type Field struct {
	// Name is the name of a member; "" for the whole value and for an item of a list.
	Name               string
	Title, Description string
	Kind               Kind
	Format             string // such as "date-time" or "email"
	Required, Nullable bool
	Default            json.RawMessage // a suggestion; nil if there is none
	Limits             Limits
	Options            []Option // of Boolean and Choice

	// Text and Selected are the input. Null selects null instead of any other input.
	Text     string
	Selected int
	Null     bool
	// Fields are the members of an Object, the items of a List, or the variants of a OneOf.
	Fields []*Field

	form   *form
	parent *Field
	schema json.RawMessage
	refs   []string // the references that lead here
	// original is the initial value; nil if there was none.
	original json.RawMessage
	initial  input
}

// input is the input of a field without its fields.
type input struct {
	text     string
	selected int
	null     bool
	count    int // of the items of a list
}

func (f *Field) input() input {
	now := input{f.Text, f.Selected, f.Null, 0}
	if f.Kind == List {
		now.count = len(f.Fields)
	}
	return now
}

// Pointer returns the JSON pointer of the value of the field.
func (f *Field) Pointer() string {
	if f.parent == nil {
		return ""
	}
	switch f.parent.Kind {
	case OneOf:
		return f.parent.Pointer()
	case List:
		return f.parent.Pointer() + "/" + strconv.Itoa(slices.Index(f.parent.Fields, f))
	default:
		return f.parent.Pointer() + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(f.Name)
	}
}

// Field returns the field of a member; nil if there is none.
func (f *Field) Field(name string) *Field {
	if f.Kind != Object {
		return nil
	}
	for _, child := range f.Fields {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// Find returns the field with a JSON pointer; nil if there is none. Of variants it searches the
// selected one, and it returns a field inside of it rather than the OneOf field.
func (f *Field) Find(pointer string) *Field {
	if f.Kind == OneOf && pointer != f.Pointer() {
		if f.Selected == Unset {
			return nil
		}
		return f.Fields[f.Selected].Find(pointer)
	}
	own := f.Pointer()
	if pointer == own {
		return f
	}
	if !strings.HasPrefix(pointer, own+"/") || f.Kind != Object && f.Kind != List {
		return nil
	}
	for _, child := range f.Fields {
		if found := child.Find(pointer); found != nil {
			return found
		}
	}
	return nil
}

// Schema returns the schema of the field; nil for a member that the schema does not know.
func (f *Field) Schema() json.RawMessage { return f.schema }

// Original returns the initial value; nil if there was none.
func (f *Field) Original() json.RawMessage { return f.original }

// Touched reports whether the input differs from the initial one.
func (f *Field) Touched() bool {
	return f.input() != f.initial || slices.ContainsFunc(f.Fields, (*Field).Touched)
}

// AddItem adds an empty item to a list and returns it; nil if the form has too many fields.
func (f *Field) AddItem() *Field {
	if f.Kind != List || f.form.left <= 0 {
		return nil
	}
	item := f.newItem()
	f.Fields = append(f.Fields, item)
	return item
}

// RemoveItem removes an item of a list.
func (f *Field) RemoveItem(index int) { f.Fields = slices.Delete(f.Fields, index, index+1) }

// Set replaces the input by a JSON value, as if a person had entered it. A value that does not fit
// the kind turns the field into JSON.
func (f *Field) Set(value json.RawMessage) { f.enter(value) }

// SetInitial sets the initial value.
func (f *Field) SetInitial(value json.RawMessage) {
	f.enter(value)
	f.keep(value)
}

// keep makes the current input the initial one.
func (f *Field) keep(value json.RawMessage) {
	f.original, f.initial = value, f.input()
	switch f.Kind {
	case Object:
		members, _ := ParseObject(value)
		for _, child := range f.Fields {
			if member := members.Get(child.Name); member != nil {
				child.keep(member)
			}
		}
	case List:
		items, _ := parseArray(value)
		for i, child := range f.Fields {
			child.keep(items[i])
		}
	case OneOf:
		if f.Selected != Unset {
			f.Fields[f.Selected].keep(value)
		}
	default:
	}
}

// AsJSON turns the field into one for JSON text, with the same initial value. A form that cannot
// show nested fields uses it.
func (f *Field) AsJSON() {
	original := f.original
	f.Kind, f.Fields, f.Options, f.Selected = JSON, nil, nil, Unset
	f.Text, f.Null = "", false
	if original != nil {
		f.Text = indent(original)
	}
	f.initial = f.input()
}

// enter sets the input to a value.
func (f *Field) enter(value json.RawMessage) {
	f.Null, f.Text = false, ""
	var text string
	switch {
	case string(value) == "null" && f.Nullable && !f.hasOption(value):
		f.Null = true
	case (f.Kind == Choice || f.Kind == Boolean) && f.hasOption(value):
		f.Selected = slices.IndexFunc(f.Options, func(o Option) bool { return string(o.Value) == string(value) })
	case f.Kind == Text && string(value) != "null" && json.Unmarshal(value, &text) == nil:
		f.Text = text
	case f.Kind == Integer || f.Kind == Number || f.Kind == JSON:
		f.Text = indent(value)
	case f.Kind == Object && f.enterObject(value), f.Kind == List && f.enterList(value), f.Kind == OneOf && f.enterVariant(value):
	default:
		f.Kind, f.Fields, f.Options, f.Selected, f.Text = JSON, nil, nil, Unset, indent(value)
	}
}

// clear removes the input.
func (f *Field) clear() {
	f.Text, f.Selected, f.Null = "", Unset, false
	if f.Kind == List {
		f.Fields = nil
	}
	for _, child := range f.Fields {
		child.clear()
	}
}

func (f *Field) hasOption(value json.RawMessage) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return string(o.Value) == string(value) })
}

// enterObject sets the fields of an object. Members that the schema does not know get a field for
// JSON.
func (f *Field) enterObject(value json.RawMessage) bool {
	members, ok := ParseObject(value)
	if !ok || len(members) > f.form.left {
		return false
	}
	for _, child := range f.Fields {
		if members.Get(child.Name) == nil {
			child.clear()
		}
	}
	for _, m := range members {
		child := f.Field(m.Name)
		if child == nil {
			child = f.form.take(&Field{Name: m.Name, Kind: JSON, Selected: Unset, form: f.form, parent: f})
			child.initial = child.input()
			f.Fields = append(f.Fields, child)
		}
		child.enter(m.Value)
	}
	return true
}

func (f *Field) enterList(value json.RawMessage) bool {
	items, ok := parseArray(value)
	if !ok || len(items) > f.form.left {
		return false
	}
	f.Fields = nil
	for _, item := range items {
		child := f.newItem()
		f.Fields = append(f.Fields, child)
		child.enter(item)
	}
	return true
}

// enterVariant selects the first variant that accepts the value.
func (f *Field) enterVariant(value json.RawMessage) bool {
	for i, variant := range f.Fields {
		if variant.check(value) == nil {
			f.Selected = i
			variant.enter(value)
			return true
		}
	}
	return false
}

// indent formats JSON for editing. Only white space changes.
func indent(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "", "  ") != nil {
		return string(value)
	}
	return b.String()
}
