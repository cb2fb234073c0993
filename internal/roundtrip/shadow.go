package roundtrip

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Shadowed lists the fields of a struct that encoding/json ignores because another field has the
// same JSON name: fields without a tag next to a tagged one, and embedded fields that are deeper
// than, or as deep as, another. Their values would be lost silently.
func Shadowed(t reflect.Type) []string {
	var lost []string
	all := jsonFields(t, "", nil)
	for i, f := range all {
		if !f.wins(all, i) {
			lost = append(lost, fmt.Sprintf("field %s would be lost: another field also has the JSON name %q; rename one of them", f.goName, f.name))
		}
	}
	return lost
}

// Field is a member of a struct's JSON.
type Field struct {
	reflect.StructField
	// Member is its JSON name.
	Member string
	// Optional reports that the member may be missing: it is omitted if empty, or is in a struct
	// embedded by pointer.
	Optional bool
	// Quoted reports that the value is written as a string, by the option ",string".
	Quoted bool
}

// Fields lists the members that encoding/json writes for a struct, in the order of its fields.
func Fields(t reflect.Type) []Field {
	var written []Field
	all := jsonFields(t, "", nil)
	for i, f := range all {
		if f.wins(all, i) {
			_, options, _ := strings.Cut(f.field.Tag.Get("json"), ",")
			has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
			written = append(written, Field{
				StructField: f.field, Member: f.name,
				Optional: f.pointed || has("omitempty") || has("omitzero"), Quoted: has("string") && quotable(f.typ),
			})
		}
	}
	return written
}

// quotable reports whether the option ",string" applies to a type.
func quotable(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if HasCustomJSON(t) {
		return false
	}
	return t.Kind() == reflect.String || t.Kind() >= reflect.Bool && t.Kind() <= reflect.Float64
}

// jsonField is a field as encoding/json sees it from the outermost struct.
type jsonField struct {
	name, goName string
	path         []reflect.Type // the embedded structs that contain it, without the outermost
	pointed      bool           // one of them may be nil
	tagged       bool
	typ          reflect.Type
	field        reflect.StructField
}

// jsonFields lists the fields of a struct, including those of embedded structs.
func jsonFields(t reflect.Type, goPath string, path []reflect.Type) []jsonField {
	var all []jsonField
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("json") == "-":
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			if !slices.Contains(path, inner) {
				for _, found := range jsonFields(inner, goPath+f.Name+".", append(slices.Clip(path), inner)) {
					found.pointed = found.pointed || f.Type.Kind() == reflect.Pointer
					all = append(all, found)
				}
			}
		case f.IsExported() || f.Anonymous && inner.Kind() == reflect.Struct:
			found := jsonField{name: name, goName: goPath + f.Name, path: path, tagged: name != "", typ: f.Type, field: f}
			if !found.tagged {
				found.name = f.Name
			}
			all = append(all, found)
		}
	}
	return all
}

// wins reports whether the JSON has this field, the ith of all: it is the least deep with its name
// or, of several, the only one with a tag.
func (f jsonField) wins(all []jsonField, i int) bool {
	for k, other := range all {
		if k == i || other.name != f.name {
			continue
		}
		deeper := len(f.path) - len(other.path)
		if deeper > 0 || deeper == 0 && (other.tagged || !f.tagged) {
			return false
		}
	}
	return true
}
