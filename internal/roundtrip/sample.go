package roundtrip

import (
	"encoding/json"
	"reflect"

	"github.com/fermata-go/fermata/internal/recovery"
)

// readsCustomJSON reports whether a type with custom JSON can be read back. A type with its own
// unmarshal method can. Other types are tested with a value: one that is written as stars, to hide
// it from logs, would be read back as stars.
func readsCustomJSON(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if p := reflect.PointerTo(t); p.Implements(unmarshalerType) || p.Implements(textUnmarshalType) {
		return true
	}
	value, certain := sample(t)
	for _, v := range []reflect.Value{reflect.Zero(t), value} {
		back, written, err := roundTrip(v)
		if written && (err != nil || certain && !back.Equal(v)) {
			return false
		}
	}
	return true
}

// roundTripsKeys reports whether the keys of a map are restored from JSON. JSON writes string keys
// as they are, regardless of their methods, but uses the methods to read them.
func roundTripsKeys(t reflect.Type) bool {
	writes, reads := t.Implements(textMarshalType), reflect.PointerTo(t).Implements(textUnmarshalType)
	key, scalar := sample(t)
	switch {
	case !scalar || key.Kind() == reflect.Bool || key.CanFloat():
		return writes && reads
	case !writes && !reads:
		return true
	}
	one := reflect.MakeMap(reflect.MapOf(t, reflect.TypeFor[bool]()))
	one.SetMapIndex(key, reflect.ValueOf(true))
	back, written, err := roundTrip(one)
	if err != nil && reads {
		return true // it may accept only some values
	}
	return !written || err == nil && back.MapIndex(key).IsValid()
}

// sample returns a non-zero value of a string, number or boolean type.
func sample(t reflect.Type) (v reflect.Value, scalar bool) {
	v = reflect.New(t).Elem()
	switch {
	case v.Kind() == reflect.String:
		v.SetString("a")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	default:
		return v, false
	}
	return v, true
}

// roundTrip writes a value as JSON and reads it back. A type may reject some values, which says
// nothing about others.
func roundTrip(v reflect.Value) (back reflect.Value, written bool, err error) {
	defer recovery.Recover(&err)
	p := reflect.New(v.Type()) // the JSON method may belong to the pointer
	p.Elem().Set(v)
	data, err := json.Marshal(p.Interface())
	if err != nil {
		return back, false, err
	}
	written = true
	read := reflect.New(v.Type())
	err = json.Unmarshal(data, read.Interface())
	return read.Elem(), written, err
}
