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
	calls         calls
	width, height int
	now           time.Time
	link          link
	me            string // who decides here, as the server knows them; "" if it did not say
	number        int    // of the last poll
	list          *listScreen
	above         []screen // what lies on the list, the top last
	drafts        map[draftKey]*formScreen
	notice        notice
}

// notice is what the person should know, until the next key.
type notice struct {
	text string
	bad  bool
}

// newModel makes an inbox that has not asked anything yet.
func newModel(config Config, calls calls) *model {
	return &model{config: config, calls: calls, width: 80, height: 24, now: config.Now(), list: &listScreen{}, drafts: make(map[draftKey]*formScreen)}
}

// Init asks for the list.
func (m *model) Init() tea.Cmd {
	return tea.Batch(m.poll(), m.calls.later(time.Second, second{}))
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
	case second:
		return m, m.calls.later(time.Second, second{})
	case pollDue:
		if msg.number == m.number {
			return m, m.poll()
		}
	case polled:
		return m, m.learn(msg)
	case sent:
		return m, m.settle(msg)
	}
	return m, nil
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	m.notice = notice{}
	switch k.String() {
	case "ctrl+c":
		return m.leave()
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
	if len(m.above) == 0 {
		return m.list
	}
	return m.above[len(m.above)-1]
}

func (m *model) push(s screen) { m.above = append(m.above, s) }

func (m *model) pop() {
	if len(m.above) > 0 {
		m.above = m.above[:len(m.above)-1]
	}
}

// openDetail is the request that is open, whatever lies on it; nil if none is.
func (m *model) openDetail() *detailScreen { return find[*detailScreen](m) }

// find returns the screen of a type, if it lies there.
func find[S screen](m *model) (found S) {
	for _, s := range m.above {
		if is, ok := s.(S); ok {
			found = is
		}
	}
	return found
}

// poll asks the server for news. Answers to earlier questions no longer count.
func (m *model) poll() tea.Cmd {
	m.number++
	ask := question{number: m.number, me: m.link.state != live}
	if d := m.openDetail(); d != nil {
		ask.open = d.r.ID
	}
	return m.calls.poll(ask)
}

// learn takes news from the server: the list changes, what is open only gets a note.
func (m *model) learn(news polled) tea.Cmd {
	if news.number != m.number {
		return nil
	}
	pause := m.link.heard(news.err, m.now, m.config.Poll)
	if news.me != nil {
		m.me = first(news.me.Name, news.me.Principal) + " (" + news.me.Account + ")"
	}
	if news.err == nil {
		m.list.update(news.items, news.more, m.now)
		if d := m.openDetail(); d != nil {
			d.learn(news, m.now)
		}
	}
	return m.calls.later(pause, pollDue{m.number})
}

// leave ends the program, but asks first if something would be lost.
func (m *model) leave() tea.Cmd {
	if find[*leaveScreen](m) != nil {
		return tea.Quit
	}
	if loss := m.wouldLose(); loss != "" {
		m.push(&leaveScreen{loss})
		return nil
	}
	return tea.Quit
}

func (m *model) wouldLose() string {
	if c := find[*confirmScreen](m); c != nil && c.state != asking {
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
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.WindowTitle = "fermata inbox"
	return v
}

// link is how the inbox and the server stand.
type link struct {
	state linkState
	at    time.Time // when the server answered last
	since time.Time // when it began not to
	next  time.Time
	why   string
	tries int
}

type linkState uint8

const (
	connecting linkState = iota
	live
	lost    // no answer
	refused // an answer, and it is no
)

// maxPause is how long it takes at most until a lost server is tried again.
const maxPause = 15 * time.Second

// heard takes what came of a poll, and says when to ask again.
func (l *link) heard(err error, now time.Time, every time.Duration) time.Duration {
	if err == nil {
		*l = link{state: live, at: now}
		return every
	}
	if l.state == live || l.state == connecting {
		l.since, l.tries = now, 0
	}
	l.state, l.why = lost, "no answer"
	if problem, ok := asProblem(err); ok {
		l.why = problem.Code
		if problem.Status < 500 && problem.Status != 429 {
			l.state = refused
		}
	}
	pause := min(every<<min(l.tries, 5), maxPause)
	l.tries++
	l.next = now.Add(pause)
	return pause
}

func asProblem(err error) (*api.Problem, bool) { return errors.AsType[*api.Problem](err) }
