package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// Text from agents is displayed as cells, one per character. A control character, an invisible one
// or one that changes the text direction becomes an escape like \u202e in another style. A
// backslash that could be mistaken for an escape is doubled, so the display is unambiguous.

// cell is one character on the screen.
type cell struct {
	text  string
	width int
	style cellStyle
}

// cellStyle is the style of a cell.
type cellStyle uint8

const (
	styleNormal  cellStyle = iota
	styleEscaped           // an escape
	styleFaint
	styleStrong
	styleInverse // under the cursor
)

// escapeMode says how a text is escaped.
type escapeMode uint8

const (
	modeLine   escapeMode = iota // line breaks are escaped
	modeQuoted                   // as a JSON string, with quotes
	// one line of a multi-line text: it has no line breaks, and tabs are expanded
	modeBlock
)

// maxMarks is the maximum number of combining marks on a character; more are escaped.
const maxMarks = 3

// cells sanitizes a text.
func cells(text string, how escapeMode, style cellStyle) []cell {
	out := make([]cell, 0, len(text)+2)
	if how == modeQuoted {
		out = append(out, cell{`"`, 1, style})
	}
	marks := maxMarks // there is no character for a mark yet
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, escape(fmt.Sprintf(`\x%02x`, text[i])))
		case r == '\\' && (how == modeQuoted || startsEscape(text[i:])):
			out = append(out, cell{`\\`, 2, style})
		case r == '"' && how == modeQuoted:
			out = append(out, cell{`\"`, 2, style})
		case r == '\t' && how == modeBlock:
			out = append(out, cell{"→   ", 4, styleFaint})
		case sanitize.IsHidden(r) || marks > maxMarks:
			out = append(out, escape(sanitize.Escape(r)))
		default:
			out = append(out, cell{text[i : i+size], widthOf(r), style})
		}
		i += size
	}
	if how == modeQuoted {
		out = append(out, cell{`"`, 1, style})
	}
	return out
}

func escape(text string) cell { return cell{text, len(text), styleEscaped} }

// startsEscape reports whether backslashes are followed by a letter that starts one of our escapes.
func startsEscape(text string) bool {
	text = strings.TrimLeft(text, `\`)
	return text != "" && strings.ContainsRune("uxnrt", rune(text[0]))
}

func widthOf(r rune) int {
	if r >= ' ' && r <= '~' {
		return 1
	}
	return lipgloss.Width(string(r))
}

// plain returns the text of cells without styles.
func plain(line []cell) string {
	var b strings.Builder
	for _, c := range line {
		b.WriteString(c.text)
	}
	return b.String()
}

func widthOfCells(line []cell) (width int) {
	for _, c := range line {
		width += c.width
	}
	return width
}

// wrap breaks cells into lines, after a space if there is one in the second half of the line. No
// cell is lost.
func wrap(text []cell, width int) [][]cell {
	width = max(width, 1)
	var lines [][]cell
	start, used, space := 0, 0, -1
	for i := 0; i < len(text); i++ {
		for used+text[i].width > width && i > start {
			end := i
			if space > start && widthOfCells(text[start:space]) >= width/2 {
				end = space
			}
			lines = append(lines, text[start:end])
			start, space = end, -1
			used = widthOfCells(text[start:i])
		}
		used += text[i].width
		if text[i].text == " " {
			space = i + 1
		}
	}
	return append(lines, text[start:])
}

// truncate shortens cells to a width, with an ellipsis.
func truncate(text []cell, width int) []cell {
	if widthOfCells(text) <= width {
		return text
	}
	used := 0
	for i, c := range text {
		if used+c.width > width-1 {
			return append(text[:i:i], cell{"…", 1, styleFaint})
		}
		used += c.width
	}
	return text
}

var cellStyles = [...]lipgloss.Style{
	styleNormal:  lipgloss.NewStyle(),
	styleEscaped: lipgloss.NewStyle().Reverse(true),
	styleFaint:   lipgloss.NewStyle().Faint(true),
	styleStrong:  lipgloss.NewStyle().Bold(true),
	styleInverse: lipgloss.NewStyle().Reverse(true),
}

// draw renders cells to a terminal line.
func draw(line []cell) string {
	var b, part strings.Builder
	for i, c := range line {
		part.WriteString(c.text)
		if i+1 < len(line) && line[i+1].style == c.style {
			continue
		}
		if c.style == styleNormal {
			b.WriteString(part.String())
		} else {
			b.WriteString(cellStyles[c.style].Render(part.String()))
		}
		part.Reset()
	}
	return b.String()
}
