package roundtrip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// UnmarshalUseNumber is json.Unmarshal that leaves a number in an untyped place as it was written: a float64 could be another one. data is one JSON value.
func UnmarshalUseNumber(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() //mutate:number-kept-in-approval
	return dec.Decode(v)
}

// Unmarshal is json.Unmarshal.
func Unmarshal(data []byte, v any) error {
	text, ok := v.(*string)
	if last := len(data) - 1; ok && last > 0 && data[0] == '"' && data[last] == '"' && isPlainText(data[1:last]) {
		*text = string(data[1:last])
		return nil
	}
	return json.Unmarshal(data, v)
}

// Decode is [UnmarshalUseNumber] for what a program has kept, which may have been another one. A value that has members which v has no place for, while
// v has members that the value does not have, is an error: taking a renamed member for two unrelated changes would lose one and make one up, and
// a no could become a yes. A value that only has more, or less, is read.
func Decode(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber() //mutate:number-kept-in-result
	if dec.Decode(v) == nil {
		return nil
	}
	kept := reflect.ValueOf(v).Elem()
	kept.SetZero()
	if err := UnmarshalUseNumber(data, v); err != nil {
		kept.SetZero()
		return err
	}
	if err := CheckRenamed(data, kept.Type()); err != nil {
		kept.SetZero()
		return err
	}
	return nil
}

// CheckRenamed returns an error if, in an object of the document, a member seems to be renamed. The document is known to fit the type but for that.
func CheckRenamed(data []byte, t reflect.Type) error { return checkRenamed(data, t, "it") }

func checkRenamed(data json.RawMessage, t reflect.Type, where string) error {
	for t.Kind() == reflect.Pointer && !HasCustomJSON(t) {
		t = t.Elem()
	}
	if HasCustomJSON(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return renamedMember(data, t, where)
	case reflect.Map:
		var values map[string]json.RawMessage
		_ = json.Unmarshal(data, &values) // it fits, or is null
		for name, value := range values {
			if err := checkRenamed(value, t.Elem(), where+"."+name); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		var items []json.RawMessage
		_ = json.Unmarshal(data, &items) // it fits, or is null, or bytes as text
		for i, item := range items {
			if err := checkRenamed(item, t.Elem(), fmt.Sprintf("%s[%d]", where, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func renamedMember(data json.RawMessage, t reflect.Type, where string) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(data, &members) // it fits, or is null
	if members == nil {
		return nil
	}
	lacking := jsonFields(t, "", nil)
	var unknown []string
	for name, value := range members {
		known := false
		rest := lacking[:0]
		for _, f := range lacking {
			if !strings.EqualFold(f.name, name) {
				rest = append(rest, f)
				continue
			}
			known = true
			if err := checkRenamed(value, f.typ, where+"."+name); err != nil {
				return err
			}
		}
		if lacking = rest; !known {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 || len(lacking) == 0 { //mutate:stored-value-fields
		return nil
	}
	return fmt.Errorf("%s has a %q, which is unknown to the %s here, while %q is not in it: it seems to be renamed", where, slices.Min(unknown), t, lacking[0].name)
}
