package slackfake

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// elementFields lists the properties of each element type.
var elementFields = map[string][]string{
	"button":           {"text", "action_id", "url", "value", "style", "confirm", "accessibility_label"},
	"overflow":         {"action_id", "options", "confirm"},
	"static_select":    {"action_id", "options", "initial_option", "placeholder", "confirm", "focus_on_load"},
	"checkboxes":       {"action_id", "options", "initial_options", "confirm", "focus_on_load"},
	"radio_buttons":    {"action_id", "options", "initial_option", "confirm", "focus_on_load"},
	"plain_text_input": {"action_id", "initial_value", "multiline", "min_length", "max_length", "placeholder", "focus_on_load", "dispatch_action_config"},
	"number_input":     {"action_id", "is_decimal_allowed", "initial_value", "min_value", "max_value", "placeholder", "focus_on_load", "dispatch_action_config"},
}

// element checks an interactive element. The action ids of a block must differ.
func (c *checker) element(path string, raw json.RawMessage, ids map[string]bool, kinds ...string) {
	o, kind, ok := c.object(path, raw)
	if !ok {
		return
	}
	if !slices.Contains(kinds, kind) {
		c.add(path, "unsupported type: %s", kind)
		return
	}
	c.only(path, o, elementFields[kind]...)
	id := c.optionalString(path, o, "action_id", 255)
	if ids != nil && id != "" {
		if ids[id] {
			c.add(path+"/action_id", "must be unique: %s", id)
		}
		ids[id] = true
	}
	if o["confirm"] != nil {
		c.confirm(path+"/confirm", o["confirm"])
	}
	if o["placeholder"] != nil {
		c.text(path+"/placeholder", o["placeholder"], 150, "plain_text")
	}
	switch kind {
	case "button":
		c.button(path, o)
	case "overflow":
		c.options(path, o, 5)
	case "static_select":
		c.options(path, o, 100)
	case "checkboxes", "radio_buttons":
		c.options(path, o, 10)
	case "plain_text_input":
		c.textInput(path, o)
	case "number_input":
		c.numberInput(path, o)
	}
}

func (c *checker) button(path string, o object) {
	c.text(path+"/text", o["text"], 75, "plain_text")
	c.optionalString(path, o, "value", 2000)
	c.optionalString(path, o, "accessibility_label", 75)
	link := c.optionalString(path, o, "url", 3000)
	if link != "" && !strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://") {
		c.add(path+"/url", "must be a valid URL")
	}
	if style := c.optionalString(path, o, "style", 20); style != "" && style != "primary" && style != "danger" {
		c.add(path+"/style", "must be primary or danger")
	}
}

func (c *checker) confirm(path string, raw json.RawMessage) {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		c.add(path, "must be an object")
		return
	}
	c.only(path, o, "title", "text", "confirm", "deny", "style")
	c.text(path+"/title", o["title"], 100, "plain_text")
	c.text(path+"/text", o["text"], 300, "plain_text")
	c.text(path+"/confirm", o["confirm"], 30, "plain_text")
	c.text(path+"/deny", o["deny"], 30, "plain_text")
}

// options checks the options of a menu. The initial one must be one of them.
func (c *checker) options(path string, o object, limit int) {
	var all []string
	values := make(map[string]bool)
	for p, item := range c.list(path+"/options", o["options"], limit) {
		value := c.option(p, item)
		if values[value] {
			c.add(p+"/value", "must be unique: %s", value)
		}
		values[value] = true
		all = append(all, canonical(item))
	}
	var initial []json.RawMessage
	if o["initial_option"] != nil {
		initial = append(initial, o["initial_option"])
	}
	if o["initial_options"] != nil && json.Unmarshal(o["initial_options"], &initial) != nil {
		c.add(path+"/initial_options", "must be an array")
	}
	for _, item := range initial {
		if !slices.Contains(all, canonical(item)) {
			c.add(path+"/initial_option", "must be one of the options")
		}
	}
}

func (c *checker) option(path string, raw json.RawMessage) (value string) {
	var o object
	if json.Unmarshal(raw, &o) != nil {
		c.add(path, "must be an object")
		return ""
	}
	c.only(path, o, "text", "value", "description", "url")
	c.text(path+"/text", o["text"], 75, "plain_text", "mrkdwn")
	if o["description"] != nil {
		c.text(path+"/description", o["description"], 75, "plain_text", "mrkdwn")
	}
	c.optionalString(path, o, "url", 3000)
	if value = c.optionalString(path, o, "value", 150); value == "" {
		c.add(path+"/value", "must be more than 0 characters")
	}
	return value
}

// canonical returns JSON in a form that can be compared.
func canonical(raw json.RawMessage) string {
	var value any
	_ = json.Unmarshal(raw, &value)
	text, _ := json.Marshal(value)
	return string(text)
}

func (c *checker) textInput(path string, o object) {
	least, most := c.number(path, o, "min_length", 0, 3000), c.number(path, o, "max_length", 1, 3000)
	initial := c.optionalString(path, o, "initial_value", 3000)
	n := utf8.RuneCountInString(initial)
	if most > 0 && n > most {
		c.add(path+"/initial_value", "must be less than %d characters", most+1)
	}
	if most > 0 && least > most {
		c.add(path+"/min_length", "must not be more than max_length")
	}
}

// number returns an integer property; 0 if it is missing.
func (c *checker) number(path string, o object, name string, least, most int) (n int) {
	if o[name] == nil {
		return 0
	}
	if json.Unmarshal(o[name], &n) != nil || n < least || n > most {
		c.add(path+"/"+name, "must be a number from %d to %d", least, most)
	}
	return n
}

func (c *checker) numberInput(path string, o object) {
	var decimal bool
	if json.Unmarshal(o["is_decimal_allowed"], &decimal) != nil {
		c.add(path+"/is_decimal_allowed", "missing required field: is_decimal_allowed")
	}
	for _, name := range []string{"initial_value", "min_value", "max_value"} {
		if text := c.optionalString(path, o, name, 100); text != "" {
			if _, err := strconv.ParseFloat(text, 64); err != nil {
				c.add(path+"/"+name, "must be a number in a string")
			}
		}
	}
}
