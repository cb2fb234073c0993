package tui

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// The colours are those of the terminal's own palette, so that they go with its background. Nothing is said by colour alone.
var (
	keyStyle   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	goodStyle  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	warnStyle  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
	badStyle   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	faintStyle = cellStyles[styleFaint]
)

// Below this size nothing useful can be shown.
const minWidth, minHeight = 30, 12

// frame is the whole screen:
//
//	title                      how the connection is
//	─────────────────────────────────────────────────
//	body
//	─────────────────────────────────────────────────
//	notice, if there is one
//	[key] what it does
func (m *model) render() string {
	if m.tooSmall() {
		return m.tooSmallText()
	}
	s := m.top()
	note := m.noticeLines()
	// Which keys there are depends on what fits, and what fits on the lines that the keys need. So first with the least room: what counts
	// as seen must have been on the screen.
	s.body(m, m.width, m.height-3-len(note)-maxHints)
	height := m.height - 3 - len(note) - len(hintLines(s.hints(m), m.width))
	body := s.body(m, m.width, height)
	feet := append(note, hintLines(s.hints(m), m.width)...)
	lines := append([]string{m.headLine(s), rule(m.width)}, body[:min(len(body), height)]...)
	for len(lines)+1+len(feet) < m.height {
		lines = append(lines, "")
	}
	return strings.Join(append(append(lines, rule(m.width)), feet...), "\n")
}

func (m *model) tooSmall() bool { return m.width < minWidth || m.height < minHeight }

func (m *model) tooSmallText() string {
	lines := wrap(cells("The window is too small.", modeLine, styleNormal), m.width)
	said := make([]string, min(len(lines), max(m.height, 1)))
	for i := range said {
		said[i] = draw(lines[i])
	}
	return strings.Join(said, "\n")
}

func rule(width int) string { return faintStyle.Render(strings.Repeat("─", width)) }

func (m *model) headLine(s screen) string {
	text, style := m.conn.text(m)
	text = plain(truncate(cells(text, modeLine, styleNormal), m.width*3/4))
	title := truncate(s.title(m), m.width-lipgloss.Width(text)-1)
	gap := max(m.width-widthOfCells(title)-lipgloss.Width(text), 1)
	return draw(title) + strings.Repeat(" ", gap) + style.Render(text)
}

// liveTimeout is after which silence the inbox no longer calls itself live.
const liveTimeout = 5 * time.Second

// text says how the connection is, in words.
func (l connection) text(m *model) (string, lipgloss.Style) {
	switch l.state {
	case connLive:
		if silent := m.now.Sub(l.at); silent > 3*m.config.Poll+liveTimeout {
			return "no answer for " + span(silent), warnStyle
		}
		return "live " + m.now.Format(time.TimeOnly), goodStyle
	case connLost:
		return "OFFLINE " + span(m.now.Sub(l.since)) + ", again in " + span(l.next.Sub(m.now)), badStyle
	case connRejected:
		return "REFUSED: " + l.reason, badStyle
	case connConnecting:
	}
	return "connecting …", warnStyle
}

func (m *model) noticeLines() []string {
	if d := m.openDetail(); m.notice.text == "" || d != nil && d.frozen == m.notice.text { // it is said above
		return nil
	}
	style, mark := goodStyle, "✓ "
	if m.notice.bad {
		style, mark = badStyle, "! "
	}
	var lines []string
	for i, line := range wrap(cells(m.notice.text, modeLine, styleNormal), m.width-2) {
		if i > 0 {
			mark = "  "
		}
		if i == maxNotice {
			break
		}
		lines = append(lines, style.Render(mark)+draw(line))
	}
	return lines
}

// maxNotice is how many lines a notice may have, maxHints those of the keys.
const maxNotice, maxHints = 4, 3

// hintLines puts hints beside each other, on as many lines as it takes.
func hintLines(hints []hint, width int) []string {
	lines, used := []string{""}, 0
	for _, h := range hints {
		size := lipgloss.Width(h.key) + lipgloss.Width(h.label) + 3
		if used > 0 && used+2+size > width {
			if len(lines) == maxHints {
				break
			}
			lines, used = append(lines, ""), 0
		}
		last := len(lines) - 1
		if used > 0 {
			lines[last] += "  "
			used += 2
		}
		lines[last] += keyStyle.Render("["+h.key+"]") + " " + h.label
		used += size
	}
	return lines
}

// scroller is which part of a long text is shown.
type scroller struct {
	top  int
	seen []bool // which lines were on the screen so far: whoever leaps to the end has not seen what lies between
	all  int
	page int
}

// show returns the part that is shown.
func (s *scroller) show(lines []string, height int) []string {
	s.all, s.page = len(lines), max(height, 1)
	s.top = min(max(s.top, 0), max(s.all-s.page, 0))
	end := min(s.top+s.page, s.all)
	if missing := s.all - len(s.seen); missing > 0 {
		s.seen = append(s.seen, make([]bool, missing)...)
	}
	for i := s.top; i < end; i++ { //mutate:skipped-lines-not-seen
		s.seen[i] = true
	}
	return lines[s.top:end]
}

// hasShown reports whether each of the first n lines was on the screen.
func (s *scroller) hasShown(n int) bool {
	return len(s.seen) >= n && !slices.Contains(s.seen[:n], false)
}

// key moves by a key; false if it means something else.
func (s *scroller) key(name string) bool {
	switch name {
	case "j", "down":
		s.top++
	case "k", "up":
		s.top--
	case "pgdown", "space", "ctrl+d":
		s.top += max(s.page-2, 1)
	case "pgup", "b", "ctrl+u":
		s.top -= max(s.page-2, 1)
	case "g", "home":
		s.top = 0
	case "G", "end":
		s.top = s.all
	default:
		return false
	}
	s.top = min(max(s.top, 0), max(s.all-s.page, 0))
	return true
}

// more says how much lies below.
func (s *scroller) more() int { return max(s.all-s.top-s.page, 0) }
