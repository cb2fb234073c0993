package desk

import (
	"encoding/json"

	"github.com/fermata-go/fermata/internal/jsondiff"
)

// Difference is one difference between two JSON documents.
type Difference = jsondiff.Difference

// Diff returns the differences between two JSON documents, sorted by pointer. Lists of different
// lengths differ as a whole. Numbers differ if they are written differently, because a tool may
// treat 1.0 and 1 differently.
func Diff(before, after json.RawMessage) ([]Difference, error) { return jsondiff.Diff(before, after) }
