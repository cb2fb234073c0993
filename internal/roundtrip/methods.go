package roundtrip

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
)

// ErrPointerMethods is returned for a value that would be written without its JSON methods, for
// example a big.Int as {}. The error of a larger value names the place.
var ErrPointerMethods = errors.New("encoding/json does not call its pointer methods there")

// CheckMethods returns an error for a value in v, at any depth, whose JSON methods have a pointer
// receiver and that encoding/json reaches without an address: in maps and in untyped places. v must
// not contain itself.
func CheckMethods(v any) error {
	if v == nil {
		return nil
	}
	t := reflect.TypeOf(v)
	lost := InfoOf(t).bypassed
	if lost == "" {
		lost = bypassedTyped(reflect.ValueOf(v))
	}
	if lost == "" { //mutate:pointer-methods-in-untyped-places
		return nil
	}
	return fmt.Errorf("it%s (%w)", lost, ErrPointerMethods)
}

// bypassedTyped returns the path and the problem of a value in an untyped place of v; "" if there
// is none. The type of v was checked.
func bypassedTyped(v reflect.Value) string {
	t := v.Type()
	if !InfoOf(t).Untyped {
		return ""
	}
	switch t.Kind() {
	case reflect.Interface:
		if !v.IsNil() && v.CanInterface() {
			return bypassedDynamic(v.Interface())
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return bypassedTyped(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if lost := bypassedTyped(v.Index(i)); lost != "" {
				return "[" + strconv.Itoa(i) + "]" + lost
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if lost := bypassedTyped(iter.Value()); lost != "" {
				return keyPath(iter.Key()) + lost
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && f.Tag.Get("json") != "-" {
				if lost := bypassedTyped(v.Field(i)); lost != "" {
					return "." + f.Name + lost
				}
			}
		}
	}
	return ""
}

// bypassedDynamic is bypassedTyped for the value of an untyped place.
func bypassedDynamic(v any) string {
	switch v := v.(type) { // most values, without reflection
	case nil, string, bool, float64, int, int64, json.Number:
		return ""
	case []any:
		for i, item := range v {
			if lost := bypassedDynamic(item); lost != "" {
				return "[" + strconv.Itoa(i) + "]" + lost
			}
		}
		return ""
	case map[string]any:
		for key, item := range v {
			if lost := bypassedDynamic(item); lost != "" {
				return "[" + strconv.Quote(key) + "]" + lost
			}
		}
		return ""
	}
	t := reflect.TypeOf(v)
	if method := bypassedType(t); method != nil {
		return fmt.Sprintf(" holds a %s: use a pointer to %s", t, method)
	}
	if lost := InfoOf(t).bypassed; lost != "" {
		return lost
	}
	return bypassedTyped(reflect.ValueOf(v))
}
