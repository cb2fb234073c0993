package config

import (
	"fmt"
	"strings"

	"github.com/fermata-go/fermata/internal/yamldoc"
)

// readFile applies a file.
func (c *Config) readFile(name string, data []byte, wrong *mistakes) {
	r := yamldoc.Reader{AllowEmpty: true, Report: func(line int, field, text string) {
		wrong.add(place(name, line), field, "%s", text)
	}}
	fileReader{c, name, wrong}.section(settings(c), r.Document(data))
}

func place(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}

// fileReader walks a file along with the tree of keys.
type fileReader struct {
	config *Config
	file   string
	wrong  *mistakes
}

func (r fileReader) section(s setting, n yamldoc.Node) {
	if n.IsNull() {
		return // a section without keys
	}
	names, values := n.Keys()
	for i, value := range values {
		part, ok := s.child(names[i])
		switch {
		case !ok:
			value.Unknown(suggestKey(s, names[i]))
		case part.children != nil:
			r.section(part, value)
		default:
			r.value(part, value)
		}
	}
}

func (r fileReader) value(s setting, n yamldoc.Node) {
	before := len(*r.wrong)
	s.read(n)
	if len(*r.wrong) == before {
		r.config.from[s.path] = place(r.file, n.Line())
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// suggestKey suggests a key instead of an unknown one: of the same section, or of that name
// elsewhere.
func suggestKey(s setting, name string) string {
	var names, elsewhere []string
	for _, part := range s.children {
		names = append(names, part.name)
	}
	for _, known := range Keys() {
		if strings.HasSuffix("."+known, "."+name) {
			elsewhere = append(elsewhere, known)
		}
	}
	if _, ok := s.child(name + "File"); ok { // the value is a secret
		elsewhere = []string{join(s.path, name+"File")}
	} else if similar := yamldoc.Nearest(name, names); similar != "" {
		elsewhere = []string{join(s.path, similar)}
	}
	if len(elsewhere) == 0 {
		return ""
	}
	return "; did you mean \"" + strings.Join(elsewhere, "\" or \"") + "\"?"
}

// read sets a key to the value in a file.
func (s setting) read(n yamldoc.Node) {
	if t, ok := s.value.Addr().Interface().(mapping); ok {
		if s.list() && !n.IsList() || !s.list() && !n.IsMapping() {
			n.Reportf("%s", t.expected())
			return
		}
		t.read(n, s.allowedValues())
		return
	}
	var texts []string
	if s.list() {
		if texts = n.Texts(); !n.IsList() {
			return
		}
	} else {
		text, ok := n.Scalar()
		if !ok {
			return
		}
		texts = []string{text}
	}
	if err := s.set(texts); err != nil {
		n.Reportf("%v", err)
	}
}

// mapping is a value with user-defined names, each with allowed values, or a list of mappings.
type mapping interface {
	// read reads the mapping or list, and reports errors at its nodes.
	read(mapping yamldoc.Node, known []string)
	// expected describes its syntax.
	expected() string
}

func (*Roles) expected() string { return "expected roles by group, for example {group: role}" }

// read reads roles by group; a group has one, or a list of them.
func (r *Roles) read(n yamldoc.Node, known []string) {
	*r = make(Roles)
	groups, values := n.Keys()
	for i, group := range groups {
		items := []yamldoc.Node{values[i]}
		if values[i].IsList() {
			items = values[i].List()
		}
		for _, item := range items {
			(*r)[group] = append((*r)[group], item.Choice(known...))
		}
	}
}

func (*Classes) expected() string { return "expected strengths by class, for example {class: sso_mfa}" }

// read reads the strengths of authentication classes.
func (c *Classes) read(n yamldoc.Node, known []string) {
	*c = make(Classes)
	classes, values := n.Keys()
	for i, class := range classes {
		(*c)[class] = values[i].Choice(known...)
	}
}
