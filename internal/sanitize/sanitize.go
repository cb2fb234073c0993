// Package sanitize makes untrusted text safe to display in terminals and pictures.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text escapes characters of an untrusted text that a terminal would interpret or not show. It
// keeps line breaks and tabs.
func Text(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case IsHidden(r) && r != '\n' && r != '\t':
			b.WriteString(Escape(r))
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// Line returns the text as a single line, so that it cannot look like several. An empty text
// becomes "" in quotes.
func Line(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return Text(strings.Join(words, " "))
	}
	return `""`
}

// IsHidden reports whether a character is invisible or has an effect other than being displayed.
func IsHidden(r rune) bool {
	switch {
	case r >= ' ' && r <= '~':
		return false
	case r == utf8.RuneError, r == '\u2800': // the braille pattern with no dots
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Escape returns the escape sequence of a hidden character, in JSON notation where possible.
func Escape(r rune) string {
	switch r {
	case '\n':
		return `\n`
	case '\r':
		return `\r`
	case '\t':
		return `\t`
	}
	if r > 0xffff {
		return fmt.Sprintf(`\u{%x}`, r)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
