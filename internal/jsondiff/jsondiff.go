// Package jsondiff compares JSON documents.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Difference is one difference between two JSON documents.
type Difference struct {
	// Pointer is the JSON pointer of the difference; "" is the whole document.
	Pointer string `json:"pointer"`
	// Before and After are the values. A missing value is empty.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Diff returns the differences between two JSON documents, sorted by pointer. Lists of different
// lengths differ as a whole. Numbers differ if they are written differently, because a tool may
// treat 1.0 and 1 differently.
func Diff(before, after json.RawMessage) ([]Difference, error) {
	var a, b any
	if err := Decode(before, &a); err != nil {
		return nil, err
	}
	if err := Decode(after, &b); err != nil {
		return nil, err
	}
	var found []Difference
	diffValues("", a, b, &found)
	slices.SortFunc(found, func(a, b Difference) int { return strings.Compare(a.Pointer, b.Pointer) })
	return found, nil
}

// Decode decodes a document and keeps numbers as they are written.
func Decode(data json.RawMessage, v *any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(v)
}

func diffValues(at string, a, b any, found *[]Difference) {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			diffObjects(at, a, b, found)
			return
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				diffValues(fmt.Sprintf("%s/%d", at, i), a[i], b[i], found)
			}
			return
		}
	}
	if before, after := Encode(a), Encode(b); !bytes.Equal(before, after) {
		*found = append(*found, Difference{Pointer: at, Before: before, After: after})
	}
}

func diffObjects(at string, a, b map[string]any, found *[]Difference) {
	for name, value := range a {
		where := at + "/" + escapePointer(name)
		if other, ok := b[name]; ok {
			diffValues(where, value, other, found)
		} else {
			*found = append(*found, Difference{Pointer: where, Before: Encode(value)})
		}
	}
	for name, value := range b {
		if _, ok := a[name]; !ok {
			*found = append(*found, Difference{Pointer: at + "/" + escapePointer(name), After: Encode(value)})
		}
	}
}

// Encode encodes a decoded value. It cannot fail.
func Encode(v any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSpace(text.Bytes())
}

// escapePointer escapes a name for a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
