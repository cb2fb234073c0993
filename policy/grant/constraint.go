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

	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/policy"
)

// Op is how a leaf is compared.
type Op string

// The comparisons. A leaf of another JSON type never passes, also not with Any.
const (
	Eq     Op = "eq"     // exactly this value
	Prefix Op = "prefix" // a text that begins like this, and goes on without tricks
	Le     Op = "le"     // a number from 0 to this
	Ge     Op = "ge"     // a number from this on
	In     Op = "in"     // one of these values
	Any    Op = "any"    // whatever there is
)

// Constraint is what one leaf of the arguments has to fulfil.
type Constraint struct {
	Op Op `json:"op"`
	// Type is the JSON type of what was approved: string, number, boolean, null, object or array; the last two are empty ones.
	Type string `json:"type"`
	// Above are the objects and lists around it, from the outside in: "{[" is an item of a list in an object.
	Containers string `json:"above,omitempty"`
	// Value is what to compare with; with In a list, with Any nothing.
	Value json.RawMessage `json:"value,omitempty"`
}

// AtMost lets a number be anything from 0 to most.
func AtMost(most int64) Constraint {
	return Constraint{Op: Le, Value: json.RawMessage(strconv.FormatInt(most, 10))}
}

// AtLeast lets a number be anything from least on.
func AtLeast(least int64) Constraint {
	return Constraint{Op: Ge, Value: json.RawMessage(strconv.FormatInt(least, 10))}
}

// HasPrefix lets a text go on differently after a prefix: without "..", white space and anything that a shell would act on.
func HasPrefix(prefix string) Constraint {
	raw, err := json.Marshal(prefix)
	if err != nil {
		return Constraint{Op: Prefix}
	}
	return Constraint{Op: Prefix, Value: raw}
}

// OneOf lets a leaf be one of some JSON values.
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

// Anything lets a leaf be any value of the type that was approved.
func Anything() Constraint { return Constraint{Op: Any} }

// check says what is wrong with a constraint, of which the type is known.
func (c Constraint) check() error {
	switch c.Op {
	case Any:
		return nil
	case Prefix:
		var prefix string
		if json.Unmarshal(c.Value, &prefix) != nil || prefix == "" {
			return errors.New("a prefix has to be a text, and not an empty one")
		}
		if _, host, ok := strings.Cut(prefix, "://"); ok && !strings.Contains(host, "/") {
			return errors.New("a prefix of an address has to name the whole host: end it with a slash")
		}
		return nil
	case Le, Ge:
		if bound, ok := rational(c.Value); !ok || bound.Sign() < 0 {
			return errors.New("a bound has to be a number, and not a negative one")
		}
		return nil
	case In:
		var values []json.RawMessage
		if strictjson.Check(c.Value) != nil || json.Unmarshal(c.Value, &values) != nil || len(values) == 0 {
			return errors.New("a choice has to be among some JSON values")
		}
		return nil
	}
	return fmt.Errorf("a leaf cannot be relaxed to %q", c.Op)
}

// refuses says why a leaf does not pass; "" if it does. It never repeats the value.
func (c Constraint) reject(l leaf) string {
	if l.kind != c.Type {
		return fmt.Sprintf("is a %s and not a %s", l.kind, c.Type)
	}
	if l.containers != c.Containers {
		return "is in something else"
	}
	switch c.Op {
	case Any:
		return ""
	case Eq:
		if bytes.Equal(l.raw, c.Value) {
			return ""
		}
		return "is another"
	case In:
		if c.containsValue(l) {
			return ""
		}
		return "is none of those that were granted"
	case Prefix:
		return c.rejectText(l)
	case Le, Ge:
		return c.rejectNumber(l)
	}
	return "has a constraint that is not known"
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
		return "is no text"
	}
	rest, ok := strings.CutPrefix(text, prefix)
	plain, known := unescaped(text)
	switch {
	case !ok:
		return "does not begin with what was granted"
	case !known, strings.Contains(plain, ".."), strings.ContainsAny(plain, dotLookalikes):
		return "climbs out with \"..\""
	case strings.ContainsFunc(rest, isUnsafeRune), strings.ContainsFunc(plain, unicode.IsControl):
		return "goes on with a character that a shell would act on"
	}
	return ""
}

// dotLookalikes are characters that some systems take for one dot, or for several.
const dotLookalikes = "․‥…﹒．"

var percentEscape = regexp.MustCompile("%[0-9A-Fa-f]{2}")

// unescaped is what stands behind percent signs, also behind those that stand behind others: %252e is %2e once more. It is not known if that does not come
// to an end soon, or is no text: two bytes that are none can be a dot to somebody.
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

// isUnsafeRune are the characters with which a text can become a second command, another word or something unseen.
func isUnsafeRune(r rune) bool {
	return strings.ContainsRune(";&|`$(){}[]<>'\"\\*?!#~", r) || unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == unicode.ReplacementChar
}

func (c Constraint) rejectNumber(l leaf) string {
	bound, ok := rational(c.Value)
	number, good := rational(l.raw)
	switch {
	case !ok || !good:
		return "is no number that can be compared"
	case number.Sign() < 0:
		return "is negative"
	case bound.IsInt() && !number.IsInt():
		return "is a fraction"
	case c.Op == Le && number.Cmp(bound) > 0:
		return "is more than was granted"
	case c.Op == Ge && number.Cmp(bound) < 0:
		return "is less than was granted"
	}
	return ""
}

// rational reads a number exactly. One whose exponent would fill the memory is no number here: ParseFloat refuses it upwards,
// and SetString downwards.
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
			return 0, errors.New("the cost is not told")
		}
		if in.Cost < 0 {
			return 0, errors.New("the cost is negative")
		}
		return in.Cost, nil
	}
	number, ok := rational(leaves[b.Of].raw)
	if !ok || !number.IsInt() || !number.Num().IsInt64() || number.Sign() < 0 {
		return 0, fmt.Errorf("argument %s is no whole amount", b.Of)
	}
	return number.Num().Int64(), nil
}
