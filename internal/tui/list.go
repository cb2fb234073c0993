package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/fermata-go/fermata/api"
)

// listScreen lists open requests, those with the highest risk first. Rows do not move without a key
// press: new ones are added at the end, and closed ones stay, marked, until the person moves or
// some time has passed.
type listScreen struct {
	rows   []row
	more   bool // the server has more than are shown
	loaded bool

	cursor    string // the id of the selected row
	top       int    // the first row on the screen
	filter    editor
	filtering bool // keys go to the filter
}

type row struct {
	r        api.Request
	summary  string
	closedAt time.Time // when it was closed; zero while it is open
}

// newRow computes the summary once: the question may be long, and rows are rendered often.
func newRow(r api.Request) row { return row{r: r, summary: Summary(r)} }

// closedRowTTL is how long a closed row stays.
const closedRowTTL = time.Minute

// update replaces the list.
func (l *listScreen) update(items []api.Request, more bool, now time.Time) {
	newest := make(map[string]api.Request, len(items))
	for _, r := range items {
		newest[r.ID] = r
	}
	var rows []row
	for _, old := range l.rows {
		r, open := newest[old.r.ID]
		delete(newest, old.r.ID)
		switch {
		case open && isSameQuestion(r, old.r):
			rows = append(rows, row{r: r, summary: old.summary})
		case open:
			rows = append(rows, newRow(r))
		case old.closedAt.IsZero():
			old.closedAt = now
			rows = append(rows, old)
		case old.r.ID == l.cursor || now.Sub(old.closedAt) < closedRowTTL:
			rows = append(rows, old)
		}
	}
	known := len(rows)
	for _, r := range items {
		if _, isNew := newest[r.ID]; isNew {
			rows = append(rows, newRow(r))
		}
	}
	slices.SortStableFunc(rows[known:], func(a, b row) int { return CompareRisk(a.r, b.r) })
	l.rows, l.more, l.loaded = rows, more, true
}

// markClosed marks a row before the next poll.
func (l *listScreen) markClosed(id string, now time.Time) {
	for i := range l.rows {
		if l.rows[i].r.ID == id {
			l.rows[i].closedAt = now
		}
	}
}

// removeClosed removes closed rows, except the selected one.
func (l *listScreen) removeClosed() {
	l.rows = slices.DeleteFunc(l.rows, func(r row) bool { return !r.closedAt.IsZero() && r.r.ID != l.cursor })
}

// visible returns the rows that match the filter, and the index of the selected one.
func (l *listScreen) visible() (rows []row, at int) {
	for _, r := range l.rows {
		if matches(r.r, l.filter.value()) {
			rows = append(rows, r)
		}
	}
	at = slices.IndexFunc(rows, func(r row) bool { return r.r.ID == l.cursor })
	return rows, max(at, 0)
}

func (l *listScreen) open() (n int) {
	for _, r := range l.rows {
		if r.closedAt.IsZero() {
			n++
		}
	}
	return n
}

func (l *listScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	if l.filtering {
		l.filterKey(k)
		return nil
	}
	switch k.String() {
	case "q":
		return m.quit()
	case "?":
		m.push(&helpScreen{})
	case "/":
		l.filtering = true
	case "esc":
		l.filter = editor{}
	case "enter", "right", "l":
		return l.enter(m)
	default:
		l.move(k.String())
	}
	return nil
}

// move handles a movement key. It also removes closed rows.
func (l *listScreen) move(key string) {
	rows, at := l.visible()
	if len(rows) == 0 {
		return
	}
	steps := map[string]int{"j": 1, "down": 1, "k": -1, "up": -1, "pgdown": 8, "space": 8, "pgup": -8, "g": -len(rows), "home": -len(rows), "G": len(rows), "end": len(rows)}
	step, ok := steps[key]
	if !ok {
		return
	}
	target := at
	for range max(step, -step) { // skip closed rows
		next := target + step/max(step, -step)
		for next >= 0 && next < len(rows) && !rows[next].closedAt.IsZero() {
			next += step / max(step, -step)
		}
		if next < 0 || next >= len(rows) {
			break
		}
		target = next
	}
	l.cursor = rows[target].r.ID
	l.removeClosed()
}

func (l *listScreen) enter(m *model) tea.Cmd {
	rows, at := l.visible()
	if len(rows) == 0 {
		return nil
	}
	l.cursor = rows[at].r.ID
	m.push(&detailScreen{r: rows[at].r})
	return m.poll() // load the latest version
}

func (l *listScreen) filterKey(k tea.KeyPressMsg) {
	switch k.String() {
	case "esc":
		l.filter, l.filtering = editor{}, false
	case "enter":
		l.filtering = false
	case "alt+enter", "ctrl+j", "shift+enter":
	default:
		l.filter.key(k)
	}
}

func (l *listScreen) paste(_ *model, text string) {
	if l.filtering {
		l.filter.insert(strings.ReplaceAll(text, "\n", " "))
	}
}

func (l *listScreen) title(m *model) []cell {
	text := fmt.Sprintf("%d open", l.open())
	switch {
	case !l.loaded:
		text = "…"
	case l.more:
		text = fmt.Sprintf("the oldest %d", len(l.rows))
	}
	title := append(ownText("Inbox ", styleStrong), ownText(text, styleNormal)...)
	if m.me != "" {
		title = append(title, cells(" · "+m.me, modeLine, styleFaint)...)
	}
	if m.config.Kind != "" {
		title = append(title, cells(" · only "+m.config.Kind, modeLine, styleFaint)...)
	}
	return title
}

func (l *listScreen) hints(*model) []hint {
	if l.filtering {
		return []hint{{"↵", "keep filter"}, {"esc", "show all"}}
	}
	hints := []hint{{"↵", "open"}, {"j/k", "move"}, {"/", "filter"}}
	if l.filter.value() != "" {
		hints = append(hints, hint{"esc", "show all"})
	}
	return append(hints, hint{"?", "help"}, hint{"q", "quit"})
}

// rowHeight is the number of lines of a row, with the empty one after it.
const rowHeight = 3

func (l *listScreen) body(m *model, width, height int) []string {
	rows, at := l.visible()
	if len(rows) > 0 {
		l.cursor = rows[at].r.ID
	}
	var lines []string
	if l.filtering || l.filter.value() != "" {
		line := l.filter.view(width-10, 1, l.filtering)
		lines = append(lines, draw(ownText("filter: ", styleFaint))+line[len(line)-1], "")
	}
	if len(rows) == 0 {
		return append(lines, l.emptyLines(m, width)...)
	}
	fit := max((height-len(lines)+1)/rowHeight, 1)
	l.top = min(max(l.top, at-fit+1), at)
	l.top = min(l.top, max(len(rows)-fit, 0))
	for i := l.top; i < min(l.top+fit, len(rows)); i++ {
		lines = append(lines, rowLines(m, rows[i], i == at, width)...)
	}
	return lines
}

func (l *listScreen) emptyLines(m *model, width int) []string {
	s := &renderer{width: width}
	switch {
	case l.filter.value() != "":
		s.sentence("Nothing matches.")
	case l.loaded:
		s.blank()
		s.sentence("There are no open requests. New ones appear here.")
	case m.conn.state == connRejected:
		s.sentence("The server rejects this API key: check FERMATA_TOKEN and its role.")
	case m.conn.state == connLost:
		s.sentence("The server does not respond. Retrying; check FERMATA_URL.")
	default:
		s.sentence("Loading …")
	}
	return s.lines
}

// wideWidth is the width from which kind and time have their own columns.
const wideWidth, kindColumn = 64, 18

// rowLines renders the two lines of a request:
//
//	▌ kind              summary                                 23h 12m left
//	▌                   run · graph                                   4m ago
func rowLines(m *model, r row, here bool, width int) []string {
	mark, rowStyle := "  ", styleNormal
	if here {
		mark, rowStyle = "▌ ", styleStrong
	}
	rest, urgent := timeLeft(r.r.Deadline, m.now)
	style := faintStyle
	if urgent {
		rest, style = "! "+rest, warnStyle
	}
	if !r.closedAt.IsZero() {
		rest, style, rowStyle = "no longer open", faintStyle, styleFaint
	}
	kind := truncate(cells(r.r.Kind, modeLine, rowStyle), kindColumn-2)
	from := cells(origin(r.r, m.principal, m.now), modeLine, styleFaint)
	head := ownText(mark, styleStrong)
	second := ownText(mark, styleStrong)
	if width >= wideWidth {
		head = append(append(head, kind...), spaces(kindColumn-widthOfCells(kind))...)
		second = append(second, spaces(kindColumn)...)
	} else {
		from = append(append(kind, ownText(" · ", styleFaint)...), from...)
	}
	head = append(head, cells(r.summary, modeLine, rowStyle)...)
	second = append(second, from...)
	age := ago(r.r.CreatedAt, m.now)
	return []string{spread(head, rest, style, width), spread(second, age, faintStyle, width), ""}
}

// origin describes what people did with a request and where it comes from, and its progress if
// known.
func origin(r api.Request, me string, now time.Time) string {
	parts := append(standing(r.Activity, me, now), r.StateKey, r.GraphID)
	if risk := RiskText(r); risk == "medium" || risk == "high" {
		parts = slices.Insert(parts, 0, risk+" risk")
	}
	if activity := r.Activity; activity != nil {
		parts = append(parts, activity.Requester, activity.Progress)
		if activity.Risk > 0 {
			parts = append(parts, fmt.Sprintf("risk %d", activity.Risk))
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), " · ")
}

// spread puts one text at the left and one at the right.
func spread(text []cell, right string, style lipgloss.Style, width int) string {
	text = truncate(text, width-lipgloss.Width(right)-1)
	gap := width - widthOfCells(text) - lipgloss.Width(right)
	return draw(text) + strings.Repeat(" ", max(gap, 1)) + style.Render(right)
}
