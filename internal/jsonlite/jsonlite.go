// Package jsonlite writes and reads the engine's own small records as JSON.
//
// encoding/json finds out the form of a value anew for each one. The engine's records have a fixed form and are written
// several times per wait, where that was most of the cost of a checkpoint. What users hand us goes through encoding/json;
// what is read here was written here, and anything else is an error.
package jsonlite

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in encoding/json.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				dst = append(append(dst, s[start:i]...), `\ufffd`...)
				start = i + 1
			}
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// Object writes the members of one object.
type Object struct{ buf []byte }

var objects = sync.Pool{New: func() any { return &Object{buf: make([]byte, 0, 512)} }}

// NewObject begins an object.
func NewObject() *Object {
	o := objects.Get().(*Object)
	o.buf = append(o.buf[:0], '{')
	return o
}

// End returns the finished object. The writer must not be used any more.
func (o *Object) End() []byte {
	data := make([]byte, len(o.buf)+1)
	copy(data, o.buf)
	data[len(o.buf)] = '}'
	objects.Put(o)
	return data
}

// Append writes a member whose value append adds to the buffer.
func (o *Object) Append(name string, value func(buf []byte) []byte) {
	o.name(name)
	o.buf = value(o.buf)
}

func (o *Object) name(name string) {
	if len(o.buf) > 1 {
		o.buf = append(o.buf, ',')
	}
	o.buf = append(AppendString(o.buf, name), ':')
}

// String writes a member; an empty one is left out.
func (o *Object) String(name, value string) {
	if value != "" {
		o.name(name)
		o.buf = AppendString(o.buf, value)
	}
}

// Int writes a member; 0 is left out.
func (o *Object) Int(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.buf = strconv.AppendInt(o.buf, value, 10)
	}
}

// Bool writes a member; false is left out.
func (o *Object) Bool(name string, value bool) {
	if value {
		o.name(name)
		o.buf = append(o.buf, "true"...)
	}
}

// Raw writes a member that is JSON already; nil is left out.
func (o *Object) Raw(name string, value []byte) {
	if value != nil {
		o.name(name)
		o.buf = append(o.buf, value...)
	}
}

// Strings writes a list; an empty one is left out.
func (o *Object) Strings(name string, values []string) {
	if len(values) == 0 {
		return
	}
	o.name(name)
	for i, value := range values {
		o.buf = AppendString(append(o.buf, separator(i)), value)
	}
	o.buf = append(o.buf, ']')
}

func separator(i int) byte {
	if i == 0 {
		return '['
	}
	return ','
}

// ErrSyntax says that something is not JSON, or not of the form that was expected.
var ErrSyntax = errors.New("not the JSON that was expected")

// Reader reads one record. The first error ends it; Err returns it.
type Reader struct {
	data []byte
	pos  int
	err  error
}

// NewReader reads data, which it does not copy.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// Err returns what was wrong, data after the record included.
func (r *Reader) Err() error {
	if r.space(); r.err == nil && r.pos != len(r.data) {
		r.Fail()
	}
	return r.err
}

// Fail makes the record one that cannot be read.
func (r *Reader) Fail() {
	if r.err == nil {
		r.err = fmt.Errorf("%w at byte %d", ErrSyntax, r.pos)
	}
	r.pos = len(r.data)
}

func (r *Reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// accept skips c if it comes next.
func (r *Reader) accept(c byte) bool {
	r.space()
	if r.pos < len(r.data) && r.data[r.pos] == c {
		r.pos++
		return true
	}
	return false
}

func (r *Reader) expect(c byte) {
	if !r.accept(c) {
		r.Fail()
	}
}

// Object calls member for each member of the object that comes next; member must read or skip its value.
func (r *Reader) Object(member func(name string)) {
	r.expect('{')
	if r.accept('}') {
		return
	}
	for r.err == nil {
		name := r.String()
		r.expect(':')
		if r.err != nil {
			return
		}
		member(name)
		if r.accept('}') {
			return
		}
		r.expect(',')
	}
}

// Array calls item before each item of the array that comes next; item must read or skip it.
func (r *Reader) Array(item func()) {
	r.expect('[')
	if r.accept(']') {
		return
	}
	for r.err == nil {
		item()
		if r.accept(']') {
			return
		}
		r.expect(',')
	}
}

// String reads a string.
func (r *Reader) String() string {
	raw := r.quoted()
	if r.err != nil {
		return ""
	}
	escape := bytes.IndexByte(raw, '\\')
	if escape < 0 && utf8.Valid(raw) {
		return string(raw)
	}
	if text, ok := unescape(raw, escape); ok {
		return text
	}
	var s string // the rarer escapes, and bytes that are not UTF-8
	if json.Unmarshal(r.data[r.pos-len(raw)-2:r.pos], &s) != nil {
		r.Fail()
	}
	return s
}

// unescape resolves the escapes that AppendString writes, of which the first is at i.
func unescape(raw []byte, i int) (string, bool) {
	if i < 0 {
		return "", false
	}
	text := make([]byte, 0, len(raw))
	for i >= 0 {
		if i+1 >= len(raw) {
			return "", false
		}
		text = append(text, raw[:i]...)
		switch raw[i+1] {
		case '"', '\\':
			text = append(text, raw[i+1])
		case 'n':
			text = append(text, '\n')
		default:
			return "", false
		}
		raw = raw[i+2:]
		i = bytes.IndexByte(raw, '\\')
	}
	text = append(text, raw...)
	return string(text), utf8.Valid(text)
}

// quoted returns what stands between the quotes of the string that comes next, and skips it.
func (r *Reader) quoted() []byte {
	r.expect('"')
	for i := r.pos; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			raw := r.data[r.pos:i]
			r.pos = i + 1
			return raw
		case c == '\\':
			i++
		case c < ' ':
			r.Fail()
			return nil
		}
	}
	r.Fail()
	return nil
}

// Int reads a whole number.
func (r *Reader) Int() int64 {
	r.space()
	start := r.pos
	for r.pos < len(r.data) && (r.data[r.pos] == '-' || '0' <= r.data[r.pos] && r.data[r.pos] <= '9') {
		r.pos++
	}
	raw := string(r.data[start:r.pos])
	n, err := strconv.ParseInt(raw, 10, 64)
	if err != nil || raw[0] == '0' && len(raw) > 1 || raw[0] == '-' && raw[1] == '0' {
		r.Fail()
	}
	return n
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	switch raw := string(r.Raw()); raw {
	case "true", "false":
		return raw == "true"
	}
	r.Fail()
	return false
}

// Raw reads any value and returns its JSON, which is checked.
func (r *Reader) Raw() []byte {
	r.space()
	start := r.pos
	r.skip(0)
	if r.err != nil {
		return nil
	}
	raw := r.data[start:r.pos:r.pos]
	if !json.Valid(raw) {
		r.pos = start
		r.Fail()
		return nil
	}
	return raw
}

// maxDepth keeps a hostile record from eating the stack.
const maxDepth = 10_000

// skip passes over a value, roughly: Raw checks it.
func (r *Reader) skip(depth int) {
	if depth > maxDepth || r.pos >= len(r.data) {
		r.Fail()
		return
	}
	switch r.data[r.pos] {
	case '{':
		r.Object(func(string) { r.space(); r.skip(depth + 1) })
	case '[':
		r.Array(func() { r.space(); r.skip(depth + 1) })
	case '"':
		r.quoted()
	default:
		start := r.pos
		for r.pos < len(r.data) && r.data[r.pos] != ',' && r.data[r.pos] != '}' && r.data[r.pos] != ']' && r.data[r.pos] > ' ' {
			r.pos++
		}
		if r.pos == start {
			r.Fail()
		}
	}
}
