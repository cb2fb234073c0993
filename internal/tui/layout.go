package tui

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
)

// The colours are from the terminal's palette, to fit its background. Colour is never the only
// indication.
var (
	keyStyle   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Cyan)
	goodStyle  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	warnStyle  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow)
	badStyle   = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	faintStyle = cellStyles[styleFaint]
)

// Below this size nothing useful can be shown.
const minWidth, minHeight = 30, 12

// render renders the whole screen:
//
//	title                           connection state
//	─────────────────────────────────────────────────
//	body
//	─────────────────────────────────────────────────
//	notice, if there is one
//	[key] action
func (m *model) render() string {
	if m.tooSmall() {
		return m.tooSmallText()
	}
	s := m.top()
	note := m.noticeLines()
	// The keys depend on what fits, and what fits depends on the lines of the keys. So the body is
	// rendered first with the smallest height: only lines that were on the screen count as seen.
	s.body(m, m.width, m.height-3-len(note)-maxHints)
	height := m.height - 3 - len(note) - len(hintLines(s.hints(m), m.width))
	body := s.body(m, m.width, height)
	footer := append(note, hintLines(s.hints(m), m.width)...)
	lines := append([]string{m.headLine(s), rule(m.width)}, body[:min(len(body), height)]...)
	for len(lines)+1+len(footer) < m.height {
		lines = append(lines, "")
	}
	return strings.Join(append(append(lines, rule(m.width)), footer...), "\n")
}

func (m *model) tooSmall() bool { return m.width < minWidth || m.height < minHeight }

func (m *model) tooSmallText() string {
	lines := wrap(cells("The window is too small.", modeLine, styleNormal), m.width)
	texts := make([]string, min(len(lines), max(m.height, 1)))
	for i := range texts {
		texts[i] = draw(lines[i])
	}
	return strings.Join(texts, "\n")
}

func rule(width int) string { return faintStyle.Render(strings.Repeat("─", width)) }

func (m *model) headLine(s screen) string {
	text, style := m.conn.text(m)
	text = plain(truncate(cells(text, modeLine, styleNormal), m.width*3/4))
	title := truncate(s.title(m), m.width-lipgloss.Width(text)-1)
	gap := max(m.width-widthOfCells(title)-lipgloss.Width(text), 1)
	return draw(title) + strings.Repeat(" ", gap) + style.Render(text)
}

// liveTimeout is how long after the last response the inbox is shown as live.
const liveTimeout = 5 * time.Second

// text describes the connection.
func (l connection) text(m *model) (string, lipgloss.Style) {
	switch l.state {
	case connLive:
		if silent := m.now.Sub(l.at); silent > 3*m.config.Poll+liveTimeout {
			return "no response for " + span(silent), warnStyle
		}
		return "live " + m.now.Format(time.TimeOnly), goodStyle
	case connLost:
		return "OFFLINE " + span(m.now.Sub(l.since)) + ", retry in " + span(l.next.Sub(m.now)), badStyle
	case connRejected:
		return "REJECTED: " + l.reason, badStyle
	case connConnecting:
	}
	return "connecting …", warnStyle
}

func (m *model) noticeLines() []string {
	// it is shown above
	if d := m.openDetail(); m.notice.text == "" || d != nil && d.frozen == m.notice.text {
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

// maxNotice is the maximum number of lines of a notice, maxHints of the keys.
const maxNotice, maxHints = 4, 3

// hintLines lays out hints in as few lines as possible.
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

// scroller is the visible part of a long text.
type scroller struct {
	top int
	// the lines that were on the screen so far: jumping to the end skips those in between
	seen []bool
	all  int
	page int
}

// show returns the visible part.
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

// key scrolls; it returns false for other keys.
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

// more returns the number of lines below.
func (s *scroller) more() int { return max(s.all-s.top-s.page, 0) }
