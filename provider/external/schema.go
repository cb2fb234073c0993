package external

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/schema"
)

// maxSchemaNodes limits the number of schema nodes that validating an answer may visit, including
// references.
const maxSchemaNodes = 5_000

// checkSafeSchema returns why an untrusted schema cannot be used. Validation against a circular
// schema would not end, and against one with nested repeated references it would take exponential
// time. So references must be internal, point to existing places and not be circular, and all
// referenced nodes are counted. Both the text and the parsed form are checked, because the
// validator matches keywords case-insensitively.
func checkSafeSchema(text json.RawMessage) error {
	if err := checkSafeAsWritten(text); err != nil {
		return err
	}
	read, err := schema.Normalize(text)
	if err != nil {
		return errors.New("it is not a JSON Schema")
	}
	return checkSafeAsWritten(read)
}

func checkSafeAsWritten(text json.RawMessage) error {
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	switch root.(type) {
	case bool, map[string]any:
	default:
		return errors.New("a JSON Schema must be an object, true or false")
	}
	w := schemaWalk{root: root, known: make(map[string]int)}
	_, err := w.countNodes(root)
	return err
}

// schemaWalk counts nodes. Counts of references are cached by their text: -1 is one in progress.
type schemaWalk struct {
	root  any
	known map[string]int
}

// countNodes counts the nodes of a schema. It does not distinguish schemas from values in them, so
// it may reject a harmless schema, but never accepts a harmful one.
func (w *schemaWalk) countNodes(node any) (int, error) {
	total := 1
	var err error
	add := func(n int, failed error) {
		total += n
		err = cmp.Or(err, failed)
	}
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			add(w.countNodes(child))
		}
	case map[string]any:
		for name, child := range node {
			add(w.countNodes(child))
			switch child := child.(type) {
			case string:
				add(w.keyword(name, child))
			case map[string]any:
				if name == "patternProperties" {
					for pattern := range child {
						add(patternCost(pattern), nil)
					}
				}
			}
		}
	}
	if err == nil && total > maxSchemaNodes {
		err = errors.New("it is too large, including everything that it refers to")
	}
	return min(total, maxSchemaNodes+1), err
}

// keyword checks the keywords that change where evaluation continues.
func (w *schemaWalk) keyword(name, value string) (int, error) {
	switch name {
	case "$ref":
		return w.follow(value)
	case "pattern":
		return patternCost(value), nil
	case "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor":
		return 0, fmt.Errorf("it has the keyword %s; references must be $ref to #/…", name)
	}
	return 0, nil
}

// patternCost returns the cost of a pattern: ten characters can compile to a thousand.
func patternCost(pattern string) int { return schema.PatternSize(pattern) / 4 }

func (w *schemaWalk) follow(ref string) (int, error) {
	if n, ok := w.known[ref]; ok {
		if n < 0 {
			return 0, errors.New("it refers to itself")
		}
		return n, nil
	}
	target, err := w.find(ref)
	if err != nil {
		return 0, err
	}
	w.known[ref] = -1
	n, err := w.countNodes(target)
	w.known[ref] = n
	return n, err
}

// find returns the target of a reference: "#" and a JSON pointer.
func (w *schemaWalk) find(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("it has an external reference; references must be $ref to #/…")
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, errors.New("it has an invalid reference")
	}
	node := w.root
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if pointer == "" {
			break
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var found bool
		switch at := node.(type) {
		case map[string]any:
			node, found = at[step]
		case []any:
			i, err := strconv.Atoi(step)
			if found = err == nil && i >= 0 && i < len(at); found {
				node = at[i]
			}
		}
		if !found {
			return nil, errors.New("it has a reference to a missing place")
		}
	}
	return node, nil
}
