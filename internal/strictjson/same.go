package strictjson

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
)

// SameValue reports whether two JSON documents have the same value: numbers are compared exactly by
// value, so 1.0 is 1. [Canonical] compares them as written.
func SameValue(a, b []byte) bool {
	plainA, errA := plainNumbers(a)
	plainB, errB := plainNumbers(b)
	return errA == nil && errB == nil && bytes.Equal(plainA, plainB)
}

// plainNumbers returns the canonical encoding with each number as a fraction in lowest terms.
func plainNumbers(data []byte) ([]byte, error) {
	v, err := decodeAny(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(plainNumber(v))
}

// maxNumber is the maximum length of a number that is compared by value.
const maxNumber = 400

// plainNumber replaces numbers by texts, and marks the texts so that none is equal to a number.
func plainNumber(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = plainNumber(member)
		}
	case []any:
		for i, item := range v {
			v[i] = plainNumber(item)
		}
	case string:
		return "string " + v
	case json.Number:
		if len(v) > maxNumber {
			return v
		}
		if f, err := strconv.ParseFloat(v.String(), 64); err != nil || f != 0 && f < 1e-300 && f > -1e-300 {
			return v // its exponent would need too much memory
		}
		if exact, ok := new(big.Rat).SetString(v.String()); ok {
			return "number " + exact.String()
		}
	}
	return v
}
