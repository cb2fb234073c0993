package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// readFile applies a file.
func (c *Config) readFile(name string, data []byte, wrong *mistakes) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return // it is empty
	}
	if err != nil {
		wrong.add(place(name, lineOf(err)), "", "%s", plain(err))
		return
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		wrong.add(place(name, more.Line), "", "a second YAML document is not allowed")
		return
	}
	reader{c, name, wrong}.section(settings(c), document.Content[0])
}

func place(name string, line int) string {
	if line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, line)
}

var yamlLine = regexp.MustCompile(`line (\d+): `)

func lineOf(err error) (line int) {
	if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
		_, _ = fmt.Sscan(found[1], &line)
	}
	return line
}

func plain(err error) string {
	return yamlLine.ReplaceAllString(strings.TrimPrefix(err.Error(), "yaml: "), "")
}

// reader walks a file along with the tree of keys.
type reader struct {
	config *Config
	file   string
	wrong  *mistakes
}

func (r reader) at(n *yaml.Node) string { return place(r.file, n.Line) }

func (r reader) section(s setting, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return // a section without keys
	}
	if n.Kind != yaml.MappingNode {
		r.wrong.add(r.at(n), s.path, "expected a mapping of keys")
		return
	}
	seen := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if line, repeated := seen[key.Value]; repeated {
			r.wrong.add(r.at(key), join(s.path, key.Value), "is repeated, first in line %d", line)
			continue
		}
		seen[key.Value] = key.Line
		part, ok := s.child(key.Value)
		switch {
		case !ok:
			r.unknown(s, key)
		case part.children != nil:
			r.section(part, value)
		default:
			r.value(part, value)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// unknown rejects a key, and suggests one: of the same section, or of that name elsewhere.
func (r reader) unknown(s setting, key *yaml.Node) {
	var names, elsewhere []string
	for _, part := range s.children {
		names = append(names, part.name)
	}
	for _, known := range Keys() {
		if strings.HasSuffix("."+known, "."+key.Value) {
			elsewhere = append(elsewhere, known)
		}
	}
	hint := ""
	if _, ok := s.child(key.Value + "File"); ok { // the value is a secret
		hint = "; did you mean " + join(s.path, key.Value+"File") + "?"
	} else if similar := suggestKey(key.Value, names); similar != "" {
		hint = "; did you mean " + join(s.path, similar) + "?"
	} else if len(elsewhere) > 0 {
		hint = "; did you mean " + strings.Join(elsewhere, " or ") + "?"
	}
	r.wrong.add(r.at(key), join(s.path, key.Value), "unknown key%s", hint)
}

func (r reader) value(s setting, n *yaml.Node) {
	err := s.read(n)
	if err != nil {
		r.wrong.add(r.at(n), s.path, "%v", err)
		return
	}
	r.config.from[s.path] = r.at(n)
}

// read sets a key to the value in a file.
func (s setting) read(n *yaml.Node) error {
	if t, ok := s.value.Addr().Interface().(mapping); ok {
		if n.Kind != yaml.MappingNode {
			return errors.New(t.expected())
		}
		return t.read(n, s.allowedValues())
	}
	texts, err := scalars(s, n)
	if err != nil {
		return err
	}
	return s.set(texts)
}

// mapping is a value with user-defined names, each with allowed values.
type mapping interface {
	read(mapping *yaml.Node, known []string) error
	// expected describes its syntax.
	expected() string
}

func (*Roles) expected() string { return "expected roles by group, for example {group: role}" }

// read reads roles by group; a group has one, or a list of them.
func (r *Roles) read(n *yaml.Node, known []string) error {
	*r = make(Roles)
	for i := 0; i+1 < len(n.Content); i += 2 {
		group, value := n.Content[i].Value, n.Content[i+1]
		if _, repeated := (*r)[group]; repeated {
			return fmt.Errorf("group %q is repeated", group)
		}
		items := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			items = value.Content
		}
		for _, item := range items {
			role, err := scalar(item)
			if err != nil {
				return fmt.Errorf("group %q: %w", group, err)
			}
			if !slices.Contains(known, role) {
				return fmt.Errorf("group %q has role %q, which is not one of %s%s", group, role, strings.Join(known, ", "), didYouMean(role, known))
			}
			(*r)[group] = append((*r)[group], role)
		}
	}
	return nil
}

func (*Classes) expected() string { return "expected strengths by class, for example {class: sso_mfa}" }

// read reads the strengths of authentication classes.
func (c *Classes) read(n *yaml.Node, known []string) error {
	*c = make(Classes)
	for i := 0; i+1 < len(n.Content); i += 2 {
		class := n.Content[i].Value
		if _, repeated := (*c)[class]; repeated {
			return fmt.Errorf("class %q is repeated", class)
		}
		strength, err := scalar(n.Content[i+1])
		if err != nil {
			return fmt.Errorf("class %q: %w", class, err)
		}
		if !slices.Contains(known, strength) {
			return fmt.Errorf("class %q has strength %q, which is not one of %s%s", class, strength, strings.Join(known, ", "), didYouMean(strength, known))
		}
		(*c)[class] = strength
	}
	return nil
}

// scalars returns the texts of a value: one, or those of a list.
func scalars(s setting, n *yaml.Node) ([]string, error) {
	switch {
	case n.Kind == yaml.AliasNode:
		return nil, errors.New("aliases are not supported: write the value")
	case s.list() && n.Kind == yaml.SequenceNode:
		texts := []string{}
		for _, item := range n.Content {
			text, err := scalar(item)
			if err != nil {
				return nil, err
			}
			texts = append(texts, text)
		}
		return texts, nil
	case s.list():
		return nil, errors.New("expected a list, for example [a, b]")
	}
	text, err := scalar(n)
	return []string{text}, err
}

func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("expected a single value")
	case n.Tag == "!!null":
		return "", errors.New(`the value is missing; write "" for an empty one`)
	}
	return n.Value, nil
}
