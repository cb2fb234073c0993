package schema

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// maxSteps is the maximum number of schema places that the check of one value may visit before it
// goes to a nested value.
const maxSteps = 10_000

// checkLoops rejects a schema whose check would not end: one that refers back to itself for the
// same value. A schema that refers to itself for a nested value, such as a tree, is fine, because
// values are finite.
func checkLoops(text json.RawMessage) error {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	return eachObject(root, func(node any) error {
		w := loopWalk{root: root, following: make(map[string]bool)}
		return w.visit(node)
	})
}

// eachObject calls a function for every object in a schema.
func eachObject(node any, look func(any) error) error {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			if err := eachObject(child, look); err != nil {
				return err
			}
		}
	case map[string]any:
		if err := look(node); err != nil {
			return err
		}
		for _, child := range node {
			if err := eachObject(child, look); err != nil {
				return err
			}
		}
	}
	return nil
}

// loopWalk follows the same path as the check of one value.
type loopWalk struct {
	root      any
	following map[string]bool
	steps     int
}

func (w *loopWalk) visit(node any) error {
	if w.steps++; w.steps > maxSteps {
		return errors.New("the schema is too large, including its references")
	}
	object, ok := node.(map[string]any)
	if !ok {
		return nil
	}
	for name, child := range object {
		if err := w.keyword(name, child); err != nil {
			return err
		}
	}
	return nil
}

// keyword follows the keywords that apply to the same value.
func (w *loopWalk) keyword(name string, child any) error {
	switch name {
	case "$ref", "$dynamicRef", "$recursiveRef":
		ref, _ := child.(string)
		if w.following[ref] {
			return errors.New("the schema refers to itself infinitely")
		}
		w.following[ref] = true
		defer delete(w.following, ref)
		return w.visit(find(w.root, ref))
	case "allOf", "anyOf", "oneOf":
		list, _ := child.([]any)
		for _, schema := range list {
			if err := w.visit(schema); err != nil {
				return err
			}
		}
	case "dependentSchemas", "dependencies":
		schemas, _ := child.(map[string]any)
		for _, schema := range schemas {
			if err := w.visit(schema); err != nil {
				return err
			}
		}
	case "not", "if", "then", "else":
		return w.visit(child)
	}
	return nil
}

// find resolves a reference; nil if there is nothing, which is rejected elsewhere. An anchor may be
// anywhere, so it counts as the whole schema.
func find(root any, ref string) any {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && !strings.HasPrefix(pointer, "/") {
		return root
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer == "" {
		return root
	}
	node := root
	for step := range strings.SplitSeq(pointer[1:], "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch at := node.(type) {
		case map[string]any:
			node = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			node = at[i]
		default:
			return nil
		}
	}
	return node
}
