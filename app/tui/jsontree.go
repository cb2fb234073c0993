package tui

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// node is a JSON value as written: members in order, including duplicates; numbers with all digits.
type node struct {
	kind    nodeKind
	text    string // a decoded string, or the literal
	members []member
	items   []node
}

type member struct {
	name  string
	value node
}

type nodeKind uint8

const (
	nodeLiteral nodeKind = iota // a number, true, false, null
	nodeText
	nodeObject
	nodeList
)

// parse parses a JSON value.
func parse(data json.RawMessage) (node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	n, err := parseNode(d)
	if err != nil {
		return n, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return n, errors.New("trailing data after the value")
	}
	return n, nil
}

func parseNode(d *json.Decoder) (node, error) {
	token, err := d.Token()
	if err != nil {
		return node{}, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return parseObject(d)
		}
		return parseList(d)
	case string:
		return node{kind: nodeText, text: t}, nil
	case json.Number:
		return node{text: t.String()}, nil
	case bool:
		if t {
			return node{text: "true"}, nil
		}
		return node{text: "false"}, nil
	}
	return node{text: "null"}, nil
}

func parseObject(d *json.Decoder) (node, error) {
	n := node{kind: nodeObject}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return n, err
		}
		value, err := parseNode(d)
		if err != nil {
			return n, err
		}
		n.members = append(n.members, member{name.(string), value})
	}
	_, err := d.Token()
	return n, err
}

func parseList(d *json.Decoder) (node, error) {
	n := node{kind: nodeList}
	for d.More() {
		item, err := parseNode(d)
		if err != nil {
			return n, err
		}
		n.items = append(n.items, item)
	}
	_, err := d.Token()
	return n, err
}

// rawMember is a member of an object with its raw value.
type rawMember struct {
	name  string
	value json.RawMessage
}

// rawMembers parses the members of an object in order; false if it is not an object.
func rawMembers(data json.RawMessage) ([]rawMember, bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	var all []rawMember
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		m := rawMember{name: name.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	_, err := d.Token()
	return all, err == nil
}

// get returns the value of a member; nil if there is none.
func get(members []rawMember, name string) json.RawMessage {
	for _, m := range members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// writeObject is the inverse of rawMembers.
func writeObject(members []rawMember) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(jsonString(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// jsonString encodes a text as JSON, without escaping < and > for HTML.
func jsonString(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(text); err != nil { // a string can always be encoded
		return json.RawMessage(`""`)
	}
	return bytes.TrimSpace(b.Bytes())
}
