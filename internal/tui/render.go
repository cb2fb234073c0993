package tui

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// renderer builds a text of the screen's width.
type renderer struct {
	width    int
	expanded bool // show long values completely
	lines    []string
	folded   int // number of folded values
}

// The size from which a value is folded, and how much of it is then shown.
const (
	foldText, foldedText   = 600, 300 // characters
	foldLines, foldedLines = 16, 8    // lines of a text
	foldItems, foldedItems = 60, 30   // items of a list or an object
)

// add wraps cells into lines, the first one after lead and the others after rest.
func (s *renderer) add(lead, rest, text []cell) {
	for i, line := range wrap(text, s.width-max(widthOfCells(lead), widthOfCells(rest))) {
		front := lead
		if i > 0 {
			front = rest
		}
		s.lines = append(s.lines, draw(append(front[:len(front):len(front)], line...)))
	}
}

func (s *renderer) blank() { s.lines = append(s.lines, "") }

// labelWidth is the width of the label column.
const labelWidth = 9

// row renders a label with a text of another person.
func (s *renderer) row(label, text string) { s.rowOf(label, cells(text, modeLine, styleNormal)) }

func (s *renderer) rowOf(label string, text []cell) {
	s.add(ownText(fmt.Sprintf("%-*s", labelWidth, label), styleFaint), spaces(labelWidth), text)
}

// heading renders a heading.
func (s *renderer) heading(text string) { s.add(nil, nil, ownText(text, styleStrong)) }

// sentence renders a sentence of the program.
func (s *renderer) sentence(text string) { s.add(nil, nil, ownText(text, styleNormal)) }

// ownText returns a text of the program as cells.
func ownText(text string, style cellStyle) []cell { return cells(text, modeLine, style) }

func spaces(n int) []cell { return ownText(strings.Repeat(" ", max(n, 0)), styleNormal) }

// json renders a JSON value indented, or the bytes if it is invalid.
func (s *renderer) json(data json.RawMessage) {
	n, err := parse(data)
	if err != nil {
		n = node{kind: nodeText, text: string(data)}
	}
	front := spaces(2)
	s.value(front, front, n)
}

// value renders a value after lead; its remaining lines follow rest.
func (s *renderer) value(lead, rest []cell, n node) {
	switch {
	case n.kind == nodeObject && len(n.members) > 0:
		for i, m := range n.members {
			if s.cutOff(rest, i, len(n.members), "members") {
				return
			}
			s.member(lead, rest, m)
			lead = rest
		}
	case n.kind == nodeList && len(n.items) > 0:
		for i, item := range n.items {
			if s.cutOff(rest, i, len(n.items), "items") {
				return
			}
			s.value(s.indent(lead, "- "), s.indent(rest, "  "), item)
			lead = rest
		}
	case n.kind == nodeText && strings.Contains(n.text, "\n"):
		s.text(lead, rest, n.text)
	case n.kind == nodeText && utf8.RuneCountInString(n.text) > foldText && !s.expanded:
		s.add(lead, rest, cells(string([]rune(n.text)[:foldedText]), modeQuoted, styleNormal))
		s.missing(rest, fmt.Sprintf("… %d more of %s", utf8.RuneCountInString(n.text)-foldedText, size(n.text)))
	default:
		s.add(lead, rest, scalar(n))
	}
}

func scalar(n node) []cell {
	switch n.kind {
	case nodeText:
		return cells(n.text, modeQuoted, styleNormal)
	case nodeObject:
		return ownText("{}", styleNormal)
	case nodeList:
		return ownText("[]", styleNormal)
	case nodeLiteral:
	}
	return cells(n.text, modeLine, styleNormal)
}

func (s *renderer) member(lead, rest []cell, m member) {
	name := cells(m.name, modeLine, styleStrong)
	if !isPlainName(m.name) {
		name = cells(m.name, modeQuoted, styleStrong)
	}
	lead = append(lead[:len(lead):len(lead)], name...)
	deep := s.indent(rest, "  ")
	// the value gets its own lines
	if len(m.value.members)+len(m.value.items) > 0 || widthOfCells(lead) > s.width/2 {
		s.add(nil, rest, append(lead, ownText(":", styleNormal)...))
		s.value(deep, deep, m.value)
		return
	}
	s.value(append(lead, ownText(": ", styleNormal)...), deep, m.value)
}

// indent indents, but leaves half of the screen for the content.
func (s *renderer) indent(front []cell, by string) []cell {
	if widthOfCells(front)+len(by) > s.width/2 {
		return front
	}
	return append(front[:len(front):len(front)], ownText(by, styleNormal)...)
}

// text renders a multi-line text, with a bar before each line and a broken bar before wrapped
// lines.
func (s *renderer) text(lead, rest []cell, text string) {
	s.add(lead, rest, ownText("text, "+size(text), styleFaint))
	lines := strings.Split(text, "\n")
	bar, broken := append(rest[:len(rest):len(rest)], ownText("│ ", styleFaint)...), append(rest[:len(rest):len(rest)], ownText("┆ ", styleFaint)...)
	for i, line := range lines {
		if len(lines) > foldLines && i >= foldedLines && !s.expanded {
			s.missing(rest, fmt.Sprintf("… %d more lines", len(lines)-i))
			return
		}
		if utf8.RuneCountInString(line) > foldText && !s.expanded {
			s.add(bar, broken, cells(string([]rune(line)[:foldedText]), modeBlock, styleNormal))
			s.missing(rest, fmt.Sprintf("… %d more characters on this line", utf8.RuneCountInString(line)-foldedText))
			continue
		}
		s.add(bar, broken, cells(line, modeBlock, styleNormal))
	}
}

// cutOff ends a long list.
func (s *renderer) cutOff(rest []cell, i, all int, what string) bool {
	if s.expanded || all <= foldItems || i < foldedItems {
		return false
	}
	s.missing(rest, fmt.Sprintf("… %d more of %d %s", all-i, all, what))
	return true
}

func (s *renderer) missing(rest []cell, what string) {
	s.folded++
	s.add(rest, rest, ownText("["+what+": o shows all]", styleStrong))
}

// size returns the exact length of a text.
func size(text string) string {
	parts := []string{countOf(utf8.RuneCountInString(text), "character")}
	if lines := strings.Count(text, "\n") + 1; lines > 1 {
		parts = append([]string{countOf(lines, "line")}, parts...)
	}
	if len(text) != utf8.RuneCountInString(text) {
		parts = append(parts, countOf(len(text), "byte"))
	}
	return strings.Join(parts, ", ")
}

func countOf(n int, what string) string {
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
