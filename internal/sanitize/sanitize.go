// Package inert makes texts that others wrote do nothing but be read: they go to terminals and into pictures.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text that somebody else wrote, for whoever reads it: what a terminal would obey, or nobody would see, is spelled out. Line breaks and tabs stay.
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

// Line is such a text in one line: it cannot look like the next one. Nothing at all is "", in quotes.
func Line(text string) string {
	if words := strings.Fields(text); len(words) > 0 {
		return Text(strings.Join(words, " "))
	}
	return `""`
}

// IsHidden reports whether a character cannot be seen, or does something else than to be seen.
func IsHidden(r rune) bool {
	switch {
	case r >= ' ' && r <= '~':
		return false
	case r == utf8.RuneError, r == '\u2800': // the braille pattern with no dots
		return true
	}
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Escape is how a hidden character is written, as JSON does where it can.
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
