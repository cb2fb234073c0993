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
