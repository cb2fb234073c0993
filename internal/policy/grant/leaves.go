package grant

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// leaf is a value without children, in canonical encoding.
type leaf struct {
	kind string
	// containers are the objects and arrays around the leaf, outermost first, as "{[". /a/0 in an
	// array is not /a/0 in an object.
	containers string
	raw        json.RawMessage
}

// leavesOf returns all leaves by JSON pointer. Empty objects and arrays are leaves.
func leavesOf(args json.RawMessage) (map[string]leaf, error) {
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	if err := strictjson.Check(args); err != nil {
		return nil, fmt.Errorf("%w: %w", policy.ErrInput, err)
	}
	canonical, err := strictjson.Canonical(args)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", policy.ErrInput, err)
	}
	leaves := make(map[string]leaf)
	return leaves, collectLeaves(canonical, "", "", leaves)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func collectLeaves(raw json.RawMessage, pointer, above string, leaves map[string]leaf) error {
	keep := func(kind string) { leaves[pointer] = leaf{kind: kind, containers: above, raw: raw} }
	switch raw[0] {
	case '{':
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			return err
		}
		if len(members) == 0 {
			keep("object")
		}
		for name, member := range members {
			if err := collectLeaves(member, pointer+"/"+pointerEscapes.Replace(name), above+"{", leaves); err != nil {
				return err
			}
		}
	case '[':
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return err
		}
		if len(items) == 0 {
			keep("array")
		}
		for i, item := range items {
			if err := collectLeaves(item, pointer+"/"+strconv.Itoa(i), above+"[", leaves); err != nil {
				return err
			}
		}
	case '"':
		keep("string")
	case 't', 'f':
		keep("boolean")
	case 'n':
		keep("null")
	default:
		keep("number")
	}
	return nil
}
