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

// decodeArgs makes of JSON what CEL works with. Numbers keep their value: whole ones are int64 or uint64, others double. A
// number that none of these holds exactly becomes a vast, which no rule can compare: rules that try fail, and so close.
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

// maxExactFloat is up to where a double holds every whole number.
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
	// Written with a point or an exponent, as 1e18: still a whole number, perhaps. ParseFloat has bounded the exponent.
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

// inexactNumber is a number that is too large to be compared exactly. It is equal to itself, and anything else that a rule does with
// it is an error. It is no error itself: in CEL two maps with an error in the same place are equal.
type inexactNumber string

var inexactNumberType = types.NewOpaqueType("vast number")

func (v inexactNumber) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("a number is too large for rules")
}

func (v inexactNumber) ConvertToType(t ref.Type) ref.Val {
	if t == types.TypeType {
		return inexactNumberType
	}
	return types.NewErr("a number is too large for rules")
}

func (v inexactNumber) Equal(other ref.Val) ref.Val {
	same, ok := other.(inexactNumber)
	return types.Bool(ok && same == v)
}

func (v inexactNumber) Type() ref.Type { return inexactNumberType }

func (v inexactNumber) Value() any { return string(v) }

// toInteger returns the integer that an expression came to: amounts of money and counts are never fractions.
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
	return 0, amountError(fmt.Sprintf("the amount has to be a whole number of minor units, and this is a %s", value.Type().TypeName()))
}

// amountError says what is wrong with an amount, without the amount.
type amountError string

func (e amountError) Error() string { return string(e) }

func itoa[T ~int | ~int64](n T) string { return strconv.FormatInt(int64(n), 10) }
