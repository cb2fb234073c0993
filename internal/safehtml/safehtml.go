// Package safehtml renders text of agents, models and other people as HTML. It shows characters
// that have no visible form, that change the direction of text, or that imitate other characters
// as codes, so that a reader sees what a program would get.
package safehtml

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// Block renders a text of several lines. Line breaks and tabs stay as they are.
func Block(text string) template.HTML {
	var b strings.Builder
	write(&b, text, true)
	return template.HTML(b.String())
}

// Line renders a text as one line: line breaks and tabs become codes.
func Line(text string) template.HTML {
	var b strings.Builder
	write(&b, text, false)
	return template.HTML(b.String())
}

// Plain returns a text as Line shows it, without markup.
func Plain(text string) string {
	var b strings.Builder
	for _, p := range parts(text, false) {
		b.WriteString(p.text)
		if p.flag == lookAlike {
			b.WriteString("[" + p.code + "]")
		}
	}
	return b.String()
}

// Flags counts the characters of a text that are shown as codes. Line breaks and tabs do not count.
func Flags(text string) (n int) {
	for _, p := range parts(text, true) {
		if p.flag != plain {
			n++
		}
	}
	return n
}

type flag uint8

const (
	plain flag = iota
	hidden
	lookAlike
)

// part is a piece of plain text or one flagged character.
type part struct {
	flag flag
	text string // of a hidden character: its code
	code string
	name string
}

func write(b *strings.Builder, text string, block bool) {
	for _, p := range parts(text, block) {
		switch p.flag {
		case plain:
			template.HTMLEscape(stringWriter{b}, []byte(p.text))
		case hidden:
			fmt.Fprintf(b, `<span class="flag" title="%s">%s</span>`, template.HTMLEscapeString(p.name), template.HTMLEscapeString(p.text))
		case lookAlike:
			fmt.Fprintf(b, `<span class="flag" title="%s">%s<small>%s</small></span>`, template.HTMLEscapeString(p.name), template.HTMLEscapeString(p.text), p.code)
		}
	}
}

type stringWriter struct{ *strings.Builder }

// maxMarks is the maximum number of combining marks on a character; more are shown as codes.
const maxMarks = 3

// parts splits a text into plain pieces and flagged characters.
func parts(text string, block bool) (list []part) {
	suspects := lookAlikes(text)
	start, marks := 0, maxMarks // there is no character for a mark yet
	flush := func(end int) {
		if end > start {
			list = append(list, part{text: text[start:end]})
		}
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		var p part
		switch {
		case r == utf8.RuneError && size == 1:
			p = part{hidden, fmt.Sprintf("0x%02X", text[i]), "", "byte that is not UTF-8"}
		case block && (r == '\n' || r == '\t'):
		case sanitize.IsHidden(r) || marks > maxMarks:
			p = part{hidden, code(r), "", nameOf(r)}
		case suspects[i]:
			p = part{lookAlike, text[i : i+size], code(r), scriptOf(r) + " " + code(r) + ", looks like another character"}
		}
		if p.flag != plain {
			flush(i)
			list = append(list, p)
			start = i + size
		}
		i += size
	}
	flush(len(text))
	return list
}

func code(r rune) string { return fmt.Sprintf("U+%04X", r) }

var names = map[rune]string{
	'\n': "line break", '\r': "carriage return", '\t': "tab", 0x1b: "escape", 0xa0: "no-break space", 0xad: "soft hyphen", 0x200b: "zero width space",
	0x200c: "zero width non-joiner", 0x200d: "zero width joiner", 0x200e: "left-to-right mark", 0x200f: "right-to-left mark", 0x202a: "left-to-right embedding",
	0x202b: "right-to-left embedding", 0x202c: "pop directional formatting", 0x202d: "left-to-right override", 0x202e: "right-to-left override",
	0x2028: "line separator", 0x2029: "paragraph separator", 0x2066: "left-to-right isolate", 0x2067: "right-to-left isolate", 0x2068: "first strong isolate",
	0x2069: "pop directional isolate", 0xfeff: "byte order mark", utf8.RuneError: "replacement character",
}

func nameOf(r rune) string {
	switch name, ok := names[r]; {
	case ok:
		return name
	case unicode.IsControl(r):
		return "control character"
	case unicode.Is(unicode.M, r):
		return "combining mark"
	case unicode.IsSpace(r):
		return "space"
	case r >= 0xe0000 && r <= 0xe007f:
		return "tag character"
	}
	return "invisible character"
}
