// Package savable says what JSON can keep: of which types a value comes back as it was, and which values do not.
package roundtrip

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/recovery"
)

var (
	marshalerType   = reflect.TypeFor[json.Marshaler]()
	textMarshalType = reflect.TypeFor[interface{ MarshalText() ([]byte, error) }]()

	unmarshalerType   = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalType = reflect.TypeFor[interface{ UnmarshalText(text []byte) error }]()
)

// HasCustomJSON reports whether a type, or a pointer to it, says itself what its JSON is.
func HasCustomJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(marshalerType) || p.Implements(marshalerType) || t.Implements(textMarshalType) || p.Implements(textMarshalType)
}

// Problems lists what in a type JSON would refuse or silently lose. where names the value in the messages.
func Problems(t reflect.Type, where string) []string { return problems(t, where, nil) }

func problems(t reflect.Type, where string, path []reflect.Type) []string {
	for _, outer := range path {
		if outer == t {
			return nil
		}
	}
	if t.Kind() == reflect.Interface && t.NumMethod() > 0 { // whatever its methods are
		return []string{fmt.Sprintf("%s holds a %s: what it is cannot be known again when it is loaded; use a concrete type", where, t)}
	}
	if HasCustomJSON(t) {
		if !readsCustomJSON(t) {
			return []string{fmt.Sprintf("%s holds a %s, which writes a JSON of its own and cannot read it: give it the other method, too", where, t)}
		}
		if embedded, lost := promotedJSON(t); lost != "" {
			return []string{fmt.Sprintf("%s holds a %s, whose JSON is that of the %s it embeds; its field %s would be lost: give the embedded field a name", where, t, embedded, lost)}
		}
		return nil
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Chan, reflect.Func, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer, reflect.Uintptr:
		return []string{fmt.Sprintf("%s holds a %s, which cannot be saved", where, t)}
	case reflect.Map:
		if !roundTripsKeys(t.Key()) {
			return []string{fmt.Sprintf("%s holds a %s, whose keys would not come back: use texts or integers, or a type with a MarshalText and an UnmarshalText that reads it", where, t)}
		}
		if lost := bypassedInMap(t, where); lost != "" {
			return []string{lost}
		}
		return problems(t.Elem(), where, path)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return problems(t.Elem(), where, path)
	case reflect.Struct:
		var found []string
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Tag.Get("json") == "-" {
				continue
			}
			if !f.IsExported() {
				found = append(found, fmt.Sprintf("%s holds a %s, whose field %s is not exported and would be lost", where, t, f.Name))
				continue
			}
			found = append(found, problems(f.Type, where+"."+f.Name, path)...)
		}
		for _, lost := range Shadowed(t) {
			found = append(found, fmt.Sprintf("%s holds a %s, whose %s", where, t, lost))
		}
		return found
	}
	return nil
}

// BypassedMethods says what of a type is written as something else than its own methods would have it, because it is in a map; "" if nothing is.
func BypassedMethods(t reflect.Type, where string) string { return bypassedIn(t, where, nil) }

func bypassedIn(t reflect.Type, where string, path []reflect.Type) (lost string) {
	if slices.Contains(path, t) || HasCustomJSON(t) {
		return ""
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Map:
		return cmp.Or(bypassedInMap(t, where), bypassedIn(t.Elem(), where, path))
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return bypassedIn(t.Elem(), where, path)
	case reflect.Struct:
		for f := range t.Fields() {
			if lost == "" && f.Tag.Get("json") != "-" {
				lost = bypassedIn(f.Type, where+"."+f.Name, path)
			}
		}
	}
	return lost
}

// bypassedInMap is Unwritten for the values of a map.
func bypassedInMap(t reflect.Type, where string) string {
	method := bypassedType(t.Elem())
	if method == nil {
		return ""
	}
	return fmt.Sprintf("%s holds a %s, and what is in a map is not written by methods of a pointer, as *%s has them: use a map of pointers", where, t, method)
}

// bypassedType is a type in the values of a map whose JSON is written by methods of its pointer; nil if there is none. The values have no address, and so
// encoding/json passes these methods over, but not those that read.
func bypassedType(t reflect.Type) reflect.Type {
	p := reflect.PointerTo(t)
	switch {
	case t.Implements(marshalerType) || t.Implements(textMarshalType):
	case p.Implements(marshalerType) || p.Implements(textMarshalType):
		return t
	case t.Kind() == reflect.Array:
		return bypassedType(t.Elem())
	case t.Kind() == reflect.Struct:
		for f := range t.Fields() {
			if f.Tag.Get("json") == "-" {
				continue
			}
			if inner := bypassedType(f.Type); inner != nil {
				return inner
			}
		}
	}
	return nil
}

// HasUntyped reports whether a value of the type has places of which the type does not say what is there: what JSON makes of those is something else than
// what was put there, an int a number and a struct a map.
func HasUntyped(t reflect.Type) bool { return hasUntyped(t, nil) }

func hasUntyped(t reflect.Type, path []reflect.Type) bool {
	if slices.Contains(path, t) || HasCustomJSON(t) {
		return false
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasUntyped(t.Elem(), path)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("json") != "-" && hasUntyped(f.Type, path) {
				return true
			}
		}
	}
	return false
}

// promotedJSON looks at a struct that has JSON methods: whether it has them from a type that it embeds, so that nothing else in it
// is part of its JSON. lost is a field that is not. Reflection does not tell whose method it is, but its JSON does.
func promotedJSON(t reflect.Type) (embedded reflect.Type, lost string) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, ""
	}
	for i := range t.NumField() {
		switch f := t.Field(i); {
		case f.Anonymous && HasCustomJSON(f.Type):
			embedded = f.Type
		case f.Tag.Get("json") != "-":
			lost = f.Name
		}
	}
	if embedded == nil {
		return nil, ""
	}
	if zero := zeroJSON(t); zero == nil || !bytes.Equal(zero, zeroJSON(embedded)) {
		return nil, ""
	}
	return embedded, lost
}

// zeroJSON is the JSON of a type's zero value; nil if it has none.
func zeroJSON(t reflect.Type) (data []byte) {
	var err error
	defer recovery.Recover(&err)
	data, err = json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nil
	}
	return data
}

// ErrNotUTF8 is the error of a value that has a text with bytes which are none.
var ErrNotUTF8 = errors.New("a string in it is not valid UTF-8, which JSON cannot hold; use []byte")

// Addressable is a value as encoding/json has to get it: behind a pointer. Methods that belong to the pointer, as those of a big.Int, are not called for what has
// no address, and it would write something else: of a big.Int {}, whatever the number.
func Addressable(v any) any {
	value := reflect.ValueOf(v)
	if !value.IsValid() || value.Kind() == reflect.Pointer { //mutate:pointer-methods-shown
		return v
	}
	p := reflect.New(value.Type())
	p.Elem().Set(value)
	return p.Interface()
}

// Encode is json.Marshal without the HTML escapes, which would make every page of HTML six times as long, and with an
// error where json.Marshal would quietly replace a byte.
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Addressable(v)); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if hasReplacement(data, v) {
		return nil, ErrNotUTF8
	}
	return data, nil
}

// Marshal is json.Marshal with the same error.
func Marshal(v any) ([]byte, error) {
	if text, ok := v.(string); ok && isPlainText(text) {
		return append(append(append(make([]byte, 0, len(text)+2), '"'), text...), '"'), nil
	}
	data, err := json.Marshal(Addressable(v))
	if err == nil && hasReplacement(data, v) {
		return nil, ErrNotUTF8
	}
	return data, err
}

// isPlainText reports whether json.Marshal writes a text as it is, between quotes. Questions and answers are often no more than that.
func isPlainText[T string | []byte](text T) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// hasReplacement reports whether the JSON of a value has a character in the place of a byte.
func hasReplacement(data []byte, v any) bool {
	// encoding/json writes \ufffd, escaped, only for bytes that are not UTF-8: the character itself is written as it is.
	for rest := data; ; {
		i := bytes.Index(rest, []byte(`\ufffd`))
		if i < 0 {
			return false
		}
		slashes := 0
		for i-slashes > 0 && rest[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 && findInvalidUTF8(reflect.ValueOf(v), 0) {
			return true
		}
		rest = rest[i+1:]
	}
}

// maxDepth is far beyond any value that JSON could hold.
const maxDepth = 1000

// findInvalidUTF8 looks for a string that is not UTF-8. It decides where the JSON alone does not: JSON that a value brings along
// may have the same escape for good.
func findInvalidUTF8(v reflect.Value, depth int) bool {
	if depth > maxDepth {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return !utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && findInvalidUTF8(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if findInvalidUTF8(v.Index(i), depth+1) {
				return true
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if findInvalidUTF8(iter.Key(), depth+1) || findInvalidUTF8(iter.Value(), depth+1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if findInvalidUTF8(v.Field(i), depth+1) {
				return true
			}
		}
	}
	return false
}
