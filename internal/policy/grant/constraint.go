package grant

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/policy"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// Op is a comparison of a leaf.
type Op string

// The comparisons. A leaf of another JSON type never matches, not even with Any.
const (
	Eq     Op = "eq"     // exactly this value
	Prefix Op = "prefix" // a text with this prefix and only safe characters after it
	Le     Op = "le"     // a number from 0 to this value
	Ge     Op = "ge"     // a number of at least this value
	In     Op = "in"     // one of these values
	Any    Op = "any"    // any value
)

// Constraint is the constraint on one leaf of the arguments.
type Constraint struct {
	Op Op `json:"op"`
	// Type is the JSON type of the approved value: string, number, boolean, null, or an empty
	// object or array.
	Type string `json:"type"`
	// Containers are the objects and arrays around the leaf, outermost first: "{[" is an item of an
	// array in an object.
	Containers string `json:"above,omitempty"`
	// Value is the value to compare with: an array for In, empty for Any.
	Value json.RawMessage `json:"value,omitempty"`
	// Fraction lets a whole bound match fractions, because the approved number was one.
	Fraction bool `json:"fraction,omitempty"`
}

// AtMost allows any number from 0 to most.
func AtMost(most int64) Constraint {
	return Constraint{Op: Le, Value: json.RawMessage(strconv.FormatInt(most, 10))}
}

// AtLeast allows any number of at least least.
func AtLeast(least int64) Constraint {
	return Constraint{Op: Ge, Value: json.RawMessage(strconv.FormatInt(least, 10))}
}

// HasPrefix allows any text with the prefix, without "..", white space and shell metacharacters.
func HasPrefix(prefix string) Constraint {
	raw, err := json.Marshal(prefix)
	if err != nil {
		return Constraint{Op: Prefix}
	}
	return Constraint{Op: Prefix, Value: raw}
}

// OneOf allows one of several JSON values.
func OneOf(values ...json.RawMessage) Constraint {
	return Constraint{Op: In, Value: append(append([]byte{'['}, bytes.Join(asBytes(values), []byte{','})...), ']')}
}

func asBytes(values []json.RawMessage) [][]byte {
	all := make([][]byte, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// Anything allows any value of the approved type.
func Anything() Constraint { return Constraint{Op: Any} }

// check returns what is wrong with a constraint whose type is known.
func (c Constraint) check() error {
	switch c.Op {
	case Any:
		return nil
	case Prefix:
		var prefix string
		if json.Unmarshal(c.Value, &prefix) != nil || prefix == "" {
			return errors.New("a prefix must be a non-empty string")
		}
		if _, host, ok := strings.Cut(prefix, "://"); ok && !strings.Contains(host, "/") {
			return errors.New("a prefix of a URL must include the whole host: end it with a slash")
		}
		return nil
	case Le, Ge:
		if bound, ok := rational(c.Value); !ok || bound.Sign() < 0 {
			return errors.New("a bound must be a non-negative number")
		}
		return nil
	case In:
		var values []json.RawMessage
		if strictjson.Check(c.Value) != nil || json.Unmarshal(c.Value, &values) != nil || len(values) == 0 {
			return errors.New("a choice must be a non-empty list of JSON values")
		}
		return nil
	}
	return fmt.Errorf("unknown constraint %q", c.Op)
}

// reject explains why a leaf does not match, or returns "" if it does. It never contains the value.
func (c Constraint) reject(l leaf) string {
	if l.kind != c.Type {
		return fmt.Sprintf("is a %s and not a %s", l.kind, c.Type)
	}
	if l.containers != c.Containers {
		return "is in a different object or array"
	}
	switch c.Op {
	case Any:
		return ""
	case Eq:
		if bytes.Equal(l.raw, c.Value) {
			return ""
		}
		return "differs from the approved value"
	case In:
		if c.containsValue(l) {
			return ""
		}
		return "is not one of the granted values"
	case Prefix:
		return c.rejectText(l)
	case Le, Ge:
		return c.rejectNumber(l)
	}
	return "has an unknown constraint"
}

func (c Constraint) containsValue(l leaf) bool {
	var values []json.RawMessage
	if json.Unmarshal(c.Value, &values) != nil {
		return false
	}
	return slices.ContainsFunc(values, func(v json.RawMessage) bool {
		canonical, err := strictjson.Canonical(v)
		return err == nil && bytes.Equal(canonical, l.raw)
	})
}

func (c Constraint) rejectText(l leaf) string {
	var prefix, text string
	if json.Unmarshal(c.Value, &prefix) != nil || prefix == "" || json.Unmarshal(l.raw, &text) != nil {
		return "is not a string"
	}
	rest, ok := strings.CutPrefix(text, prefix)
	plain, known := unescaped(text)
	switch {
	case !ok:
		return "does not have the granted prefix"
	case !known, strings.Contains(plain, ".."), strings.ContainsAny(plain, dotLookalikes):
		return "contains \"..\""
	case strings.ContainsFunc(rest, isUnsafeRune), strings.ContainsFunc(plain, unicode.IsControl):
		return "contains a shell metacharacter"
	}
	return ""
}

// dotLookalikes are characters that some systems treat as one or more dots.
const dotLookalikes = "․‥…﹒．"

var percentEscape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// unescaped decodes percent escapes repeatedly: %252e is %2e and then a dot. known is false if the
// decoding does not end soon, or if the result is not valid UTF-8, because some systems decode
// invalid bytes as a dot.
func unescaped(text string) (plain string, known bool) {
	for range 4 {
		before := text
		text = percentEscape.ReplaceAllStringFunc(text, func(sign string) string {
			letter, _ := hex.DecodeString(sign[1:])
			return string(letter)
		})
		if text == before {
			return text, utf8.ValidString(text)
		}
	}
	return text, false
}

// isUnsafeRune reports whether a character can start a second command or word, or is invisible.
func isUnsafeRune(r rune) bool {
	return strings.ContainsRune(";&|`$(){}[]<>'\"\\*?!#~", r) || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar
}

func (c Constraint) rejectNumber(l leaf) string {
	bound, ok := rational(c.Value)
	number, good := rational(l.raw)
	switch {
	case !ok || !good:
		return "is not a comparable number"
	case number.Sign() < 0:
		return "is negative"
	case bound.IsInt() && !number.IsInt() && !c.Fraction:
		return "is a fraction"
	case c.Op == Le && number.Cmp(bound) > 0:
		return "is more than was granted"
	case c.Op == Ge && number.Cmp(bound) < 0:
		return "is less than was granted"
	}
	return ""
}

// rational parses a number exactly. A number with an extreme exponent is rejected, because it would
// need too much memory: ParseFloat rejects large ones and SetString small ones.
func rational(raw json.RawMessage) (*big.Rat, bool) {
	var text json.Number
	if len(raw) > 400 || json.Unmarshal(raw, &text) != nil || bytes.HasPrefix(raw, []byte{'"'}) {
		return nil, false
	}
	if _, err := strconv.ParseFloat(text.String(), 64); err != nil {
		return nil, false
	}
	return new(big.Rat).SetString(text.String())
}

func (b Budget) amount(in policy.Input, leaves map[string]leaf) (int64, error) {
	if b.Max < 0 {
		return 0, errors.New("a budget cannot be negative")
	}
	if b.Of == Cost {
		if slices.Contains(in.UnknownFields, Cost) {
			return 0, errors.New("the cost is unknown")
		}
		if in.Cost < 0 {
			return 0, errors.New("the cost is negative")
		}
		return in.Cost, nil
	}
	number, ok := rational(leaves[b.Of].raw)
	if !ok || !number.IsInt() || !number.Num().IsInt64() || number.Sign() < 0 {
		return 0, fmt.Errorf("argument %s is not a whole amount", b.Of)
	}
	return number.Num().Int64(), nil
}
