package tui

import tea "charm.land/bubbletea/v2"

// helpScreen lists all keys.
type helpScreen struct{ scroll scroller }

var helpText = []struct{ key, text string }{
	{"", "In the list"},
	{"j k ↓ ↑", "move; g and G go to the first and the last"},
	{"↵", "open"},
	{"/", "filter by words in the kind, the run, the graph or the question"},
	{"", "In a request"},
	{"j k space b", "scroll"},
	{"o", "unfold or fold long values"},
	{"a e r f", "approve, approve with edits, reject, answer; the available ones are shown below"},
	{"p n", "an action whose outcome is unknown: it happened, it did not happen"},
	{"t c m", "ask the agent, comment, claim or release"},
	{"d s x w", "delegate, snooze, escalate, withdraw your vote in its undo window"},
	{"v", "reveal masked values; the audit log records it"},
	{"u", "show the current version, if the request has changed"},
	{"", "In a form"},
	{"tab ⇧tab", "next and previous field"},
	{"← →", "choose"},
	{"alt+↵ ^j", "new line"},
	{"^s", "continue; esc goes back and keeps your text"},
	{"", "Before something is sent"},
	{"y", "yes, send exactly this"},
	{"", "Everywhere"},
	{"esc", "back"},
	{"^r", "refresh now"},
	{"q ^c", "quit"},
	{"", ""},
	{"\\u202e", "an invisible or bidirectional control character, escaped"},
	{"│ ┆", "a line of a text; the broken bar continues the line above"},
}

func (h *helpScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch name := k.String(); {
	case h.scroll.key(name):
	case name == "q":
		return m.quit()
	default:
		m.pop()
	}
	return nil
}

func (h *helpScreen) paste(*model, string) {}

func (h *helpScreen) title(*model) []cell { return ownText("‹ Help", styleStrong) }

func (h *helpScreen) hints(*model) []hint { return []hint{{"j/k", "scroll"}, {"esc", "back"}} }

func (h *helpScreen) body(_ *model, width, height int) []string {
	const column = 13
	s := &renderer{width: width}
	for _, line := range helpText {
		if line.key == "" {
			s.heading(line.text)
			continue
		}
		key := cells(line.key, modeBlock, styleNormal)
		if line.key[0] == '\\' {
			key = []cell{escape(line.key)}
		}
		s.add(append(append(spaces(1), key...), spaces(column-1-widthOfCells(key))...), spaces(column), ownText(line.text, styleNormal))
	}
	return h.scroll.show(s.lines, height)
}

// quitScreen asks before unsaved text is lost.
type quitScreen struct{ unsaved string }

func (l *quitScreen) key(m *model, k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case confirmKey:
		return tea.Quit
	case "esc", "n":
		m.pop()
	}
	return nil
}

func (l *quitScreen) paste(*model, string) {}

func (l *quitScreen) title(*model) []cell { return ownText("Quit?", styleStrong) }

func (l *quitScreen) hints(*model) []hint {
	return []hint{{confirmKey, "quit"}, {"esc", "stay"}}
}

func (l *quitScreen) body(_ *model, width, _ int) []string {
	s := &renderer{width: width}
	s.sentence(l.unsaved)
	return s.lines
}
