package schema

import (
	"encoding/json"
	"errors"
	"regexp/syntax"
)

// maxCost is the maximum number of steps of one check; each takes a few microseconds. A running
// check cannot be stopped.
const maxCost = 250_000

// patternCost is the amount of pattern work (pattern size times text length) that counts as one
// step.
const patternCost = 80

// sizeCost is the number of values that are only compared, searched or printed that count as one
// step.
const sizeCost = 8

var errCostly = errors.New("validation would take too long: too many values for the schema, or strings too long for a pattern")

// checkCost rejects a check that would take too long. It follows the same path as the check,
// without its work and without early exits.
func checkCost(text, data json.RawMessage) error {
	w := costCounter{left: maxCost, patterns: make(map[string]int)}
	var value any
	if err := errors.Join(json.Unmarshal(text, &w.root), json.Unmarshal(data, &value)); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // only a number can fail
			return errHuge
		}
		return err
	}
	if w.count(w.root, value); w.left < 0 {
		return errCostly
	}
	return nil
}

// costCounter counts the steps of a check down from maxCost. It stops below zero.
type costCounter struct {
	root     any
	left     int
	patterns map[string]int // their sizes
}

// count counts one check of a value against a schema, with all checks that follow from it.
func (w *costCounter) count(schema, value any) {
	object, ok := schema.(map[string]any)
	if w.left--; w.left < 0 || !ok {
		return
	}
	for name, child := range object {
		switch value := value.(type) {
		case map[string]any:
			w.members(name, child, value)
		case []any:
			w.items(name, child, value)
		case string:
			if pattern, ok := child.(string); ok && name == "pattern" {
				w.match(pattern, value)
			}
		}
		w.sameValue(name, child, value)
	}
}

// sameValue follows the keywords that apply to the same value.
func (w *costCounter) sameValue(name string, child, value any) {
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		ref, _ := child.(string)
		w.count(find(w.root, ref), value)
	case "allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies":
		w.each(child, func(_ string, schema any) { w.count(schema, value) })
	case "not", "if", "then", "else":
		w.count(child, value)
	}
	switch name {
	case "enum", "const":
		w.left -= (size(child) + size(value)) / sizeCost
	case "type": // a failure prints the value, like the keywords above
		w.left -= size(value) / sizeCost
	case "required", "dependentRequired", "dependencies":
		w.left -= size(child) / sizeCost
	}
}

// members follows the keywords that apply to the members of an object.
func (w *costCounter) members(name string, child any, value map[string]any) {
	switch name {
	case "properties":
		if known, ok := child.(map[string]any); ok {
			w.left -= len(known) / sizeCost // each name is looked up
		}
		w.each(child, func(key string, schema any) {
			if member, ok := value[key]; ok {
				w.count(schema, member)
			}
		})
	case "patternProperties":
		w.each(child, func(pattern string, schema any) {
			w.each(value, func(key string, member any) {
				w.match(pattern, key)
				w.count(schema, member)
			})
		})
	case "additionalProperties", "unevaluatedProperties":
		w.each(value, func(_ string, member any) { w.count(child, member) })
	case "propertyNames":
		w.each(value, func(key string, _ any) { w.count(child, key) })
	}
}

// items follows the keywords that apply to the items of an array.
func (w *costCounter) items(name string, child any, value []any) {
	schemas, several := child.([]any)
	switch name {
	case "uniqueItems":
		if child == true {
			w.left -= size(value)
		}
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
		for i, item := range value {
			switch {
			case w.left < 0:
				return
			case !several:
				w.count(child, item)
			case i < len(schemas):
				w.count(schemas[i], item)
			}
		}
	}
}

// each calls a function for the entries of a list or an object while there are steps left.
func (w *costCounter) each(of any, call func(key string, child any)) {
	switch of := of.(type) {
	case []any:
		for _, child := range of {
			if w.left < 0 {
				return
			}
			call("", child)
		}
	case map[string]any:
		for key, child := range of {
			if w.left < 0 {
				return
			}
			call(key, child)
		}
	}
}

func (w *costCounter) match(pattern, text string) {
	known, ok := w.patterns[pattern]
	if !ok {
		known = PatternSize(pattern)
		w.patterns[pattern] = known
	}
	w.left -= 1 + known*len(text)/patternCost
}

// size counts the values inside a value.
func size(value any) int {
	n := 1
	switch value := value.(type) {
	case []any:
		for _, child := range value {
			n += size(child)
		}
	case map[string]any:
		for _, child := range value {
			n += size(child)
		}
	}
	return n
}

// PatternSize returns the approximate size of a regular expression with its repetitions expanded; 0
// for an invalid one.
func PatternSize(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	return expanded(parsed)
}

func expanded(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += expanded(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}
