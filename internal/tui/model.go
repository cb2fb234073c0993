package tui

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata/api"
)

// screen is one of a stack of screens. Only the top one receives keys.
type screen interface {
	// key handles a key, paste a pasted text.
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	paste(m *model, text string)
	// title returns the title as cells, because it may contain text of other people.
	title(m *model) []cell
	// body returns at most height lines.
	body(m *model, width, height int) []string
	// hints returns the available keys, the most important first.
	hints(m *model) []hint
}

type hint struct{ key, label string }

// model is the state of the inbox.
type model struct {
	config        Config
	calls         apiCalls
	width, height int
	now           time.Time
	conn          connection
	me            string // the principal with its account, for people; "" if unknown
	principal     string
	pollSeq       int // of the last poll
	list          *listScreen
	stack         []screen // the screens above the list, the top last
	drafts        map[draftKey]*formScreen
	notice        notice
}

// notice is a message that is shown until the next key.
type notice struct {
	text string
	bad  bool
}

// newModel returns an inbox that has not polled yet.
func newModel(config Config, calls apiCalls) *model {
	return &model{config: config, calls: calls, width: 80, height: 24, now: config.Now(), list: &listScreen{}, drafts: make(map[draftKey]*formScreen)}
}

// Init starts the first poll.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.poll(), m.calls.after(time.Second, tick{}))
}

// Update handles a message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = m.config.Now()
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.PasteMsg:
		if !m.tooSmall() {
			m.top().paste(m, msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.key(msg)
	case tick:
		return m, m.calls.after(time.Second, tick{})
	case pollDue:
		if msg.seq == m.pollSeq {
			return m, m.poll()
		}
	case pollResult:
		return m, m.applyPoll(msg)
	case sendResult:
		return m, m.handleSent(msg)
	case revealResult:
		m.applyReveal(msg)
	case viewResult:
		if d := m.openDetail(); d != nil && msg.recorded && d.r.ID == msg.id {
			d.recorded = msg.viewReport
		}
	}
	return m, nil
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	m.notice = notice{}
	switch k.String() {
	case "ctrl+c":
		return m.quit()
	case "ctrl+r":
		return m.poll()
	}
	if m.tooSmall() { // decisions need a visible screen
		return nil
	}
	return m.top().key(m, k)
}

// top returns the visible screen.
func (m *model) top() screen {
	if len(m.stack) == 0 {
		return m.list
	}
	return m.stack[len(m.stack)-1]
}

func (m *model) push(s screen) { m.stack = append(m.stack, s) }

func (m *model) pop() {
	if len(m.stack) > 0 {
		m.stack = m.stack[:len(m.stack)-1]
	}
}

// openDetail returns the open request, even if another screen covers it; nil if there is none.
func (m *model) openDetail() *detailScreen { return find[*detailScreen](m) }

// find returns the screen of a type, if it is on the stack.
func find[S screen](m *model) (found S) {
	for _, s := range m.stack {
		if is, ok := s.(S); ok {
			found = is
		}
	}
	return found
}

// poll requests the current state. Results of earlier polls are ignored.
func (m *model) poll() tea.Cmd {
	m.pollSeq++
	ask := pollRequest{seq: m.pollSeq, me: m.conn.state != connLive}
	if d := m.openDetail(); d != nil {
		ask.open = d.r.ID
	}
	return m.calls.poll(ask)
}

// applyPoll processes a poll: the list changes, the open request only gets a notice.
func (m *model) applyPoll(result pollResult) tea.Cmd {
	if result.seq != m.pollSeq {
		return nil
	}
	pause := m.conn.update(result.err, m.now, m.config.Poll)
	if result.me != nil {
		m.principal = result.me.Principal
		m.me = firstNonEmpty(result.me.Name, result.me.Principal) + " (" + result.me.Account + ")"
	}
	if result.err == nil {
		m.list.update(result.items, result.more, m.now)
		if d := m.openDetail(); d != nil {
			d.applyPoll(result, m.now)
		}
	}
	return tea.Batch(m.calls.after(pause, pollDue{m.pollSeq}), m.reportView())
}

// applyReveal shows the masked values of the open request.
func (m *model) applyReveal(result revealResult) {
	d := m.openDetail()
	switch {
	case d == nil || d.r.ID != result.id: // it was closed since
	case result.err != nil:
		text := "The values are still masked: no response from the server."
		if problem, ok := asProblem(result.err); ok {
			text = "The values are still masked: " + firstNonEmpty(problem.Detail, problem.Title)
		}
		m.notice = notice{text: text, bad: true}
	case isSameQuestion(result.r, d.r):
		d.r, d.revealed, d.question = result.r, true, nil
	}
}

// reportView reports, once per version and rendering, that an eligible approver views a request,
// and what is on the screen: it stops reminders, and a decision without a view is flagged in
// analytics.
func (m *model) reportView() tea.Cmd {
	d := m.openDetail()
	if d == nil || !d.known || m.tooSmall() || d.r.Activity == nil || d.r.Activity.State != "open" || d.r.Activity.IneligibleReason != "" {
		return nil
	}
	if m.top() == screen(d) {
		m.render() // what comes on the screen next
	}
	if d.question == nil {
		return nil
	}
	report := viewReport{d.r.ID, d.r.Shown, d.rendering()}
	if report == d.reported {
		return nil
	}
	d.reported = report
	return m.calls.view(report)
}

// quit ends the program, after a confirmation if something would be lost.
func (m *model) quit() tea.Cmd {
	if find[*quitScreen](m) != nil {
		return tea.Quit
	}
	if loss := m.unsavedText(); loss != "" {
		m.push(&quitScreen{loss})
		return nil
	}
	return tea.Quit
}

func (m *model) unsavedText() string {
	if c := find[*confirmScreen](m); c != nil && c.state != confirmAsking {
		return "A decision is being sent. It is unknown whether it was recorded."
	}
	for _, form := range m.drafts {
		if form.isTouched() {
			return "You typed text that was not sent. It is kept only while this program runs."
		}
	}
	return ""
}

// View renders the top screen.
func (m *model) View() tea.View {
	v := tea.NewView(m.render())
	v.AltScreen = true
	v.WindowTitle = "fermata inbox"
	return v
}

// connection is the state of the connection to the server.
type connection struct {
	state  connState
	at     time.Time // when the server last responded
	since  time.Time // since when it does not respond
	next   time.Time
	reason string
	tries  int
}

type connState uint8

const (
	connConnecting connState = iota
	connLive
	connLost     // no response
	connRejected // an error response
)

// maxReconnectDelay bounds the delay between retries.
const maxReconnectDelay = 15 * time.Second

// update processes the result of a poll, and returns the delay until the next one.
func (l *connection) update(err error, now time.Time, every time.Duration) time.Duration {
	if err == nil {
		*l = connection{state: connLive, at: now}
		return every
	}
	if l.state == connLive || l.state == connConnecting {
		l.since, l.tries = now, 0
	}
	l.state, l.reason = connLost, "no response"
	if problem, ok := asProblem(err); ok {
		l.reason = problem.Code
		if problem.Status < 500 && problem.Status != 429 {
			l.state = connRejected
		}
	}
	pause := min(every<<min(l.tries, 5), maxReconnectDelay)
	l.tries++
	l.next = now.Add(pause)
	return pause
}

func asProblem(err error) (*api.Problem, bool) { return errors.AsType[*api.Problem](err) }
