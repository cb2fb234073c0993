package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// decodeArgs converts JSON for CEL. Numbers keep their value: integers become int64 or uint64,
// others become double. A number that none of these represents exactly becomes an inexactNumber.
// Rules that use it fail, and so never allow.
func decodeArgs(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return convertNumbers(value), nil
}

func convertNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = convertNumbers(member)
		}
	case []any:
		for i, item := range v {
			v[i] = convertNumbers(item)
		}
	case json.Number:
		return parseNumber(string(v))
	}
	return value
}

// maxExactFloat is the limit below which a double represents every integer exactly.
const maxExactFloat = 1 << 53

func parseNumber(text string) any {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > 400 {
		return inexactNumber(text)
	}
	if math.Abs(f) < maxExactFloat {
		return f
	}
	// A number with a point or an exponent, such as 1e18, may still be an integer. ParseFloat has
	// bounded the exponent.
	if r, ok := new(big.Rat).SetString(text); ok && r.IsInt() {
		switch n := r.Num(); {
		case n.IsInt64():
			return n.Int64()
		case n.IsUint64():
			return n.Uint64()
		}
	}
	return inexactNumber(text)
}

// inexactNumber is a number that is too large to compare exactly. It is equal to itself, and every
// other operation on it is an error. It is not a CEL error value, because two maps with an error at
// the same key compare as equal.
type inexactNumber string

var inexactNumberType = types.NewOpaqueType("inexact number")

func (v inexactNumber) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("number out of range")
}

func (v inexactNumber) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return inexactNumberType
	}
	return types.NewErr("number out of range")
}

func (v inexactNumber) Equal(other ref.Val) ref.Val {
	same, ok := other.(inexactNumber)
	return types.Bool(ok && same == v)
}

func (v inexactNumber) Type() ref.Type { return inexactNumberType }

func (v inexactNumber) Value() any { return string(v) }

// toInteger returns the integer value of an expression. Amounts and counts are never fractions.
func toInteger(value ref.Val) (int64, error) {
	switch v := value.(type) {
	case types.Int:
		return int64(v), nil
	case types.Uint:
		if uint64(v) <= math.MaxInt64 {
			return int64(v), nil
		}
	case types.Double:
		if f := float64(v); f == math.Trunc(f) && math.Abs(f) < maxExactFloat {
			return int64(f), nil
		}
	}
	return 0, amountError(fmt.Sprintf("the amount must be a whole number of minor units, not a %s", value.Type().TypeName()))
}

// amountError describes an invalid amount, without its value.
type amountError string

func (e amountError) Error() string { return string(e) }

func itoa[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }
