package roundtrip

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/strictjson"
)

// UnmarshalUseNumber is json.Unmarshal with exact numbers in untyped places; a float64 could change
// them. data is one JSON value.
func UnmarshalUseNumber(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() //mutate:number-kept-in-approval
	err := dec.Decode(v)
	if plain, ok := strictjson.RetryIntegers(data, err); ok {
		return UnmarshalUseNumber(plain, v)
	}
	return err
}

// Unmarshal is json.Unmarshal with a fast path for plain strings.
func Unmarshal(data []byte, v any) error {
	text, ok := v.(*string)
	if last := len(data) - 1; ok && last > 0 && data[0] == '"' && data[last] == '"' && isPlainText(data[1:last]) {
		*text = string(data[1:last])
		return nil
	}
	err := json.Unmarshal(data, v)
	if plain, ok := strictjson.RetryIntegers(data, err); ok {
		return json.Unmarshal(plain, v)
	}
	return err
}

// Decode is [UnmarshalUseNumber] for data that another version of a program may have stored. It is
// an error if the value has members unknown to v while v has members that the value lacks. A
// renamed member would otherwise be lost and replaced by a zero value, so a no could become a yes.
// A value that only has more members, or only fewer, is accepted.
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

// CheckRenamed returns an error if a member of an object in the document seems to be renamed. The
// document is known to fit the type otherwise.
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
		_ = json.Unmarshal(data, &values) // it fits or is null
		for name, value := range values {
			if err := checkRenamed(value, t.Elem(), where+"."+name); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		var items []json.RawMessage
		_ = json.Unmarshal(data, &items) // it fits, is null, or is bytes as text
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
	_ = json.Unmarshal(data, &members) // it fits or is null
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
	return fmt.Errorf("%s has the member %q, which is unknown to %s, and lacks %q: the member seems to be renamed", where, slices.Min(unknown), t, lacking[0].name)
}
