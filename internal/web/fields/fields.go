// Package fields connects forms that are generated from a JSON schema with browsers: the data of
// their templates, and the input that a browser sent.
package fields

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/actiontext"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// The fields of a generated form are named by a letter and the JSON pointer of their value. The
// schema, never the browser, says which type a value has.
//
//	v/amount   the text of a value
//	s/color    the index of the selected option
//	o/payment  the index of the selected variant
//	l/tags     the number of items of a list that was shown
//	n/note     null was selected
//
// The button op=add:/tags adds an item, op=del:/tags/1 removes one, and op=refresh shows the fields
// of the selected variant.
const (
	TextPrefix, SelectPrefix, variantPrefix, listPrefix, nullPrefix = "v", "s", "o", "l", "n"
	OpName                                                          = "op"
)

// maxItems is how many items of a list a form may have.
const maxItems = 500

// Fill sets the input of a form to what a browser sent. Values that the rules do not let people
// change have no input and stay as they are.
func (f Field) Fill(sent url.Values) {
	at := f.Pointer()
	if f.Locked() {
		return
	}
	if f.Nullable {
		f.Null = sent.Get(nullPrefix+at) != ""
	}
	switch f.Kind {
	case schemaform.Text, schemaform.Integer, schemaform.Number, schemaform.JSON:
		if sent.Has(TextPrefix + at) {
			f.Text = strings.ReplaceAll(sent.Get(TextPrefix+at), "\r\n", "\n") // browsers send CRLF
		}
	case schemaform.Boolean, schemaform.Choice:
		if sent.Has(SelectPrefix + at) {
			f.Selected = indexOf(sent.Get(SelectPrefix+at), len(f.Options))
		}
	case schemaform.Object:
		for _, child := range f.Fields {
			f.inside(child).Fill(sent)
		}
	case schemaform.List:
		if sent.Has(listPrefix + at) {
			n, _ := strconv.Atoi(sent.Get(listPrefix + at))
			resizeList(f.Field, min(max(n, 0), maxItems))
		}
		for _, child := range f.Fields {
			f.inside(child).Fill(sent)
		}
	case schemaform.OneOf:
		if sent.Has(variantPrefix + at) {
			f.Selected = indexOf(sent.Get(variantPrefix+at), len(f.Fields))
		}
		if f.Selected >= 0 && f.Selected < len(f.Fields) {
			f.inside(f.Fields[f.Selected]).Fill(sent)
		}
	}
}

func resizeList(f *schemaform.Field, n int) {
	for len(f.Fields) < n {
		if f.AddItem() == nil {
			return
		}
	}
	for len(f.Fields) > n {
		f.RemoveItem(len(f.Fields) - 1)
	}
}

// indexOf reads an index of n options.
func indexOf(text string, n int) int {
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= n {
		return schemaform.Unset
	}
	return i
}

// Change applies a button that changes the form itself.
func Change(f *schemaform.Field, op string) {
	if at, ok := strings.CutPrefix(op, "add:"); ok {
		if list := f.Find(at); list != nil && list.Kind == schemaform.List && len(list.Fields) < maxItems {
			list.AddItem()
		}
	}
	if at, ok := strings.CutPrefix(op, "del:"); ok {
		parent, index := at[:max(strings.LastIndex(at, "/"), 0)], at[strings.LastIndex(at, "/")+1:]
		if list := f.Find(parent); list != nil && list.Kind == schemaform.List {
			if i := indexOf(index, len(list.Fields)); i >= 0 {
				list.RemoveItem(i)
			}
		}
	}
}

// Field is the data of the template of one field.
type Field struct {
	*schemaform.Field
	Error  string
	Errors schemaform.Errors
	// Whole reports that the field is the whole answer.
	Whole bool
	// ByValue sends an option, which is a string, as itself instead of its index.
	ByValue bool
	// Editable, if Limited is set, are the pointers of what the rules let people change.
	Editable []string
	Limited  bool
}

// Locked reports whether the rules let people change neither the value of the field nor one inside.
func (f Field) Locked() bool {
	at := f.Pointer()
	return f.Limited && !slices.ContainsFunc(f.Editable, func(p string) bool {
		return at == p || strings.HasPrefix(at, p+"/") || strings.HasPrefix(p, at+"/")
	})
}

// LockedFields returns the fields inside that people cannot change.
func (f Field) LockedFields() []Field {
	return slices.DeleteFunc(f.children(), func(c Field) bool { return !c.Locked() })
}

// inside returns the data of a field inside this one.
func (f Field) inside(child *schemaform.Field) Field {
	d := Of(child, f.Errors)
	d.Editable, d.Limited, d.ByValue = f.Editable, f.Limited, f.ByValue
	return d
}

// Of returns the data of the template of a field.
func Of(f *schemaform.Field, errs schemaform.Errors) Field {
	return Field{Field: f, Error: errs.At(f.Pointer()), Errors: errs, Whole: f.Pointer() == ""}
}

// ID returns the id of the input element.
func (f Field) ID() string {
	return "f" + strings.NewReplacer("/", "-", "~", "_").Replace(f.Pointer())
}

// Label returns the name of the field for people.
func (f Field) Label() string {
	if f.Title != "" {
		return f.Title
	}
	return actiontext.Label(f.Name)
}

// Input returns the kind of input as a word for the template.
func (f Field) Input() string {
	return [...]string{"text", "integer", "number", "choice", "choice", "object", "list", "oneof", "json"}[f.Kind]
}

// IsLong reports whether the text needs several lines.
func (f Field) IsLong() bool {
	return strings.Contains(f.Text, "\n") || len(f.Text) > 80 || f.Limits.MaxLength != nil && *f.Limits.MaxLength > 200
}

// Children returns the data of the fields inside that people can change.
func (f Field) Children() []Field {
	return slices.DeleteFunc(f.children(), Field.Locked)
}

func (f Field) children() (list []Field) {
	for _, child := range f.Fields {
		list = append(list, f.inside(child))
	}
	return list
}

// Variant returns the data of the selected variant.
func (f Field) Variant() *Field {
	if f.Selected < 0 || f.Selected >= len(f.Fields) {
		return nil
	}
	d := f.inside(f.Fields[f.Selected])
	return &d
}

// OptionValue returns what a browser sends for an option.
func (f Field) OptionValue(index int, o schemaform.Option) string {
	if f.ByValue {
		return StringOf(o.Value)
	}
	return strconv.Itoa(index)
}

// OptionText returns the text of an option.
func (f Field) OptionText(o schemaform.Option) string {
	if o.Title != "" {
		return o.Title
	}
	var text string
	if json.Unmarshal(o.Value, &text) == nil && text != "" {
		return text
	}
	return string(o.Value)
}

// StringOf returns a JSON string; "" for another value.
func StringOf(value json.RawMessage) string {
	var text string
	_ = json.Unmarshal(value, &text) // another value leaves it empty
	return text
}
