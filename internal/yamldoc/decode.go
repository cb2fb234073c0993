package yamldoc

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"
)

// Decode sets a pointer to the value, by the yaml tags of structs. Missing keys are not set. It
// supports strings, bools, ints, slices, maps, structs, [encoding.TextUnmarshaler] and any.
func (n Node) Decode(into any) {
	if !n.Missing() {
		n.decode(reflect.ValueOf(into).Elem())
	}
}

func (n Node) decode(v reflect.Value) {
	if parser, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := n.Scalar(); ok {
			if err := parser.UnmarshalText([]byte(text)); err != nil {
				n.Reportf("%v", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Text())
	case reflect.Bool:
		v.SetBool(n.Choice("true", "false") == "true")
	case reflect.Int:
		n.decodeInt(v)
	case reflect.Slice:
		items := n.List()
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			item.decode(v.Index(i))
		}
	case reflect.Map:
		names, values := n.Keys()
		v.Set(reflect.MakeMap(v.Type()))
		for i, name := range names {
			value := reflect.New(v.Type().Elem()).Elem()
			values[i].decode(value)
			v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), value)
		}
	case reflect.Struct:
		n.decodeStruct(v)
	case reflect.Interface:
		value, err := n.Any()
		if err != nil {
			n.Reportf("%v", err)
		} else if value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		panic("yamldoc: cannot decode into " + v.Type().String())
	}
}

func (n Node) decodeInt(v reflect.Value) {
	text, ok := n.Scalar()
	if !ok {
		return
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		n.Reportf("%q is not an integer", text)
		return
	}
	v.SetInt(int64(number))
}

func (n Node) decodeStruct(v reflect.Value) {
	fields := make(map[string]reflect.Value)
	var known []string
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		if name != "" && name != "-" {
			known = append(known, name)
			fields[name] = v.Field(i)
		}
	}
	n.eachField(known, func(name string, value Node) { value.decode(fields[name]) })
}
