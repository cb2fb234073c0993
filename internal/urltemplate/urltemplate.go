// Package urltemplate expands URLs with placeholders in their path and query:
//
//	t, err := urltemplate.Parse("https://shop.example.com/orders/{order}?lang={lang}")
//	url, err := t.Expand(map[string]string{"order": "A-1", "lang": "de"})
//	// https://shop.example.com/orders/A-1?lang=de
//
// A value cannot leave its place: it is escaped. In the path it cannot be a dot segment, and it
// cannot contain a separator, also if servers or proxies decode it several times.
package urltemplate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Template is a parsed template.
type Template struct {
	text  string
	names []string
}

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

var validName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

// Parse parses a template. Its errors do not contain the template.
func Parse(text string) (Template, error) {
	t := Template{text: text}
	base := text
	if _, rest, ok := strings.Cut(text, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		host, _, _ = strings.Cut(host, "?")
		if strings.ContainsAny(host, "{}") {
			return t, errors.New("only the path and the query may have placeholders")
		}
	}
	for _, found := range placeholder.FindAllStringSubmatch(text, -1) {
		if !validName.MatchString(found[1]) {
			return t, fmt.Errorf("{%s} is not a placeholder: use the name of a parameter, with letters, digits, - and _", found[1])
		}
		if !slices.Contains(t.names, found[1]) {
			t.names = append(t.names, found[1])
		}
		base = strings.Replace(base, found[0], "", 1)
	}
	if strings.ContainsAny(base, "{}") {
		return t, errors.New("a brace has no partner")
	}
	if _, err := url.Parse(t.Sample()); err != nil {
		return t, errors.New("it is not a URL")
	}
	return t, nil
}

// Names returns the placeholders in their order.
func (t Template) Names() []string { return slices.Clone(t.names) }

// Sample returns the URL with an x for each placeholder.
func (t Template) Sample() string { return placeholder.ReplaceAllString(t.text, "x") }

// Expand returns the URL with these values. A value must not be empty. A value in the path must
// not contain a slash, a backslash or a control character, and a segment of the path must not
// become "." or "..", whether they are percent-encoded or not.
func (t Template) Expand(values map[string]string) (string, error) {
	var missing error
	path, query, hasQuery := strings.Cut(t.text, "?")
	fill := func(text string, escape func(string) string) string {
		return placeholder.ReplaceAllStringFunc(text, func(found string) string {
			name := found[1 : len(found)-1]
			if values[name] == "" {
				missing = fmt.Errorf("%s is missing or empty", name)
			}
			return escape(values[name])
		})
	}
	filled := fill(path, url.PathEscape)
	if hasQuery {
		query = "?" + fill(query, url.QueryEscape)
	}
	if missing != nil {
		return "", missing
	}
	if err := samePath(decode(filled), decode(placeholder.ReplaceAllString(path, "x"))); err != nil {
		return "", err
	}
	return filled + query, nil
}

// samePath checks that a decoded path has the structure of the sample of its template.
func samePath(path, sample string) error {
	segments := strings.FieldsFunc(path, isSeparator)
	switch {
	case !utf8.ValidString(path), strings.ContainsFunc(path, unicode.IsControl), separators(path) != separators(sample):
		return errors.New("an argument in the path contains a slash, a backslash or a control character")
	case slices.ContainsFunc(segments, isDots):
		return errors.New(`a segment of the path would be "." or ".."`)
	}
	return nil
}

func isSeparator(r rune) bool { return r == '/' || r == '\\' }

func separators(path string) int { return strings.Count(path, "/") + strings.Count(path, `\`) }

// isDots reports whether a segment is a dot segment. Some servers remove what follows a semicolon
// before they resolve dot segments.
func isDots(segment string) bool {
	segment, _, _ = strings.Cut(segment, ";")
	return segment == "." || segment == ".."
}

// decode replaces percent-encoded bytes until there are none, as a chain of proxies may do. It
// keeps a percent sign that encodes nothing.
func decode(text string) string {
	out := make([]byte, 0, len(text))
	for _, b := range []byte(text) {
		out = append(out, b)
		for len(out) >= 3 && out[len(out)-3] == '%' {
			var decoded [1]byte
			if _, err := hex.Decode(decoded[:], out[len(out)-2:]); err != nil {
				break
			}
			out = append(out[:len(out)-3], decoded[0])
		}
	}
	return string(out)
}
