package tui

import (
	"errors"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/fermata-go/fermata/api"
)

// screen is one of those that lie on each other. Only the one on top gets keys.
type screen interface {
	// key handles a key, paste a text that was pasted.
	key(m *model, k tea.KeyPressMsg) tea.Cmd
	paste(m *model, text string)
	// title says where the person is, in cells because a part of it may be somebody else's text.
	title(m *model) []cell
	// body is what is shown, at most so many lines.
	body(m *model, width, height int) []string
	// hints are the keys that can be used now, the most important first.
	hints(m *model) []hint
}

type hint struct{ key, label string }

// model is everything that the inbox knows.
type model struct {
	config        Config
	calls         apiCalls
	width, height int
	now           time.Time
	conn          connection
	me            string // who decides here, as the server knows them; "" if it did not say
	pollSeq       int    // of the last poll
	list          *listScreen
	stack         []screen // what lies on the list, the top last
	drafts        map[draftKey]*formScreen
	notice        notice
}

// notice is what the person should know, until the next key.
type notice struct {
	text string
	bad  bool
}

// newModel makes an inbox that has not asked anything yet.
func newModel(config Config, calls apiCalls) *model {
	return &model{config: config, calls: calls, width: 80, height: 24, now: config.Now(), list: &listScreen{}, drafts: make(map[draftKey]*formScreen)}
}

// Init asks for the list.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.poll(), m.calls.after(time.Second, tick{}))
}

// Update takes what happened.
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
	if m.tooSmall() { // whoever sees nothing must not decide anything
		return nil
	}
	return m.top().key(m, k)
}

// top is the screen that the person sees.
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

// openDetail is the request that is open, whatever lies on it; nil if none is.
func (m *model) openDetail() *detailScreen { return find[*detailScreen](m) }

// find returns the screen of a type, if it lies there.
func find[S screen](m *model) (found S) {
	for _, s := range m.stack {
		if is, ok := s.(S); ok {
			found = is
		}
	}
	return found
}

// poll asks the server for news. Answers to earlier questions no longer count.
func (m *model) poll() tea.Cmd {
	m.pollSeq++
	ask := pollRequest{seq: m.pollSeq, me: m.conn.state != connLive}
	if d := m.openDetail(); d != nil {
		ask.open = d.r.ID
	}
	return m.calls.poll(ask)
}

// learn takes news from the server: the list changes, what is open only gets a note.
func (m *model) applyPoll(news pollResult) tea.Cmd {
	if news.seq != m.pollSeq {
		return nil
	}
	pause := m.conn.update(news.err, m.now, m.config.Poll)
	if news.me != nil {
		m.me = firstNonEmpty(news.me.Name, news.me.Principal) + " (" + news.me.Account + ")"
	}
	if news.err == nil {
		m.list.update(news.items, news.more, m.now)
		if d := m.openDetail(); d != nil {
			d.applyPoll(news, m.now)
		}
	}
	return tea.Batch(m.calls.after(pause, pollDue{m.pollSeq}), m.reportView())
}

// cellStyles tells the server, once for everything that is shown of a request, that somebody looks at it who may decide: so that nobody is reminded of what
// they know, and no word counts as said without looking.
func (m *model) reportView() tea.Cmd {
	d := m.openDetail()
	if d == nil || !d.known || m.tooSmall() || d.notice == d.r.Shown || d.r.Activity == nil || d.r.Activity.State != "open" || d.r.Activity.IneligibleReason != "" {
		return nil
	}
	d.notice = d.r.Shown
	return m.calls.view(d.r.ID, d.notice)
}

// leave ends the program, but asks first if something would be lost.
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
		return "A decision is on its way. Nobody knows yet whether it was recorded."
	}
	for _, form := range m.drafts {
		if form.isTouched() {
			return "You typed something that was not sent. It is kept only while this program runs."
		}
	}
	return ""
}

// View draws the screen on top.
func (m *model) View() tea.View {
	v := tea.NewView(m.render())
	v.AltScreen = true
	v.WindowTitle = "fermata inbox"
	return v
}

// connection is how the inbox and the server stand.
type connection struct {
	state  connState
	at     time.Time // when the server answered last
	since  time.Time // when it began not to
	next   time.Time
	reason string
	tries  int
}

type connState uint8

const (
	connConnecting connState = iota
	connLive
	connLost     // no answer
	connRejected // an answer, and it is no
)

// maxReconnectDelay is how long it takes at most until a lost server is tried again.
const maxReconnectDelay = 15 * time.Second

// heard takes what came of a poll, and says when to ask again.
func (l *connection) update(err error, now time.Time, every time.Duration) time.Duration {
	if err == nil {
		*l = connection{state: connLive, at: now}
		return every
	}
	if l.state == connLive || l.state == connConnecting {
		l.since, l.tries = now, 0
	}
	l.state, l.reason = connLost, "no answer"
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
