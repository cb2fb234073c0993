package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// sheet is a text in the making, as wide as the screen.
type sheet struct {
	width  int
	unfold bool // show long values whole
	lines  []string
	folded int // how many values are not shown whole
}

// From which size on a value is folded, and how much of it is shown then.
const (
	foldText, foldedText   = 600, 300 // characters
	foldLines, foldedLines = 16, 8    // lines of a text
	foldItems, foldedItems = 60, 30   // items of a list or an object
)

// add puts cells under each other, the first line behind lead and all others behind rest.
func (s *sheet) add(lead, rest, text []cell) {
	for i, line := range fold(text, s.width-max(widthOfCells(lead), widthOfCells(rest))) {
		front := lead
		if i > 0 {
			front = rest
		}
		s.lines = append(s.lines, draw(append(front[:len(front):len(front)], line...)))
	}
}

func (s *sheet) blank() { s.lines = append(s.lines, "") }

// labels is how wide the column of labels is.
const labels = 9

// row is a label with a text of somebody.
func (s *sheet) row(label, text string) { s.rowOf(label, cells(text, oneLine, normal)) }

func (s *sheet) rowOf(label string, text []cell) {
	s.add(own(fmt.Sprintf("%-*s", labels, label), faint), spaces(labels), text)
}

// heading is a line of ours.
func (s *sheet) heading(text string) { s.add(nil, nil, own(text, strong)) }

// say is a sentence of ours.
func (s *sheet) say(text string) { s.add(nil, nil, own(text, normal)) }

// own is a text of ours as cells.
func own(text string, look appearance) []cell { return cells(text, oneLine, look) }

func spaces(n int) []cell { return own(strings.Repeat(" ", max(n, 0)), normal) }

// json shows a JSON value as it is, or the bytes if it is none, a little to the right.
func (s *sheet) json(data json.RawMessage) {
	n, err := parse(data)
	if err != nil {
		n = node{kind: textual, text: string(data)}
	}
	front := spaces(2)
	s.value(front, front, n)
}

// value shows a value behind lead; what else belongs to it stands behind rest.
func (s *sheet) value(lead, rest []cell, n node) {
	switch {
	case n.kind == object && len(n.members) > 0:
		for i, m := range n.members {
			if s.cutOff(rest, i, len(n.members), "members") {
				return
			}
			s.member(lead, rest, m)
			lead = rest
		}
	case n.kind == list && len(n.items) > 0:
		for i, item := range n.items {
			if s.cutOff(rest, i, len(n.items), "items") {
				return
			}
			s.value(s.deeper(lead, "- "), s.deeper(rest, "  "), item)
			lead = rest
		}
	case n.kind == textual && strings.Contains(n.text, "\n"):
		s.text(lead, rest, n.text)
	case n.kind == textual && utf8.RuneCountInString(n.text) > foldText && !s.unfold:
		s.add(lead, rest, cells(string([]rune(n.text)[:foldedText]), quoted, normal))
		s.missing(rest, fmt.Sprintf("… %d more of %s", utf8.RuneCountInString(n.text)-foldedText, size(n.text)))
	default:
		s.add(lead, rest, scalar(n))
	}
}

func scalar(n node) []cell {
	switch n.kind {
	case textual:
		return cells(n.text, quoted, normal)
	case object:
		return own("{}", normal)
	case list:
		return own("[]", normal)
	case literal:
	}
	return cells(n.text, oneLine, normal)
}

func (s *sheet) member(lead, rest []cell, m member) {
	name := cells(m.name, oneLine, strong)
	if !isPlainName(m.name) {
		name = cells(m.name, quoted, strong)
	}
	lead = append(lead[:len(lead):len(lead)], name...)
	deep := s.deeper(rest, "  ")
	if len(m.value.members)+len(m.value.items) > 0 || widthOfCells(lead) > s.width/2 { // the value gets lines of its own
		s.add(nil, rest, append(lead, own(":", normal)...))
		s.value(deep, deep, m.value)
		return
	}
	s.value(append(lead, own(": ", normal)...), deep, m.value)
}

// deeper indents, but leaves half of the screen for what is indented.
func (s *sheet) deeper(front []cell, by string) []cell {
	if widthOfCells(front)+len(by) > s.width/2 {
		return front
	}
	return append(front[:len(front):len(front)], own(by, normal)...)
}

// text shows a text with line breaks, with a bar before each line and a broken bar where only the screen is too narrow.
func (s *sheet) text(lead, rest []cell, text string) {
	s.add(lead, rest, own("text, "+size(text), faint))
	lines := strings.Split(text, "\n")
	bar, broken := append(rest[:len(rest):len(rest)], own("│ ", faint)...), append(rest[:len(rest):len(rest)], own("┆ ", faint)...)
	for i, line := range lines {
		if len(lines) > foldLines && i >= foldedLines && !s.unfold {
			s.missing(rest, fmt.Sprintf("… %d more lines", len(lines)-i))
			return
		}
		if utf8.RuneCountInString(line) > foldText && !s.unfold {
			s.add(bar, broken, cells(string([]rune(line)[:foldedText]), block, normal))
			s.missing(rest, fmt.Sprintf("… %d more characters on this line", utf8.RuneCountInString(line)-foldedText))
			continue
		}
		s.add(bar, broken, cells(line, block, normal))
	}
}

// cutOff ends a long list.
func (s *sheet) cutOff(rest []cell, i, all int, what string) bool {
	if s.unfold || all <= foldItems || i < foldedItems {
		return false
	}
	s.missing(rest, fmt.Sprintf("… %d more of %d %s", all-i, all, what))
	return true
}

func (s *sheet) missing(rest []cell, what string) {
	s.folded++
	s.add(rest, rest, own("["+what+": o shows all]", strong))
}

// size is how long a text is, exactly.
func size(text string) string {
	parts := []string{count(utf8.RuneCountInString(text), "character")}
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		parts = append([]string{count(lines, "line")}, parts...)
	}
	if len(text) != utf8.RuneCountInString(text) {
		parts = append(parts, count(len(text), "byte"))
	}
	return strings.Join(parts, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isPlainName(name string) bool {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-.", r)) {
			return false
		}
	}
	return name != ""
}
