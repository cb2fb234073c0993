package config

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata/internal/suggest"
)

// setting is one key of the file, or a section of it.
type setting struct {
	path     string // as listen.addr; "" is the whole
	name     string
	value    reflect.Value
	tag      reflect.StructTag
	children []setting // of a section; nil if it is a key
}

// settings is the tree of all keys, with the values of a config, which can be set through it.
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

// all lists the keys below, without the sections.
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

// envPrefix begins the name of every variable.
const envPrefix = "FERMATA_"

// env is the variable that overrides a key: store.redisURLFile is FERMATA_STORE_REDIS_URL_FILE.
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

// Keys lists every key, as listen.addr, in the order of the example.
func Keys() []string {
	var list []string
	whole := settings(Default())
	for _, s := range whole.all() {
		list = append(list, s.path)
	}
	return list
}

// suggestKey is the word among some that somebody may have meant; "" if none is near.
func suggestKey(word string, words []string) string {
	return suggest.Closest(word, words, max(2, len(word)/3))
}
