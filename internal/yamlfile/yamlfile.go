// Package yamlfile decodes small YAML files into structs, with error messages for their authors.
//
//	err := yamlfile.Decode(text, &file) // line 3: unknown key "stepps"
package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Decode decodes the only document of a file. An unknown key and an empty file are errors.
func Decode(text []byte, into any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(into); err != nil {
		return withoutGoTypes(err)
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) {
		return errors.New("the file has more than one document")
	}
	return nil
}

// withoutGoTypes removes the names of Go types from an error of the library.
func withoutGoTypes(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty")
	}
	wrong, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	var errs []error
	for _, text := range wrong.Errors {
		errs = append(errs, errors.New(sentence(text)))
	}
	return errors.Join(errs...)
}

// Patterns of the library's error messages.
var (
	unknownKey   = regexp.MustCompile(`^(line \d+): field (.*) not found in type .*$`)
	duplicateKey = regexp.MustCompile(`^(line \d+): mapping key (.*) already defined at (line \d+)$`)
	typeMismatch = regexp.MustCompile("(?s)^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

func sentence(text string) string {
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: unknown key %q", m[1], m[2])
	}
	if m := duplicateKey.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: duplicate key %s, first in %s", m[1], m[2], m[3])
	}
	m := typeMismatch.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	found := map[string]string{"map": "keys with values", "seq": "a list"}[m[2]]
	if found == "" {
		found = fmt.Sprintf("%q", m[3])
	}
	if strings.HasPrefix(m[4], "[]") {
		return fmt.Sprintf("%s: expected a list, not %s", m[1], found)
	}
	return fmt.Sprintf("%s: %s is not allowed here", m[1], found)
}
