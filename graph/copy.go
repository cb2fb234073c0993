package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// maxCopyDepth is larger than the depth of any state that JSON can represent. A deeper value is
// cyclic.
const maxCopyDepth = 1000

var errCyclic = errors.New("it contains itself, which JSON cannot represent")

// deepCopy copies a value and everything it refers to. Types with unexported fields are copied
// through their JSON.
func deepCopy(v reflect.Value, depth int) (reflect.Value, error) {
	if depth > maxCopyDepth {
		return v, errCyclic
	}
	t := v.Type()
	if t.Kind() != reflect.Interface && isPlain(t) {
		return v, nil
	}
	switch t.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return v, nil
		}
		inner, err := deepCopy(v.Elem(), depth+1)
		if err != nil {
			return v, err
		}
		dup := reflect.New(t).Elem()
		dup.Set(inner)
		return dup, nil
	case reflect.Pointer:
		if v.IsNil() {
			return v, nil
		}
		inner, err := deepCopy(v.Elem(), depth+1)
		if err != nil {
			return v, err
		}
		dup := reflect.New(t.Elem())
		dup.Elem().Set(inner)
		return dup, nil
	case reflect.Slice:
		return copySlice(v, depth)
	case reflect.Map:
		return copyMap(v, depth)
	case reflect.Struct:
		return copyStruct(v, depth)
	case reflect.Array:
		dup := reflect.New(t).Elem()
		return dup, copyItems(dup, v, depth)
	}
	return v, fmt.Errorf("%s cannot be copied", t)
}

func copySlice(v reflect.Value, depth int) (reflect.Value, error) {
	if v.IsNil() {
		return v, nil
	}
	dup := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	if isPlain(v.Type().Elem()) {
		reflect.Copy(dup, v)
		return dup, nil
	}
	return dup, copyItems(dup, v, depth)
}

// copyItems copies the items of a list or array into dup, which has the same length.
func copyItems(dup, v reflect.Value, depth int) error {
	for i := range v.Len() {
		item, err := deepCopy(v.Index(i), depth+1)
		if err != nil {
			return err
		}
		dup.Index(i).Set(item)
	}
	return nil
}

func copyMap(v reflect.Value, depth int) (reflect.Value, error) {
	if v.IsNil() {
		return v, nil
	}
	dup := reflect.MakeMapWithSize(v.Type(), v.Len())
	for iter := v.MapRange(); iter.Next(); {
		item, err := deepCopy(iter.Value(), depth+1)
		if err != nil {
			return v, err
		}
		dup.SetMapIndex(iter.Key(), item)
	}
	return dup, nil
}

func copyStruct(v reflect.Value, depth int) (reflect.Value, error) {
	t := v.Type()
	dup := reflect.New(t).Elem()
	for i := range t.NumField() {
		if !t.Field(i).IsExported() {
			return copyByJSON(v)
		}
	}
	for i := range t.NumField() {
		item := v.Field(i)
		// fields that are not saved may be anything, and are passed unchanged
		if t.Field(i).Tag.Get("json") != "-" {
			var err error
			if item, err = deepCopy(item, depth+1); err != nil {
				return v, err
			}
		}
		dup.Field(i).Set(item)
	}
	return dup, nil
}

func copyByJSON(v reflect.Value) (reflect.Value, error) {
	if v.IsZero() { // a zero value shares nothing, and may have no JSON form
		return v, nil
	}
	addressable := reflect.New(v.Type()) // the JSON method may have a pointer receiver
	addressable.Elem().Set(v)
	data, err := json.Marshal(addressable.Interface())
	if err != nil {
		return v, err
	}
	dup := reflect.New(v.Type())
	if err := json.Unmarshal(data, dup.Interface()); err != nil {
		return v, fmt.Errorf("%s cannot decode its own JSON: %w", v.Type(), err)
	}
	return dup.Elem(), nil
}
