package config

import (
	"fmt"
	"net/url"
	"strings"
)

// Value is a key with its effective value.
type Value struct {
	Key   string
	Value string // as written in a file; secrets are masked
	From  string // see [Config.From]
}

// Effective lists every key with its value.
func (c *Config) Effective() (list []Value) {
	root := settings(c)
	for _, s := range root.all() {
		list = append(list, Value{Key: s.path, Value: s.masked(), From: c.From(s.path)})
	}
	return list
}

// masked returns the value without secrets, also without a password in a URL.
func (s setting) masked() string {
	switch v := s.value.Interface().(type) {
	case Secret:
		return v.String()
	case []Secret:
		return fmt.Sprint(v)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	case string:
		if u, err := url.Parse(v); err == nil && u.User != nil {
			return u.Redacted()
		}
	case Assistants:
		return v.names()
	case Roles, Classes:
		return fmt.Sprint(v)
	}
	return s.text()
}
