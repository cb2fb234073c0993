package roundtrip

import (
	"encoding/json"
	"reflect"

	"github.com/fermata-go/fermata/internal/recovery"
)

// readsCustomJSON reports whether a type that says what its JSON is can be read back from it. One that reads in its own way can; of any other a value
// tells. One that is written as stars, to keep it out of logs, would come back as stars.
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

// roundTripsKeys reports whether the keys of a map come back from JSON, which has rules of its own for them: a text is written as it is, whatever its methods say, and is
// read by them.
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
		return true // it may take only some
	}
	return !written || err == nil && back.MapIndex(key).IsValid()
}

// sample is a value that is not the zero one, if a type is just a text, a number or a boolean.
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

// roundTrip writes a value as JSON and reads it back. A type may refuse to write some values, which says nothing of others.
func roundTrip(v reflect.Value) (back reflect.Value, written bool, err error) {
	defer recovery.Recover(&err)
	p := reflect.New(v.Type()) // the type's own JSON method may be the pointer's
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
