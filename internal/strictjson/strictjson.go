// Package strictjson decodes JSON without ambiguity, as needed for approvals.
//
// encoding/json is lenient: it takes the last of two equal keys, accepts "Verdict" for "verdict",
// replaces invalid UTF-8 and unpaired surrogates, and ignores unknown members. Here each of these
// is an error that names the position.
package strictjson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting of arrays and objects. It protects the stack from hostile
// documents.
const MaxDepth = 100

// MaxValueDepth is the maximum nesting of a value from outside. Such values are stored inside other
// documents, which must stay within MaxDepth.
const MaxValueDepth = MaxDepth - 20

// Check returns nil if data is exactly one JSON value in valid UTF-8 without unpaired surrogate
// escapes, no object has two members whose names are equal or differ only in case, and the nesting
// is at most MaxDepth.
func Check(data []byte) error { return check(data, MaxDepth) }

// CheckValue is Check with the limit MaxValueDepth, for values from outside.
func CheckValue(data []byte) error { return check(data, MaxValueDepth) }

func check(data []byte, limit int) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	if !json.Valid(data) {
		var none json.RawMessage
		return cmp.Or(json.Unmarshal(data, &none), errors.New("not JSON"))
	}
	if !checkSurrogates(data) {
		return errors.New("unpaired surrogate")
	}
	w := walker{data: data, limit: limit}
	return w.value(0)
}

// checkSurrogates reports whether each surrogate escape of a document has its other half. Decoders
// replace an unpaired surrogate, usually by U+FFFD; then different texts look the same and have the
// same digest. The document is known to be valid JSON.
func checkSurrogates(data []byte) bool {
	for {
		at := bytes.IndexByte(data, '\\')
		if at < 0 {
			return true
		}
		data = data[at:]
		switch first, second := escaped(data), escaped(data[min(len(data), 6):]); {
		case !utf16.IsSurrogate(first):
			data = data[2:]
		case utf16.DecodeRune(first, second) == unicode.ReplacementChar:
			return false
		default:
			data = data[12:]
		}
	}
}

// escaped returns the character of a \u escape at the start of the text, or 0.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	number, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(number)
}

// Members splits an object. Its own names are checked like in Check; the values may be any JSON.
func Members(data []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return nil, err
	}
	w := walker{data: data, limit: math.MaxInt, shallow: true}
	if err := w.value(0); err != nil {
		return nil, err
	}
	return members, nil
}

// Decode checks data and decodes it into v. A member is an error if v has no field for it, or only
// under a name in another case. An integer may be written with a fraction of zero or an exponent.
func Decode(data []byte, v any) error {
	if err := Check(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		if plain, ok := RetryIntegers(data, err); ok {
			return Decode(plain, v)
		}
		return err
	}
	return checkNames(data, v)
}

// checkNames finds members that matched a field only by ignoring case, which DisallowUnknownFields
// accepts. It encodes the decoded value again and requires each name of the input to occur there
// with the same spelling, or not at all.
func checkNames(data []byte, v any) error {
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	in, err := decodeAny(data)
	if err != nil {
		return err
	}
	out, err := decodeAny(again)
	if err != nil {
		return err
	}
	return compareNames(in, out, "")
}

// decodeAny decodes any JSON and keeps numbers of any size.
func decodeAny(data []byte) (v any, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	err = dec.Decode(&v)
	return v, err
}

func compareNames(in, out any, path string) error {
	switch in := in.(type) {
	case map[string]any:
		outMap, ok := out.(map[string]any)
		if !ok {
			return nil // a type with its own JSON form
		}
		for name, value := range in {
			if _, ok := outMap[name]; ok {
				if err := compareNames(value, outMap[name], path+"/"+name); err != nil {
					return err
				}
				continue
			}
			for known := range outMap {
				if strings.EqualFold(known, name) {
					return fmt.Errorf("unknown member %q at %q: did you mean %q?", name, path+"/", known)
				}
			}
		}
	case []any:
		outList, ok := out.([]any)
		if !ok || len(outList) != len(in) {
			return nil
		}
		for i := range in {
			if err := compareNames(in[i], outList[i], fmt.Sprintf("%s/%d", path, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// walker walks a valid JSON document and checks the names of members.
type walker struct {
	data    []byte
	at      int
	limit   int  // the maximum depth
	shallow bool // check only the names of the outermost object
}

// next skips white space and returns the next byte.
func (w *walker) next() byte {
	for {
		switch c := w.data[w.at]; c {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return c
		}
	}
}

func (w *walker) value(depth int) error {
	switch w.next() {
	case '{', '[':
		if depth == w.limit {
			return fmt.Errorf("nested deeper than %d", w.limit)
		}
		return w.members(depth)
	case '"':
		w.text()
	default: // a number or a literal
		for w.at < len(w.data) && strings.IndexByte(",]} \t\r\n", w.data[w.at]) < 0 {
			w.at++
		}
	}
	return nil
}

// members walks an object or an array.
func (w *walker) members(depth int) error {
	object := w.data[w.at] == '{'
	var names names
	for {
		w.at++ // past the opening bracket or the comma
		if c := w.next(); c == '}' || c == ']' {
			break // it is empty
		}
		if object {
			if name := w.text(); depth == 0 || !w.shallow {
				if err := names.add(name); err != nil {
					return err
				}
			}
			w.next()
			w.at++ // past the colon
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		if w.next() != ',' {
			break
		}
	}
	w.at++
	return nil
}

// text skips a string and returns it with its quotes.
func (w *walker) text() []byte {
	start := w.at
	for w.at++; w.data[w.at] != '"'; w.at++ {
		if w.data[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.data[start:w.at]
}

// names holds the names of one object: a few in a list, more in a map.
type names struct {
	list  [8][]byte
	n     int
	index map[string]string // by case-folded name
}

func (s *names) add(quoted []byte) error {
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		var plain string
		if err := json.Unmarshal(quoted, &plain); err != nil {
			return err
		}
		name = []byte(plain)
	}
	if s.index == nil && s.n < len(s.list) {
		for _, first := range s.list[:s.n] {
			if bytes.EqualFold(first, name) {
				return errDuplicate(name, first)
			}
		}
		s.list[s.n] = name
		s.n++
		return nil
	}
	if s.index == nil {
		s.index = make(map[string]string)
		for _, first := range s.list[:s.n] {
			s.index[folded(first)] = string(first)
		}
	}
	key := folded(name)
	if first, known := s.index[key]; known {
		return errDuplicate(name, []byte(first))
	}
	s.index[key] = string(name)
	return nil
}

func errDuplicate(name, first []byte) error {
	return fmt.Errorf("members %q and %q are ambiguous", name, first)
}

// folded maps names that Go's decoder treats as equal to the same text.
func folded(name []byte) string {
	return string(bytes.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, name))
}

// Canonical returns the canonical encoding of a JSON document: members sorted by name, no white
// space, numbers as written. Equal documents have equal encodings. Digests are computed from it.
func Canonical(data []byte) ([]byte, error) {
	v, err := decodeAny(data) // a float64 would merge numbers beyond 2^53
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
