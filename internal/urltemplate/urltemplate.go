// Package urltemplate expands URLs with placeholders in their path and query:
//
//	t, err := urltemplate.Parse("https://shop.example.com/orders/{order}?lang={lang}")
//	url, err := t.Expand(map[string]string{"order": "A/1", "lang": "de"})
//	// https://shop.example.com/orders/A%2F1?lang=de
//
// A value cannot leave its place: it is escaped, and it cannot be a dot segment of the path.
package urltemplate

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
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

// Expand returns the URL with these values. A value must not be empty, and a segment of the path
// must not become "." or "..".
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
	path = fill(path, url.PathEscape)
	if hasQuery {
		query = "?" + fill(query, url.QueryEscape)
	}
	if missing != nil {
		return "", missing
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", errors.New(`a segment of the path would be "." or ".."`)
		}
	}
	return path + query, nil
}
