package savable

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Shadowed lists the fields of a struct that encoding/json passes over, because another one has the same name: fields of what it embeds
// that are deeper than another, or as deep. Go code has them all the same, and loses them without a word.
func Shadowed(t reflect.Type) []string {
	var lost []string
	all := jsonFields(t, "", nil)
	for i, f := range all {
		if len(f.path) > 0 && !f.wins(all, i) {
			lost = append(lost, fmt.Sprintf("field %s would be lost: another one has the JSON name %q, too; give one of them a name of its own", f.goName, f.name))
		}
	}
	return lost
}

// jsonField is a field as encoding/json sees it from the outermost struct.
type jsonField struct {
	name, goName string
	path         []reflect.Type // of the structs that it is in, by embedding, without the outermost
	tagged       bool
	typ          reflect.Type
}

// jsonFields lists the fields of a struct, those of structs that it embeds included.
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
				all = append(all, jsonFields(inner, goPath+f.Name+".", append(slices.Clip(path), inner))...)
			}
		case f.IsExported():
			found := jsonField{name: name, goName: goPath + f.Name, path: path, tagged: name != "", typ: f.Type}
			if !found.tagged {
				found.name = f.Name
			}
			all = append(all, found)
		}
	}
	return all
}

// wins reports whether the JSON has this field, the ith of all: it is the least deep of its name or, of several, the only one with a tag.
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
