// Package jsonlite encodes and decodes the engine's own small records as JSON.
//
// encoding/json derives the form of a value by reflection each time. The engine's records have a
// fixed form and are written several times per wait, where that was most of the cost of a
// checkpoint. User data goes through encoding/json. This package reads only what it wrote; anything
// else is an error.
package jsonlite

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

const hexDigits = "0123456789abcdef"

// plain marks the bytes that need no escape in a JSON string.
var plain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

// allPlain reports whether eight bytes are all plain. A byte below ' ', '"' or '\\' borrows from
// its top bit in one of the differences, and a byte that is not ASCII has the top bit set.
func allPlain(x uint64) bool {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	return ((x-ones*' ')|((x^ones*'"')-ones)|((x^ones*'\\')-ones)|x)&tops == 0
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, as in
// encoding/json.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			// user texts are long, and nearly all of their bytes are plain
			for ; i+8 <= len(s); i += 8 {
				x := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
					uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
				if !allPlain(x) {
					break
				}
			}
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

// Object writes one object, member by member. Methods for arbitrary member names say so; all other
// names are constants that need no escapes.
type Object struct{ buf []byte }

var objects = sync.Pool{New: func() any { return &Object{buf: make([]byte, 0, 1<<10)} }}

// NewObject starts an object.
func NewObject() *Object {
	o := objects.Get().(*Object)
	o.buf = append(o.buf[:0], '{')
	return o
}

// End returns the finished object. The writer must not be used afterwards.
func (o *Object) End() []byte {
	data := make([]byte, len(o.buf)+1)
	copy(data, o.buf)
	data[len(o.buf)] = '}'
	objects.Put(o)
	return data
}

// next writes the separator between two members or items.
func (o *Object) next() {
	if last := o.buf[len(o.buf)-1]; last != '{' && last != '[' {
		o.buf = append(o.buf, ',')
	}
}

func (o *Object) name(name string) {
	o.next()
	o.buf = append(append(append(o.buf, '"'), name...), '"', ':')
}

// String writes a string member unless it is empty.
func (o *Object) String(name, value string) {
	if value != "" {
		o.name(name)
		o.buf = AppendString(o.buf, value)
	}
}

// Int writes a number member unless it is 0.
func (o *Object) Int(name string, value int64) {
	if value != 0 {
		o.name(name)
		o.buf = strconv.AppendInt(o.buf, value, 10)
	}
}

// Bool writes a boolean member unless it is false.
func (o *Object) Bool(name string, value bool) {
	if value {
		o.name(name)
		o.buf = append(o.buf, "true"...)
	}
}

// Raw writes a member that is already JSON unless it is nil.
func (o *Object) Raw(name string, value []byte) {
	if value != nil {
		o.name(name)
		o.buf = append(o.buf, value...)
	}
}

// Strings writes a list member unless it is empty.
func (o *Object) Strings(name string, values []string) {
	if len(values) == 0 {
		return
	}
	o.OpenList(name)
	for _, value := range values {
		o.next()
		o.buf = AppendString(o.buf, value)
	}
	o.CloseList()
}

// OpenList starts a list. Item adds to it and CloseList ends it.
func (o *Object) OpenList(name string) {
	o.name(name)
	o.buf = append(o.buf, '[')
}

// Item writes an item of a list.
func (o *Object) Item(value int64) {
	o.next()
	o.buf = strconv.AppendInt(o.buf, value, 10)
}

// CloseList ends a list.
func (o *Object) CloseList() { o.buf = append(o.buf, ']') }

// Open starts a member that is an object. The following members belong to it until Close.
func (o *Object) Open(name string) {
	o.name(name)
	o.buf = append(o.buf, '{')
}

// OpenAny is Open for an arbitrary name.
func (o *Object) OpenAny(name string) {
	o.AnyName(name)
	o.buf = append(o.buf, '{')
}

// Close ends the object that Open or OpenAny started.
func (o *Object) Close() { o.buf = append(o.buf, '}') }

// AnyName writes an arbitrary member name. Value or IntValue writes the value.
func (o *Object) AnyName(name string) {
	o.next()
	o.buf = append(AppendString(o.buf, name), ':')
}

// Value writes the value of a member as JSON.
func (o *Object) Value(value []byte) { o.buf = append(o.buf, value...) }

// IntValue writes the value of a member.
func (o *Object) IntValue(value int64) { o.buf = strconv.AppendInt(o.buf, value, 10) }

// errSyntax is returned for data that is not JSON or does not have the expected form.
var errSyntax = errors.New("unexpected JSON")

// Reader reads one record. The first error stops it; Err returns it.
type Reader struct {
	data []byte
	text string // a copy of small data, so that its strings share one allocation
	pos  int
	err  error
}

// maxText is the maximum size of data that is copied into one string. A larger string would keep
// all data in memory because of one name.
const maxText = 4 << 10

// NewReader returns a reader of data. It does not copy data.
func NewReader(data []byte) *Reader { return &Reader{data: data} }

// stringAt returns the bytes between two positions as a string.
func (r *Reader) stringAt(start, end int) string {
	if len(r.data) > maxText {
		return string(r.data[start:end])
	}
	if r.text == "" {
		r.text = string(r.data)
	}
	return r.text[start:end]
}

// Err returns the first error. Data after the record is an error.
func (r *Reader) Err() error {
	if r.space(); r.err == nil && r.pos != len(r.data) {
		r.Fail()
	}
	return r.err
}

// Fail marks the record as invalid.
func (r *Reader) Fail() {
	if r.err == nil {
		r.err = fmt.Errorf("%w at byte %d", errSyntax, r.pos)
	}
	r.pos = len(r.data)
}

// Pos returns the current position, for Since.
func (r *Reader) Pos() int {
	r.space()
	return r.pos
}

// Since returns the bytes from an earlier Pos to the current position.
func (r *Reader) Since(pos int) []byte { return r.data[pos:r.pos:r.pos] }

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

// accept skips c if it is the next byte.
func (r *Reader) accept(c byte) bool {
	if r.pos < len(r.data) && r.data[r.pos] == c { // our own encoder writes no spaces
		r.pos++
		return true
	}
	return r.acceptSpaced(c)
}

func (r *Reader) acceptSpaced(c byte) bool {
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

// Object calls member for each member of the next object; member must read or skip its value.
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

// Array calls item before each item of the next array; item must read or skip it.
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
	raw, plain := r.quoted()
	if r.err != nil {
		return ""
	}
	escape := -1
	if !plain {
		escape = bytes.IndexByte(raw, '\\')
	}
	if plain || escape < 0 && utf8.Valid(raw) {
		return r.stringAt(r.pos-1-len(raw), r.pos-1)
	}
	if text, ok := unescape(raw, escape); ok {
		return text
	}
	var s string // rare escapes, and bytes that are not UTF-8
	if json.Unmarshal(r.data[r.pos-len(raw)-2:r.pos], &s) != nil {
		r.Fail()
	}
	return s
}

// unescape resolves the escapes that AppendString writes. The first one is at i.
func unescape(raw []byte, i int) (string, bool) {
	if i < 0 {
		return "", false
	}
	var text strings.Builder
	text.Grow(len(raw))
	for i >= 0 {
		if i+1 >= len(raw) {
			return "", false
		}
		text.Write(raw[:i])
		switch raw[i+1] {
		case '"', '\\':
			text.WriteByte(raw[i+1])
		case 'n':
			text.WriteByte('\n')
		default:
			return "", false
		}
		raw = raw[i+2:]
		i = bytes.IndexByte(raw, '\\')
	}
	text.Write(raw)
	return text.String(), utf8.ValidString(text.String())
}

// quoted skips the next string and returns the bytes between its quotes. isPlain reports that they
// contain no escapes.
func (r *Reader) quoted() (raw []byte, isPlain bool) {
	r.expect('"')
	isPlain = true
	for i := r.pos; i < len(r.data); i++ {
		for i+8 <= len(r.data) && allPlain(binary.LittleEndian.Uint64(r.data[i:])) {
			i += 8
		}
		for i < len(r.data) && plain[r.data[i]] {
			i++
		}
		if i == len(r.data) {
			break
		}
		switch c := r.data[i]; {
		case c == '"':
			raw = r.data[r.pos:i]
			r.pos = i + 1
			return raw, isPlain
		case c == '\\':
			i++
		case c < ' ':
			r.Fail()
			return nil, false
		}
		isPlain = false
	}
	r.Fail()
	return nil, false
}

// Int reads a whole number.
func (r *Reader) Int() int64 {
	r.space()
	start := r.pos
	for r.pos < len(r.data) && (r.data[r.pos] == '-' || '0' <= r.data[r.pos] && r.data[r.pos] <= '9') {
		r.pos++
	}
	raw := r.data[start:r.pos]
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || raw[0] == '0' && len(raw) > 1 || raw[0] == '-' && raw[1] == '0' {
		r.Fail()
	}
	return n
}

// Bool reads true or false.
func (r *Reader) Bool() bool {
	r.space()
	switch rest := r.data[r.pos:]; {
	case bytes.HasPrefix(rest, []byte("true")):
		r.pos += len("true")
		return true
	case bytes.HasPrefix(rest, []byte("false")):
		r.pos += len("false")
		return false
	}
	r.Fail()
	return false
}

// Raw reads any value and returns its JSON after checking it.
func (r *Reader) Raw() []byte {
	r.space()
	start := r.pos
	r.skip(0)
	if r.err != nil {
		return nil
	}
	raw := r.data[start:r.pos:r.pos]
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		return raw // a string without escapes was checked already
	}
	if isWhole(raw) {
		return raw
	}
	if !json.Valid(raw) {
		r.pos = start
		r.Fail()
		return nil
	}
	return raw
}

// isWhole reports whether raw is a non-negative integer, a common small value.
func isWhole(raw []byte) bool {
	for _, c := range raw {
		if c < '0' || c > '9' {
			return false
		}
	}
	return raw[0] != '0' || len(raw) == 1
}

// maxDepth protects the stack from a hostile record.
const maxDepth = 10_000

// skip skips a value with a rough check. Raw checks it completely.
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
