// Package yamlfile reads small YAML files that people write into structs, and says what is wrong with them in words for those people.
//
//	err := yamlfile.Decode(text, &file) // line 3: there is no key "stepps" here
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

// Decode reads the one document of a file. A key that into does not have is an error, and so is a file that says nothing.
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

// withoutGoTypes is an error of the library without the names of Go types, which say nothing to whoever wrote the file.
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

// What the library says of a document that does not fit.
var (
	unknownKey   = regexp.MustCompile(`^(line \d+): field (.*) not found in type .*$`)
	duplicateKey = regexp.MustCompile(`^(line \d+): mapping key (.*) already defined at (line \d+)$`)
	typeMismatch = regexp.MustCompile("(?s)^(line \\d+): cannot unmarshal !!(\\w+)(?: `(.*)`)? into (.*)$")
)

func sentence(text string) string {
	if m := unknownKey.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: there is no key %q here", m[1], m[2])
	}
	if m := duplicateKey.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("%s: %s is said twice, first in %s", m[1], m[2], m[3])
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
		return fmt.Sprintf("%s: a list is expected here, not %s", m[1], found)
	}
	return fmt.Sprintf("%s: %s cannot stand here", m[1], found)
}
