package roundtrip

import (
	"errors"
	"fmt"
	"reflect"
)

// CheckUntyped returns an error for a value in an untyped place of v, at any depth, of which JSON
// would omit a part. The error names its path; where names v.
func CheckUntyped(v reflect.Value, where string) error {
	if !v.IsValid() {
		return nil
	}
	return checkUntyped(v, where, 0)
}

func checkUntyped(v reflect.Value, where string, depth int) error {
	t := v.Type()
	info := InfoOf(t)
	if !info.Untyped || depth > maxDepth {
		return nil
	}
	switch t.Kind() {
	case reflect.Interface:
		if v.IsNil() {
			return nil
		}
		inner := v.Elem()
		if InfoOf(inner.Type()).lossy {
			return errors.New(lostParts(inner.Type(), where, nil)[0])
		}
		return checkUntyped(inner, where, depth+1)
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return checkUntyped(v.Elem(), where, depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := checkUntyped(v.Index(i), fmt.Sprintf("%s[%d]", where, i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for iter := v.MapRange(); iter.Next(); {
			if err := checkUntyped(iter.Value(), where+keyPath(iter.Key()), depth+1); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				if err := checkUntyped(v.Field(i), where+"."+f.Name, depth+1); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func keyPath(key reflect.Value) string {
	if key.Kind() == reflect.String {
		return fmt.Sprintf("[%q]", key.String())
	}
	return fmt.Sprintf("[%v]", key)
}
