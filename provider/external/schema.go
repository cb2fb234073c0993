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

// maxSchemaNodes is how many places of a schema one look at an answer may visit, with everything that references lead to.
const maxSchemaNodes = 5_000

// checkSafeSchema says why a schema that a stranger wrote cannot be used. Checking an answer against one that leads back to itself would not end, and
// against one that refers to the same place twice, ten levels deep, hardly: so references stay within the schema, go to places that are
// written there, never lead in a circle, and everything that they lead to is counted. That is looked for in the text, and in what the check reads in it: there
// a keyword may be written in any case.
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
		return errors.New("a JSON Schema is an object, true or false")
	}
	w := schemaWalk{root: root, known: make(map[string]int)}
	_, err := w.countNodes(root)
	return err
}

// schemaWalk counts. References are remembered by their text: -1 is one that is being followed.
type schemaWalk struct {
	root  any
	known map[string]int
}

// visits counts the places of a schema. It does not tell schemas from the values in them, so it may refuse what is harmless; never the other way
// round.
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
		err = errors.New("it is too large, counted with everything that it refers to")
	}
	return min(total, maxSchemaNodes+1), err
}

// keyword looks at those keywords that change where evaluation goes on.
func (w *schemaWalk) keyword(name, value string) (int, error) {
	switch name {
	case "$ref":
		return w.follow(value)
	case "pattern":
		return patternCost(value), nil
	case "$dynamicRef", "$recursiveRef", "$id", "$anchor", "$dynamicAnchor":
		return 0, fmt.Errorf("it has the keyword %s; references are written as $ref to #/…", name)
	}
	return 0, nil
}

// patternCost is how much a pattern counts: ten characters of it can stand for a thousand that it is compiled to.
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

// find goes to where a reference points: "#" and a JSON pointer.
func (w *schemaWalk) find(ref string) (any, error) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && !strings.HasPrefix(pointer, "/") {
		return nil, errors.New("it refers to something outside of it; references are written as $ref to #/…")
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil {
		return nil, errors.New("it has a reference that cannot be read")
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
			return nil, errors.New("it refers to a place that it does not have")
		}
	}
	return node, nil
}
