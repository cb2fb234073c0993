// Package strictjson reads JSON the way an approval has to be read: one document, one meaning.
//
// encoding/json is lenient where that is dangerous. It takes the last of two equal keys, takes "Verdict" for "verdict",
// replaces broken UTF-8 and ignores members it does not know. Here each of these is an error that names the place.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may nest. Nobody approves anything deeper, and the limit keeps a hostile
// document from eating the stack.
const MaxDepth = 100

// Check returns nil if data is exactly one JSON value in valid UTF-8, no object in it has two members whose names are
// equal or differ only in case, and it is not nested deeper than MaxDepth.
func Check(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("invalid UTF-8")
	}
	c := checker{dec: json.NewDecoder(bytes.NewReader(data))}
	c.dec.UseNumber()
	if err := c.value(0); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("unexpected end of JSON")
		}
		return err
	}
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more data after the JSON value")
	}
	return nil
}

// Decode checks data and decodes it into v. A member that v has no field for, or has only under a name in another case,
// is an error.
func Decode(data []byte, v any) error {
	if err := Check(data); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return err
	}
	return sameNames(data, v)
}

// sameNames catches what DisallowUnknownFields lets through, a member that reached a field only by ignoring case: what
// was decoded is written again, and each name in the input must occur there with the same spelling or not at all.
func sameNames(data []byte, v any) error {
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var in, out any
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if err := json.Unmarshal(again, &out); err != nil {
		return err
	}
	return compareNames(in, out, "")
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

type checker struct {
	dec *json.Decoder
}

func (c *checker) value(depth int) error {
	token, err := c.dec.Token()
	if err != nil {
		return err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == MaxDepth {
		return fmt.Errorf("nested deeper than %d", MaxDepth)
	}
	if delim == '{' {
		return c.object(depth)
	}
	return c.array(depth)
}

func (c *checker) object(depth int) error {
	seen := map[string]string{}
	for c.dec.More() {
		token, err := c.dec.Token()
		if err != nil {
			return err
		}
		name := token.(string)
		folded := strings.ToLower(name)
		if first, twice := seen[folded]; twice {
			return fmt.Errorf("member %q stands beside %q: which one counts?", name, first)
		}
		seen[folded] = name
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := c.dec.Token()
	return err
}

func (c *checker) array(depth int) error {
	for c.dec.More() {
		if err := c.value(depth + 1); err != nil {
			return err
		}
	}
	_, err := c.dec.Token()
	return err
}

// Canonical returns the one spelling of a JSON document that all equal documents share: members sorted by name, no white
// space, numbers as they were written. Digests are made of it.
func Canonical(data []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber() // a float64 would merge numbers beyond 2^53
	var v any
	if err := dec.Decode(&v); err != nil {
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
