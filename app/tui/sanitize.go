package tui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"

	"github.com/fermata-go/fermata/internal/sanitize"
)

// What agents wrote is shown as cells, one for each character. A character that a terminal would obey, that cannot be seen or that turns
// others around becomes an escape like \u202e, marked by its look. A backslash that could be taken for the beginning of one is doubled,
// so what is shown stands for one text only.

// cell is one character on its way to the screen.
type cell struct {
	text  string
	width int
	style cellStyle
}

// cellStyle says what a cell looks like.
type cellStyle uint8

const (
	styleNormal  cellStyle = iota
	styleEscaped           // an escape
	styleFaint
	styleStrong
	styleInverse // under the cursor
)

// escapeMode says how a text is written.
type escapeMode uint8

const (
	modeLine   escapeMode = iota // line breaks are escapes
	modeQuoted                   // as a JSON string, with its quotes
	modeBlock                    // one line of a text with several: line breaks do not come, tabs are drawn
)

// maxMarks is how many marks may stand on one character before they are no writing any more.
const maxMarks = 3

// cells makes a text safe.
func cells(text string, how escapeMode, look cellStyle) []cell {
	out := make([]cell, 0, len(text)+2)
	if how == modeQuoted {
		out = append(out, cell{`"`, 1, look})
	}
	marks := maxMarks // nothing that a mark could stand on
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
			out = append(out, cell{`\\`, 2, look})
		case r == '"' && how == modeQuoted:
			out = append(out, cell{`\"`, 2, look})
		case r == '\t' && how == modeBlock:
			out = append(out, cell{"→   ", 4, styleFaint})
		case sanitize.IsHidden(r) || marks > maxMarks:
			out = append(out, escape(sanitize.Escape(r)))
		default:
			out = append(out, cell{text[i : i+size], widthOf(r), look})
		}
		i += size
	}
	if how == modeQuoted {
		out = append(out, cell{`"`, 1, look})
	}
	return out
}

func escape(text string) cell { return cell{text, len(text), styleEscaped} }

// startsEscape reports whether a run of backslashes leads to a letter that an escape of ours has.
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

// plain is the text of cells, without looks.
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

// wrap breaks cells into lines, behind a space if there is one in the second half of the line. No cell is lost.
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

// truncate shortens cells to a width, with an ellipsis where something is missing.
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

// draw makes a line for the screen of cells.
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
