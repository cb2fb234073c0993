package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// maxInteger is the maximum number of digits of a rewritten integer. It exceeds those of uint64.
const maxInteger = 40

// RetryIntegers returns the document with all integers in plain notation if decoding it failed only
// because one of them is written with a fraction or an exponent, as 1000.0 or 1e3. For JSON Schema
// these are integers; encoding/json does not decode them into one. It returns false otherwise.
func RetryIntegers(data []byte, failure error) ([]byte, bool) {
	wrong, ok := errors.AsType[*json.UnmarshalTypeError](failure)
	if !ok || !strings.HasPrefix(wrong.Value, "number") {
		return nil, false
	}
	plain := make([]byte, 0, len(data))
	changed := false
	for i := 0; i < len(data); {
		switch c := data[i]; {
		case c == '"':
			end := stringEnd(data, i)
			plain = append(plain, data[i:end]...)
			i = end
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(data) && bytes.IndexByte([]byte("0123456789+-.eE"), data[end]) >= 0 {
				end++
			}
			integer, rewritten := plainInteger(string(data[i:end]))
			plain, changed = append(plain, integer...), changed || rewritten
			i = end
		default:
			plain = append(plain, c)
			i++
		}
	}
	return plain, changed
}

// stringEnd returns the index after the string that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}

// plainInteger returns the number without fraction and exponent if it is an integer, and whether
// that changed it.
func plainInteger(number string) (string, bool) {
	if !strings.ContainsAny(number, ".eE") {
		return number, false
	}
	digits, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := digits, 0
	if at := strings.IndexAny(digits, "eE"); at >= 0 {
		var err error
		if exponent, err = strconv.Atoi(digits[at+1:]); err != nil {
			return number, false
		}
		mantissa = digits[:at]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	point := len(whole) + exponent
	all := whole + fraction
	if point > maxInteger || point < 0 && strings.Trim(all, "0") != "" {
		return number, false
	}
	for len(all) < point {
		all += "0"
	}
	if point >= 0 {
		if strings.Trim(all[point:], "0") != "" {
			return number, false
		}
		all = all[:point]
	}
	all = strings.TrimLeft(all, "0")
	switch {
	case all == "":
		return "0", true
	case negative:
		return "-" + all, true
	}
	return all, true
}
