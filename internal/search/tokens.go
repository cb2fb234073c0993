package search

import (
	"errors"
	"strings"
	"unicode"
)

// token is a word or an operator of a search.
type token struct {
	operator, value string
	excluded        bool
}

// split splits a search at spaces outside of quotes.
func split(text string) (tokens []token, err error) {
	for {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		if text == "" {
			return tokens, nil
		}
		var t token
		if rest, ok := strings.CutPrefix(text, "-"); ok && rest != "" && !unicode.IsSpace(rune(rest[0])) {
			t.excluded, text = true, rest
		}
		if end := strings.IndexFunc(text, func(r rune) bool { return r == ':' || r == '"' || unicode.IsSpace(r) }); end > 0 && text[end] == ':' {
			t.operator, text = strings.ToLower(text[:end]), text[end+1:]
		}
		if t.value, text, err = value(text); err != nil {
			return nil, err
		}
		if t.operator != "" || t.value != "" {
			tokens = append(tokens, t)
		}
	}
}

// value returns the value at the beginning of a text, and what follows it.
func value(text string) (value, rest string, err error) {
	if quoted, ok := strings.CutPrefix(text, `"`); ok {
		value, rest, ok = strings.Cut(quoted, `"`)
		if !ok {
			return "", "", errors.New(`a quote (") is not closed`)
		}
		return value, rest, nil
	}
	end := strings.IndexFunc(text, unicode.IsSpace)
	if end < 0 {
		end = len(text)
	}
	return text[:end], text[end:], nil
}
