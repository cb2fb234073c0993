package schemaform

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Member is a member of a JSON object with its raw value.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members are the members of a JSON object in the order in which they are written.
type Members []Member

// ParseObject returns the members of a JSON object; false if data is not an object.
func ParseObject(data json.RawMessage) (Members, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var all Members
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := Member{Name: name.(string)}
		if err := d.Decode(&m.Value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err == nil
}

// Get returns the value of a member; nil if there is none.
func (all Members) Get(name string) json.RawMessage {
	for _, m := range all {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// With returns a copy with more members at the end.
func (all Members) With(more ...Member) Members { return append(all[:len(all):len(all)], more...) }

// JSON is the inverse of [ParseObject].
func (all Members) JSON() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(String(m.Name))
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Complete returns an answer with the values of a form, either of which may be nil. The values are
// the member at of the answer; without at they are its members.
func Complete(answer json.RawMessage, at string, values json.RawMessage) (json.RawMessage, error) {
	if values == nil {
		return answer, nil
	}
	if answer == nil {
		return values, nil
	}
	members, ok := ParseObject(answer)
	more := Members{{at, values}}
	if at == "" && ok {
		more, ok = ParseObject(values)
	}
	if !ok {
		return nil, errors.New("schemaform: the answer or the values of the form are not an object")
	}
	return members.With(more...).JSON(), nil
}

// String encodes a text as JSON, without escaping < and > for HTML.
func String(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a string can always be encoded
		return json.RawMessage(`""`)
	}
	return bytes.TrimSpace(b.Bytes())
}

// parseArray returns the items of a JSON array; false if data is not an array.
func parseArray(data json.RawMessage) ([]json.RawMessage, bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		return nil, false
	}
	var items []json.RawMessage
	return items, json.Unmarshal(data, &items) == nil
}

func writeArray(items []json.RawMessage) json.RawMessage {
	return append(append(json.RawMessage{'['}, bytes.Join(asBytes(items), []byte{','})...), ']')
}

func asBytes(items []json.RawMessage) [][]byte {
	all := make([][]byte, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}
