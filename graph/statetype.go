package graph

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/jsonlite"
	"github.com/fermata-go/fermata/internal/recovery"
	"github.com/fermata-go/fermata/internal/roundtrip"
)

// statePtr points to a state. Only [Graph] and [Flow] know its type: a generic engine would be
// compiled for every state type, which takes about a second each.
type statePtr any

// stateType describes a state type: its fields are the unit of saving and merging.
type stateType struct {
	typ    reflect.Type
	fields []field
	byName map[string]int
	// plain is true if a copy of the state shares nothing with the original.
	plain bool
	// singleField is true if the state is not a struct and is treated as one field.
	singleField bool
	// transient are the fields that are excluded from JSON: they are zero when a node is entered.
	transient []int
	// stable is true if every state equals its JSON round trip.
	stable bool
	// fingerprint is the same for states with the same fields.
	fingerprint string
}

type field struct {
	name         string
	index        int
	typ          reflect.Type
	plain        bool
	stable       bool         // every value equals its JSON round trip
	unsavedParts bool         // values may differ in parts that are not saved
	scalar       reflect.Kind // String, Bool or Int for such values, else Invalid
	optional     bool         // omitempty or omitzero: absent in JSON means zero
	omitted      omitFunc     // for a type with custom JSON methods; nil if it is always written
	merge        *merge
	partPrefix   string // prefix of its part names
}

// partName returns the name of the part that holds one value of the field.
func (f *field) partName(rev int64, frame string) string {
	return f.partPrefix + strconv.FormatInt(rev, 10) + " " + frame
}

// scalarKind recognizes common types that do not need encoding/json.
func scalarKind(t reflect.Type) reflect.Kind {
	if roundtrip.HasCustomJSON(t) {
		return reflect.Invalid
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool:
		return t.Kind()
	case reflect.Int, reflect.Int64:
		return reflect.Int
	}
	return reflect.Invalid
}

// singleFieldName is the field name of a state that is not a struct.
const singleFieldName = "state"

// newStateType inspects the type once, when the graph is compiled. The mistakes list what cannot be
// saved.
func newStateType(t reflect.Type) (*stateType, []string) {
	s, mistakes := inspectFields(t)
	h := sha256.New()
	s.stable = len(s.transient) == 0
	for i := range s.fields {
		f := &s.fields[i]
		fmt.Fprintf(h, "%q ", f.name)
		writeType(h, f.typ, nil)
		f.partPrefix = fieldPart(f.name)
		f.stable = roundtrip.InfoOf(f.typ).Stable && f.omitted == nil
		s.stable = s.stable && f.stable
	}
	s.fingerprint = hex.EncodeToString(h.Sum(nil)[:12])
	return s, mistakes
}

// writeType writes a description of a type: its name and its structure, because the structure may
// change while the name stays the same.
func writeType(w io.Writer, t reflect.Type, path []reflect.Type) {
	fmt.Fprintf(w, "%s %s\n", t, t.Kind())
	if slices.Contains(path, t) || roundtrip.HasCustomJSON(t) {
		return
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Map:
		writeType(w, t.Key(), path)
		writeType(w, t.Elem(), path)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		writeType(w, t.Elem(), path)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.Tag.Get("json") != "-" {
				fmt.Fprintf(w, "%q %q ", f.Name, f.Tag.Get("json"))
				writeType(w, f.Type, path)
			}
		}
	}
}

func inspectFields(t reflect.Type) (*stateType, []string) {
	s := &stateType{typ: t, byName: make(map[string]int), plain: true}
	var mistakes []string
	if t.Kind() != reflect.Struct || roundtrip.HasCustomJSON(t) {
		s.singleField = true
		s.fields = []field{{name: singleFieldName, typ: t, plain: isPlain(t), unsavedParts: hasUnsavedParts(t, nil), scalar: scalarKind(t)}}
		s.byName[singleFieldName] = 0
		s.plain = s.fields[0].plain
		return s, roundtrip.Problems(t, "the state")
	}
	for i := range t.NumField() {
		sf := t.Field(i)
		name, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
		if sf.Tag.Get("json") == "-" {
			s.plain = s.plain && isPlain(sf.Type)
			if sf.IsExported() {
				s.transient = append(s.transient, i)
			}
			continue
		}
		if !sf.IsExported() {
			mistakes = append(mistakes, fmt.Sprintf("state field %s is not exported and would be lost: export it", sf.Name))
			continue
		}
		if name == "" {
			name = sf.Name
		}
		f := field{
			name: name, index: i, typ: sf.Type, plain: isPlain(sf.Type), unsavedParts: hasUnsavedParts(sf.Type, nil), scalar: scalarKind(sf.Type),
			optional: sf.Anonymous || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"),
		}
		if roundtrip.HasCustomJSON(sf.Type) {
			f.omitted = omitFuncFor(options, sf.Type)
		}
		s.plain = s.plain && f.plain
		s.byName[name] = len(s.fields)
		s.fields = append(s.fields, f)
		mistakes = append(mistakes, roundtrip.Problems(sf.Type, "state field "+sf.Name)...)
	}
	for _, lost := range roundtrip.Shadowed(t) {
		mistakes = append(mistakes, "the state's "+lost)
	}
	return s, mistakes
}

var timeType = reflect.TypeFor[time.Time]()

// isPlain reports whether copying a value copies everything in it.
func isPlain(t reflect.Type) bool {
	if t == timeType {
		return true
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return true
	case reflect.Array:
		return isPlain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() || !isPlain(t.Field(i).Type) {
				return false
			}
		}
		return true
	}
	return false
}

// hasUnsavedParts reports whether values of a type may have parts that are not in their JSON:
// fields excluded by a tag, and unexported fields of types with custom JSON methods.
func hasUnsavedParts(t reflect.Type, path []reflect.Type) bool {
	if slices.Contains(path, t) {
		return false
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return hasUnsavedParts(t.Elem(), path)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !f.IsExported() || f.Tag.Get("json") == "-" || hasUnsavedParts(f.Type, path) {
				return true
			}
		}
	}
	return false
}

// fieldValue returns the field's value in a state.
func (s *stateType) fieldValue(f *field, state reflect.Value) reflect.Value {
	if s.singleField {
		return state
	}
	return state.Field(f.index)
}

// newState returns a zero state.
func (s *stateType) newState() statePtr { return reflect.New(s.typ).Interface() }

// valueOf returns the state itself.
func (s *stateType) valueOf(state statePtr) any { return reflect.ValueOf(state).Elem().Interface() }

// copyValue is valueOf with a copy that the caller may modify.
func (s *stateType) copyValue(state statePtr) (any, error) {
	own, err := s.copyIfShared(state)
	if err != nil {
		return nil, err
	}
	return s.valueOf(own), nil
}

// pointerTo returns a pointer to a copy of value.
func (s *stateType) pointerTo(value reflect.Value) statePtr {
	state := reflect.New(s.typ)
	state.Elem().Set(value)
	return state.Interface()
}

// copyIfShared returns a state that the caller may copy as a value and then modify.
func (s *stateType) copyIfShared(state statePtr) (statePtr, error) {
	if s.plain {
		return state, nil
	}
	return s.clone(state)
}

// shallowCopy copies a state, but nothing that it refers to.
func (s *stateType) shallowCopy(state statePtr) statePtr {
	return s.pointerTo(reflect.ValueOf(state).Elem())
}

// clone copies the state so that changes of the copy do not affect the original.
func (s *stateType) clone(state statePtr) (dup statePtr, err error) {
	defer recovery.Recover(&err) // a type may have JSON methods that panic
	dup = s.shallowCopy(state)
	v := reflect.ValueOf(dup).Elem()
	for i := range s.fields {
		f := &s.fields[i]
		if f.plain {
			continue
		}
		value := s.fieldValue(f, v)
		copied, err := deepCopy(value, 0)
		if err != nil {
			return nil, fmt.Errorf("state field %s: %w", f.name, err)
		}
		value.Set(copied)
	}
	return dup, nil
}

// normalize replaces the given fields by their JSON round trip and clears the fields that are not
// saved, so that a node sees the same state when it is entered again from the store. The state must
// be owned by the caller. data receives the JSON of the fields that were encoded.
func (s *stateType) normalize(state statePtr, fields []int, data [][]byte) ([][]byte, error) {
	if s.stable {
		return data, nil
	}
	v := reflect.ValueOf(state).Elem()
	for _, i := range s.transient {
		v.Field(i).SetZero()
	}
	for k, i := range fields {
		f := &s.fields[i]
		value := s.fieldValue(f, v)
		if f.stable || f.omitted == nil && roundtrip.Canonical(value) {
			continue
		}
		encoded, err := s.normalizeField(f, state, value)
		if err != nil {
			return data, err
		}
		if data == nil {
			data = make([][]byte, len(fields))
		}
		data[k] = encoded
	}
	return data, nil
}

// normalizeField replaces one field by its JSON round trip and returns its JSON.
func (s *stateType) normalizeField(f *field, state statePtr, value reflect.Value) ([]byte, error) {
	if err := roundtrip.CheckUntyped(value, "it"); err != nil {
		return nil, fmt.Errorf("state field %s: %w", f.name, err)
	}
	data, err := encodeField(s, f, state)
	if err != nil {
		return nil, err
	}
	value.SetZero()
	if err := decodeField(s, f, state, data); err != nil {
		return nil, fmt.Errorf("state field %s cannot decode its own JSON: %w", f.name, err)
	}
	return data, nil
}

// normalizedCopy returns a copy of a state that a caller gave, as a node sees it.
func (s *stateType) normalizedCopy(state statePtr) (statePtr, error) {
	if s.stable {
		return s.copyIfShared(state)
	}
	checked := reflect.ValueOf(state).Elem()
	for i := range s.fields { // before the copy, which could lose a part
		if err := roundtrip.CheckUntyped(s.fieldValue(&s.fields[i], checked), "it"); err != nil {
			return nil, fmt.Errorf("state field %s: %w", s.fields[i].name, err)
		}
	}
	dup, err := s.clone(state)
	if err != nil {
		return nil, err
	}
	all := make([]int, len(s.fields))
	for i := range all {
		all[i] = i
	}
	_, err = s.normalize(dup, all, nil)
	return dup, err
}

// changedFields appends the indices of the fields in which the two states differ.
func changedFields(sh *stateType, base, out statePtr, changed []int) []int {
	a, b := reflect.ValueOf(base).Elem(), reflect.ValueOf(out).Elem()
	for i := range sh.fields {
		f := &sh.fields[i]
		if !equalField(f, sh.fieldValue(f, a), sh.fieldValue(f, b)) {
			changed = append(changed, i)
		}
	}
	return changed
}

func equalField(f *field, a, b reflect.Value) bool {
	switch {
	case f.scalar == reflect.String:
		return a.String() == b.String()
	case f.scalar == reflect.Int:
		return a.Int() == b.Int()
	case f.plain:
		return a.Equal(b)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface()) || f.unsavedParts && sameJSON(a.Addr().Interface(), b.Addr().Interface())
}

// sameJSON reports whether two values have the same saved form. Functions, caches and different
// representations of zero do not count as changes.
func sameJSON(a, b any) bool {
	encode := func(v any) (data []byte, err error) {
		defer recovery.Recover(&err)
		return roundtrip.Encode(v)
	}
	first, err := encode(a)
	if err != nil {
		return false
	}
	second, err := encode(b)
	return err == nil && bytes.Equal(first, second)
}

// copyField copies one field from one state to another.
func copyField(sh *stateType, f *field, dst, src statePtr) {
	sh.fieldValue(f, reflect.ValueOf(dst).Elem()).Set(sh.fieldValue(f, reflect.ValueOf(src).Elem()))
}

// encodeField returns the JSON of one field.
func encodeField(sh *stateType, f *field, state statePtr) (data []byte, err error) {
	defer recovery.Recover(&err)
	value := sh.fieldValue(f, reflect.ValueOf(state).Elem())
	data, err = f.encode(value)
	if err != nil {
		return nil, fmt.Errorf("state field %s: %w", f.name, err)
	}
	return data, nil
}

// omitFunc reports whether encoding/json would omit a value. Its type may not be able to encode or
// decode it, so it is saved as null.
type omitFunc func(value reflect.Value) bool

// omitFuncFor returns the omit rule of a field's tag options; nil if nothing is omitted.
func omitFuncFor(options string, t reflect.Type) omitFunc {
	switch {
	case strings.Contains(options, "omitzero"):
		return isZero
	case !strings.Contains(options, "omitempty") || t.Kind() == reflect.Struct:
		return nil
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array || t.Kind() == reflect.String:
		return func(value reflect.Value) bool { return value.Len() == 0 }
	}
	return reflect.Value.IsZero
}

func isZero(value reflect.Value) bool {
	if own, ok := value.Addr().Interface().(interface{ IsZero() bool }); ok && value.Kind() != reflect.Pointer {
		return own.IsZero()
	}
	return value.IsZero()
}

func (f *field) encode(value reflect.Value) ([]byte, error) {
	if f.omitted != nil && f.omitted(value) {
		return jsonNull, nil
	}
	switch f.scalar {
	case reflect.String:
		text := value.String()
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("it is %w", roundtrip.ErrNotUTF8)
		}
		return jsonlite.AppendString(make([]byte, 0, len(text)+2+len(text)/16), text), nil
	case reflect.Bool:
		return strconv.AppendBool(nil, value.Bool()), nil
	case reflect.Int:
		return strconv.AppendInt(nil, value.Int(), 10), nil
	}
	return roundtrip.Encode(value.Addr().Interface())
}

// decodeField reads one field. Numbers in untyped values keep their spelling.
func decodeField(sh *stateType, f *field, state statePtr, data []byte) (err error) {
	defer recovery.Recover(&err)
	value := sh.fieldValue(f, reflect.ValueOf(state).Elem())
	if f.omitted != nil && bytes.Equal(data, jsonNull) {
		return nil
	}
	switch f.scalar {
	case reflect.String:
		in := jsonlite.NewReader(data)
		value.SetString(in.String())
		return in.Err()
	case reflect.Int:
		in := jsonlite.NewReader(data)
		value.SetInt(in.Int())
		return in.Err()
	}
	if f.plain {
		return json.Unmarshal(data, value.Addr().Interface())
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	return dec.Decode(value.Addr().Interface())
}
