// Package roundtrip checks whether values survive a round trip through JSON: for which types a
// value is restored exactly, and which values are not.
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

// HasCustomJSON reports whether a type, or a pointer to it, defines its own JSON.
func HasCustomJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Implements(marshalerType) || p.Implements(marshalerType) || t.Implements(textMarshalType) || p.Implements(textMarshalType)
}

// Problems lists the parts of a type that JSON would reject or silently lose. where names the value
// in the messages.
func Problems(t reflect.Type, where string) []string { return problems(t, where, nil, true) }

// lostParts is Problems for a value that is encoded, but not decoded as its own type.
func lostParts(t reflect.Type, where string, path []reflect.Type) []string {
	return problems(t, where, path, false)
}

func problems(t reflect.Type, where string, path []reflect.Type, decoded bool) []string {
	for _, outer := range path {
		if outer == t {
			return nil
		}
	}
	if decoded && t.Kind() == reflect.Interface && t.NumMethod() > 0 { // regardless of its methods
		return []string{fmt.Sprintf("%s holds a %s, whose dynamic type is unknown when it is loaded; use a concrete type", where, t)}
	}
	if HasCustomJSON(t) {
		if decoded && !readsCustomJSON(t) {
			return []string{fmt.Sprintf("%s holds a %s, which writes custom JSON but cannot read it: add the matching unmarshal method", where, t)}
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
		if decoded && !roundTripsKeys(t.Key()) {
			return []string{fmt.Sprintf("%s holds a %s, whose keys cannot be restored: use strings or integers, or a type with matching MarshalText and UnmarshalText", where, t)}
		}
		if lost := bypassedInMap(t, where); lost != "" {
			return []string{lost}
		}
		return problems(t.Elem(), where, path, decoded)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return problems(t.Elem(), where, path, decoded)
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
			found = append(found, problems(f.Type, where+"."+f.Name, path, decoded)...)
		}
		for _, lost := range Shadowed(t) {
			found = append(found, fmt.Sprintf("%s holds a %s, whose %s", where, t, lost))
		}
		return found
	}
	return nil
}

// bypassedIn describes a type in a map whose JSON methods encoding/json does not call; "" if there
// is none.
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

// bypassedInMap is bypassedIn for the values of one map.
func bypassedInMap(t reflect.Type, where string) string {
	method := bypassedType(t.Elem())
	if method == nil {
		return ""
	}
	return fmt.Sprintf("%s holds a %s, but encoding/json does not call the pointer methods of *%s for map values: use a map of pointers", where, t, method)
}

// bypassedType returns a type in the values of a map whose JSON is written by methods of its
// pointer; nil if there is none. Map values have no address, so encoding/json does not call these
// methods for writing, only for reading.
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

// HasUntyped reports whether a value of the type has untyped places. JSON changes what is stored
// there: an int becomes a number and a struct a map.
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

// promotedJSON reports whether the JSON methods of a struct are promoted from an embedded type, so
// that its other fields are not part of its JSON. lost is such a field. Reflection does not tell
// whose method it is, but the JSON does.
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

// zeroJSON returns the JSON of a type's zero value; nil if it has none.
func zeroJSON(t reflect.Type) (data []byte) {
	var err error
	defer recovery.Recover(&err)
	data, err = json.Marshal(reflect.New(t).Interface())
	if err != nil {
		return nil
	}
	return data
}

// ErrNotUTF8 is returned for a string that is not valid UTF-8. The error of a larger value names
// the string.
var ErrNotUTF8 = errors.New("not valid UTF-8, which JSON cannot hold; use []byte")

// Addressable returns a pointer to the value for encoding/json. Pointer methods, such as those of
// big.Int, are not called for values without an address; a big.Int would be written as {}.
func Addressable(v any) any {
	value := reflect.ValueOf(v)
	if !value.IsValid() || value.Kind() == reflect.Pointer { //mutate:pointer-methods-shown
		return v
	}
	p := reflect.New(value.Type())
	p.Elem().Set(value)
	return p.Interface()
}

// Encode is json.Marshal without HTML escapes, which would multiply the size of HTML by six, and
// with an error where json.Marshal would silently replace a byte ([ErrNotUTF8]) or bypass the JSON
// methods of a value ([ErrPointerMethods]).
func Encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(Addressable(v)); err != nil {
		return nil, err
	}
	if err := CheckMethods(v); err != nil {
		return nil, err
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if err := checkUTF8(data, v); err != nil {
		return nil, err
	}
	return data, nil
}

// Marshal is json.Marshal with the same errors.
func Marshal(v any) ([]byte, error) {
	if text, ok := v.(string); ok && isPlainText(text) {
		return append(append(append(make([]byte, 0, len(text)+2), '"'), text...), '"'), nil
	}
	data, err := json.Marshal(Addressable(v))
	if err == nil {
		err = CheckMethods(v)
	}
	if err == nil {
		err = checkUTF8(data, v)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// isPlainText reports whether json.Marshal writes a text unchanged between quotes. This is a common
// case for questions and answers.
func isPlainText[T string | []byte](text T) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// checkUTF8 returns an error if the JSON of a value has a replacement character for an invalid
// byte, or the byte itself.
func checkUTF8(data []byte, v any) error {
	if !utf8.Valid(data) { // raw JSON is written unchanged
		return fmt.Errorf("raw JSON in it is %w", ErrNotUTF8)
	}
	// encoding/json writes the escape \ufffd only for invalid bytes; the character itself is not
	// escaped.
	for rest := data; ; {
		i := bytes.Index(rest, []byte(`\ufffd`))
		if i < 0 {
			return nil
		}
		slashes := 0
		for i-slashes > 0 && rest[i-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			if where := findInvalidUTF8(reflect.ValueOf(v), "it", 0); where != "" {
				return fmt.Errorf("%s is %w", where, ErrNotUTF8)
			}
		}
		rest = rest[i+1:]
	}
}

// maxDepth exceeds the depth of any value that JSON can hold.
const maxDepth = 1000

// findInvalidUTF8 returns the path of a string that is not UTF-8; "" if there is none. The JSON
// alone is not sufficient: raw JSON inside a value may contain the same escape legitimately.
func findInvalidUTF8(v reflect.Value, where string, depth int) string {
	if depth > maxDepth {
		return ""
	}
	switch v.Kind() {
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return where
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			return findInvalidUTF8(v.Elem(), where, depth+1)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if found := findInvalidUTF8(v.Index(i), fmt.Sprintf("%s[%d]", where, i), depth+1); found != "" {
				return found
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if found := findInvalidUTF8(iter.Key(), "a key of "+where, depth+1); found != "" {
				return found
			}
			if found := findInvalidUTF8(iter.Value(), where+keyPath(iter.Key()), depth+1); found != "" {
				return found
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if found := findInvalidUTF8(v.Field(i), where+"."+v.Type().Field(i).Name, depth+1); found != "" {
				return found
			}
		}
	}
	return ""
}
