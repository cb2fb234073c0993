package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// setting is one key of the file, or a section of it.
type setting struct {
	path     string // for example listen.addr; "" is the root
	name     string
	value    reflect.Value
	tag      reflect.StructTag
	children []setting // of a section; nil if it is a key
}

// settings returns the tree of all keys. It refers to the values of c, which can be set through it.
func settings(c *Config) setting { return section("", "", reflect.ValueOf(c).Elem(), "") }

func section(path, name string, v reflect.Value, tag reflect.StructTag) setting {
	s := setting{path: path, name: name, value: v, tag: tag}
	if v.Kind() != reflect.Struct {
		return s
	}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key, ok := field.Tag.Lookup("key")
		if !ok {
			continue
		}
		at := key
		if path != "" {
			at = path + "." + key
		}
		s.children = append(s.children, section(at, key, v.Field(i), field.Tag))
	}
	return s
}

// all lists the keys below, without sections.
func (s setting) all() []setting {
	if s.children == nil {
		return []setting{s}
	}
	var list []setting
	for _, part := range s.children {
		list = append(list, part.all()...)
	}
	return list
}

func (s setting) child(name string) (setting, bool) {
	i := slices.IndexFunc(s.children, func(p setting) bool { return p.name == name })
	if i < 0 {
		return setting{}, false
	}
	return s.children[i], true
}

// envPrefix is the prefix of every variable.
const envPrefix = "FERMATA_"

// env returns the variable that overrides a key: listen.tls.certFile is
// FERMATA_LISTEN_TLS_CERT_FILE.
func env(key string) string {
	var b strings.Builder
	b.WriteString(envPrefix)
	letters := []rune(key)
	for i, r := range letters {
		begins := i > 0 && unicode.IsUpper(r) && (unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		switch {
		case r == '.':
			b.WriteByte('_')
			continue
		case begins && letters[i-1] != '.':
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// Keys lists every key, such as listen.addr, in the order of the example.
func Keys() []string {
	var list []string
	root := settings(Default())
	for _, s := range root.all() {
		list = append(list, s.path)
	}
	return list
}
