package slackfake

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// surface is where blocks are shown.
type surface int

const (
	inMessage surface = iota
	inModal
)

// object is a JSON object of a block, for validation.
type object map[string]json.RawMessage

// checker collects the problems of a list of blocks.
type checker struct {
	surface  surface
	problems []string
	blockIDs map[string]bool
	inputs   int
}

func (c *checker) add(path, format string, values ...any) {
	c.problems = append(c.problems, fmt.Sprintf("[ERROR] "+format, values...)+" [json-pointer:"+path+"]")
}

// checkBlocks returns what Slack rejects in a list of blocks.
func checkBlocks(raw json.RawMessage, limit int, where surface) []string {
	c := &checker{surface: where, blockIDs: make(map[string]bool)}
	c.blocks("/blocks", raw, limit)
	return c.problems
}

func (c *checker) blocks(path string, raw json.RawMessage, limit int) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		c.add(path, "must be an array")
		return
	}
	if len(list) == 0 || len(list) > limit {
		c.add(path, "must have 1 to %d items, has %d", limit, len(list))
	}
	for i, item := range list {
		c.block(fmt.Sprintf("%s/%d", path, i), item)
	}
}

// blockFields lists the properties of each block type.
var blockFields = map[string][]string{
	"section":   {"text", "fields", "accessory", "expand"},
	"header":    {"text"},
	"context":   {"elements"},
	"actions":   {"elements"},
	"divider":   nil,
	"input":     {"label", "element", "optional", "hint", "dispatch_action"},
	"rich_text": {"elements"},
}

func (c *checker) object(path string, raw json.RawMessage) (o object, kind string, ok bool) {
	if json.Unmarshal(raw, &o) != nil || o == nil {
		c.add(path, "must be an object")
		return nil, "", false
	}
	if json.Unmarshal(o["type"], &kind) != nil || kind == "" {
		c.add(path+"/type", "missing required field: type")
		return nil, "", false
	}
	return o, kind, true
}

// only rejects properties that are not listed.
func (c *checker) only(path string, o object, fields ...string) {
	for name := range o {
		if name != "type" && !slices.Contains(fields, name) {
			c.add(path, "invalid additional property: %s", name)
		}
	}
}

func (c *checker) block(path string, raw json.RawMessage) {
	o, kind, ok := c.object(path, raw)
	if !ok {
		return
	}
	fields, known := blockFields[kind]
	if !known {
		c.add(path, "unsupported type: %s", kind)
		return
	}
	c.only(path, o, append([]string{"block_id"}, fields...)...)
	if id := c.optionalString(path, o, "block_id", 255); id != "" {
		if c.blockIDs[id] {
			c.add(path+"/block_id", "must be unique: %s", id)
		}
		c.blockIDs[id] = true
	}
	switch kind {
	case "section":
		c.section(path, o)
	case "header":
		c.text(path+"/text", o["text"], 150, "plain_text")
	case "context":
		for p, item := range c.list(path+"/elements", o["elements"], 10) {
			c.text(p, item, 3000, "plain_text", "mrkdwn")
		}
	case "actions":
		ids := make(map[string]bool)
		for p, item := range c.list(path+"/elements", o["elements"], 25) {
			c.element(p, item, ids, "button", "overflow", "static_select")
		}
	case "input":
		c.input(path, o)
	case "rich_text":
		for p, item := range c.list(path+"/elements", o["elements"], 100) {
			c.richText(p, item)
		}
	}
}

func (c *checker) section(path string, o object) {
	if o["text"] == nil && o["fields"] == nil {
		c.add(path, "missing required field: text or fields")
	}
	if o["text"] != nil {
		c.text(path+"/text", o["text"], 3000, "plain_text", "mrkdwn")
	}
	if o["fields"] != nil {
		for p, item := range c.list(path+"/fields", o["fields"], 10) {
			c.text(p, item, 2000, "plain_text", "mrkdwn")
		}
	}
	if o["accessory"] != nil {
		c.element(path+"/accessory", o["accessory"], nil, "button", "overflow", "static_select", "checkboxes", "radio_buttons")
	}
}

func (c *checker) input(path string, o object) {
	c.inputs++
	c.text(path+"/label", o["label"], 2000, "plain_text")
	if o["hint"] != nil {
		c.text(path+"/hint", o["hint"], 2000, "plain_text")
	}
	c.element(path+"/element", o["element"], nil, "plain_text_input", "number_input", "static_select", "checkboxes", "radio_buttons")
}

// richText checks the elements that Slack allows in a rich text block.
func (c *checker) richText(path string, raw json.RawMessage) {
	o, kind, ok := c.object(path, raw)
	if !ok {
		return
	}
	switch kind {
	case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
		c.only(path, o, "elements", "border")
	default:
		c.add(path, "unsupported type: %s", kind)
		return
	}
	for p, item := range c.list(path+"/elements", o["elements"], 500) {
		part, kind, ok := c.object(p, item)
		if !ok {
			continue
		}
		if kind != "text" {
			c.add(p, "unsupported type: %s", kind)
			continue
		}
		c.only(p, part, "text", "style")
		if c.optionalString(p, part, "text", 12000) == "" {
			c.add(p+"/text", "must be more than 0 characters")
		}
	}
}

// list returns the items of an array with their paths.
func (c *checker) list(path string, raw json.RawMessage, limit int) func(yield func(string, json.RawMessage) bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		c.add(path, "must be an array with items")
	}
	if len(list) > limit {
		c.add(path, "no more than %d items allowed, has %d", limit, len(list))
	}
	return func(yield func(string, json.RawMessage) bool) {
		for i, item := range list {
			if !yield(fmt.Sprintf("%s/%d", path, i), item) {
				return
			}
		}
	}
}

// text checks a text object.
func (c *checker) text(path string, raw json.RawMessage, limit int, kinds ...string) {
	o, kind, ok := c.object(path, raw)
	if !ok {
		return
	}
	if !slices.Contains(kinds, kind) {
		c.add(path, "unsupported type: %s, must be %s", kind, strings.Join(kinds, " or "))
		return
	}
	if kind == "mrkdwn" {
		c.only(path, o, "text", "verbatim")
	} else {
		c.only(path, o, "text", "emoji")
	}
	if c.optionalString(path, o, "text", limit) == "" {
		c.add(path+"/text", "must be more than 0 characters")
	}
}

// optionalString returns a string property and checks its length.
func (c *checker) optionalString(path string, o object, name string, limit int) (text string) {
	if o[name] == nil {
		return ""
	}
	if json.Unmarshal(o[name], &text) != nil {
		c.add(path+"/"+name, "must be a string")
	}
	if n := utf8.RuneCountInString(text); n > limit {
		c.add(path+"/"+name, "must be less than %d characters, has %d", limit+1, n)
	}
	return text
}
