package tui

import (
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
)

// editor edits a text, which may come from an agent. It keeps every character and displays each one
// safely: a standard widget would send an agent's text to the terminal unchanged.
type editor struct {
	text []rune
	at   int // the cursor is before this character
}

func newEditor(text string) editor { return editor{text: []rune(text), at: len([]rune(text))} }

func (e *editor) value() string { return string(e.text) }

// insert inserts a text at the cursor.
func (e *editor) insert(text string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	added := []rune(text)
	e.text = slices.Insert(e.text, e.at, added...)
	e.at += len(added)
}

func (e *editor) remove(from, to int) {
	e.text = slices.Delete(e.text, from, to)
	e.at = from
}

// moves are the keys that move the cursor, edits those that delete text.
var (
	moves = map[string]func(*editor) int{
		"left": func(e *editor) int { return e.at - 1 }, "ctrl+b": func(e *editor) int { return e.at - 1 },
		"right": func(e *editor) int { return e.at + 1 }, "ctrl+f": func(e *editor) int { return e.at + 1 },
		"home": (*editor).lineStart, "ctrl+a": (*editor).lineStart,
		"end": (*editor).lineEnd, "ctrl+e": (*editor).lineEnd,
		"alt+left": (*editor).wordStart, "ctrl+left": (*editor).wordStart, "alt+b": (*editor).wordStart,
		"alt+right": (*editor).wordEnd, "ctrl+right": (*editor).wordEnd, "alt+f": (*editor).wordEnd,
	}
	edits = map[string]func(*editor) (from, to int){
		"backspace": func(e *editor) (int, int) { return e.at - 1, e.at }, "ctrl+h": func(e *editor) (int, int) { return e.at - 1, e.at },
		"delete": func(e *editor) (int, int) { return e.at, e.at + 1 }, "ctrl+d": func(e *editor) (int, int) { return e.at, e.at + 1 },
		"ctrl+w": func(e *editor) (int, int) { return e.wordStart(), e.at }, "alt+backspace": func(e *editor) (int, int) { return e.wordStart(), e.at },
		"ctrl+u": func(e *editor) (int, int) { return e.lineStart(), e.at },
		"ctrl+k": func(e *editor) (int, int) { return e.at, e.lineEnd() },
	}
)

// key handles a key; it returns false if the key has no meaning here.
func (e *editor) key(k tea.KeyPressMsg) bool {
	name := k.String()
	if move, ok := moves[name]; ok {
		e.at = min(max(move(e), 0), len(e.text))
		return true
	}
	if edit, ok := edits[name]; ok {
		from, to := edit(e)
		e.remove(max(from, 0), min(to, len(e.text)))
		return true
	}
	switch {
	case name == "alt+enter" || name == "ctrl+j" || name == "shift+enter":
		e.insert("\n")
	case k.Text != "":
		e.insert(k.Text)
	default:
		return false
	}
	return true
}

// up and down move by a line; they return false at the end.
func (e *editor) up() bool {
	start := e.lineStart()
	if start == 0 {
		return false
	}
	column := e.at - start
	e.at = start - 1
	e.at = min(e.lineStart()+column, start-1)
	return true
}

func (e *editor) down() bool {
	end, column := e.lineEnd(), e.at-e.lineStart()
	if end == len(e.text) {
		return false
	}
	e.at = end + 1
	e.at = min(e.at+column, e.lineEnd())
	return true
}

func (e *editor) lineStart() int {
	at := e.at
	for at > 0 && e.text[at-1] != '\n' {
		at--
	}
	return at
}

func (e *editor) lineEnd() int {
	at := e.at
	for at < len(e.text) && e.text[at] != '\n' {
		at++
	}
	return at
}

func (e *editor) wordStart() int {
	at := e.at
	for at > 0 && unicode.IsSpace(e.text[at-1]) {
		at--
	}
	for at > 0 && !unicode.IsSpace(e.text[at-1]) {
		at--
	}
	return at
}

func (e *editor) wordEnd() int {
	at := e.at
	for at < len(e.text) && unicode.IsSpace(e.text[at]) {
		at++
	}
	for at < len(e.text) && !unicode.IsSpace(e.text[at]) {
		at++
	}
	return at
}

// view renders the text in at most height lines around the cursor, which is shown if focused.
func (e *editor) view(width, height int, focused bool) []string {
	var lines [][]cell
	cursorLine, start := 0, 0
	for _, line := range strings.SplitAfter(string(e.text), "\n") {
		shown := cells(strings.TrimSuffix(line, "\n"), modeBlock, styleNormal)
		length := len([]rune(line))
		last := start+length == len(e.text) && !strings.HasSuffix(line, "\n")
		at := e.at - start
		here := at >= 0 && (at < length || last && at == length)
		if here || last { // space for a cursor after the last character
			shown = append(shown, cell{" ", 1, styleNormal})
		}
		if here && focused {
			shown[at].style = styleInverse
		}
		folded := wrap(shown, width)
		if here {
			cursorLine = len(lines) + lineOf(folded, at)
		}
		lines = append(lines, folded...)
		start += length
	}
	top := min(max(cursorLine-height+1, 0), max(len(lines)-height, 0))
	var view []string
	for _, line := range lines[top:min(top+height, len(lines))] {
		view = append(view, draw(line))
	}
	return view
}

// lineOf returns the line of a cell after wrapping.
func lineOf(folded [][]cell, at int) int {
	for i, line := range folded {
		if at -= len(line); at < 0 {
			return i
		}
	}
	return len(folded) - 1
}
