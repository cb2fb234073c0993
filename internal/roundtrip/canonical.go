package roundtrip

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Info describes how encoding/json treats the values of a type.
type Info struct {
	// Untyped reports that a value has untyped places, as [HasUntyped].
	Untyped bool
	// Stable reports that every value that can be encoded equals its JSON round trip.
	Stable bool

	custom   bool    // the type has its own JSON methods
	fields   []check // of a struct: the fields that are not stable
	problems []string
	lossy    bool   // JSON omits a part of the values also where they are not decoded again
	bypassed string // the type in a map whose JSON methods are not called, with its path
}

// check is a struct field whose value may differ from its round trip.
type check struct {
	index     int
	name      string
	transient bool // excluded from JSON by its tag
	omitEmpty bool
	never     bool // no value is known to be stable
}

var infos sync.Map // reflect.Type to *Info

// InfoOf describes a type. The result is cached.
func InfoOf(t reflect.Type) *Info {
	if known, ok := infos.Load(t); ok {
		return known.(*Info)
	}
	info := &Info{Untyped: HasUntyped(t), Stable: isStable(t, nil), custom: customForm(t), problems: Problems(t, "it"), lossy: len(lostParts(t, "it", nil)) > 0, bypassed: bypassedIn(t, "", nil)}
	if t.Kind() == reflect.Struct && !info.Stable && !info.custom {
		for i := range t.NumField() {
			if f := checkOf(t.Field(i), i); !f.stable(t.Field(i), []reflect.Type{t}) {
				info.fields = append(info.fields, f)
			}
		}
	}
	known, _ := infos.LoadOrStore(t, info)
	return known.(*Info)
}

// Problems lists the parts of the type that JSON would reject or lose, as [Problems] with "it".
func (i *Info) Problems() []string { return i.problems }

var (
	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
	objectType = reflect.TypeFor[map[string]any]()
	arrayType  = reflect.TypeFor[[]any]()
	zeroerType = reflect.TypeFor[interface{ IsZero() bool }]()
)

// customForm reports whether a type writes or reads its own JSON.
func customForm(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t == numberType || HasCustomJSON(t) || p.Implements(unmarshalerType) || p.Implements(textUnmarshalType)
}

func isStable(t reflect.Type, path []reflect.Type) bool {
	if slices.Contains(path, t) {
		return true // the types around it decide
	}
	if customForm(t) {
		return false
	}
	path = append(path, t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer:
		return !nullable(t.Elem()) && isStable(t.Elem(), path)
	case reflect.Slice, reflect.Array:
		return isStable(t.Elem(), path)
	case reflect.Map:
		return !customForm(t.Key()) && isStable(t.Elem(), path)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); !checkOf(f, i).stable(f, path) {
				return false
			}
		}
		return true
	}
	return false
}

// nullable reports whether nil of the type is encoded as null, like a nil pointer to it.
func nullable(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return true
	}
	return false
}

func checkOf(f reflect.StructField, index int) check {
	tag := f.Tag.Get("json")
	_, options, _ := strings.Cut(tag, ",")
	c := check{index: index, name: f.Name, transient: tag == "-"}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			c.omitEmpty = f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map
		case "omitzero":
			// time.Time reports only its zero value, which also decodes to it
			c.never = f.Type != timeType && (f.Type.Implements(zeroerType) || reflect.PointerTo(f.Type).Implements(zeroerType))
		}
	}
	if !f.IsExported() && !c.transient || f.Anonymous && f.Type.Kind() == reflect.Pointer {
		c.never = true
	}
	return c
}

func (c check) stable(f reflect.StructField, path []reflect.Type) bool {
	return !c.transient && !c.omitEmpty && !c.never && isStable(f.Type, path)
}

// Canonical reports whether a value is known to equal its JSON round trip. It is cheaper than the
// round trip.
func Canonical(v reflect.Value) bool { return InfoOf(v.Type()).Stable || canonical(v, 0) }

func canonical(v reflect.Value, depth int) bool {
	if depth > maxDepth {
		return false
	}
	t := v.Type()
	if t == timeType {
		at, ok := timeOf(v)
		return ok && at.Location() == time.UTC && at == at.Round(0)
	}
	if t == numberType {
		return v.Len() > 0
	}
	info := InfoOf(t)
	switch {
	case info.Stable:
		return true
	case info.custom:
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return v.IsNil() || canonicalUntyped(v.Elem(), depth+1)
	case reflect.Pointer:
		if v.IsNil() {
			return true
		}
		return !(nullable(t.Elem()) && v.Elem().IsNil()) && canonical(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !canonical(v.Index(i), depth+1) {
				return false
			}
		}
		return true
	case reflect.Map:
		if customForm(t.Key()) {
			return false
		}
		for iter := v.MapRange(); iter.Next(); {
			if key := iter.Key(); key.Kind() == reflect.String && !utf8.ValidString(key.String()) {
				return false
			}
			if !canonical(iter.Value(), depth+1) {
				return false
			}
		}
		return true
	case reflect.Struct:
		return canonicalStruct(v, info, depth)
	}
	return false
}

func timeOf(v reflect.Value) (time.Time, bool) {
	if v.CanAddr() && v.Addr().CanInterface() {
		return *v.Addr().Interface().(*time.Time), true // without an allocation
	}
	if !v.CanInterface() {
		return time.Time{}, false
	}
	return v.Interface().(time.Time), true
}

func canonicalStruct(v reflect.Value, info *Info, depth int) bool {
	for _, c := range info.fields {
		f := v.Field(c.index)
		switch {
		case c.transient:
			if !f.IsZero() {
				return false
			}
		case c.never:
			return false
		case c.omitEmpty && f.IsNil():
		case c.omitEmpty && f.Len() == 0, !canonical(f, depth+1):
			return false
		}
	}
	return true
}

// canonicalUntyped reports whether a value is of a type that decoding into any gives.
func canonicalUntyped(v reflect.Value, depth int) bool {
	switch t := v.Type(); {
	case t == objectType || t == arrayType:
		return !v.IsNil() && canonical(v, depth)
	case t == numberType:
		return v.Len() > 0
	case t.PkgPath() != "":
		return false
	default:
		return t.Kind() == reflect.Bool || t.Kind() == reflect.String && utf8.ValidString(v.String())
	}
}
