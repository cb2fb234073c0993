package tui

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/presentation"
	"github.com/fermata-go/fermata/internal/requirement"
)

// start is the time of the tests: three in the morning.
var start = time.Date(2026, 11, 15, 3, 12, 44, 0, time.UTC)

// harness is an inbox without a terminal and without a server: the test plays both.
type harness struct {
	t          *testing.T
	m          *model
	now        time.Time
	polls      []string // the open request of each poll
	sends      []api.Decide
	ids        []string // of the decided requests
	delays     []time.Duration
	acts       []string
	views      []string // the reported views
	renderings []api.Rendering
	reveals    []string // the revealed requests
	actName    string
	body       api.RequestAction
	items      []api.Request // the server's requests
	quit       bool
}

func newHarness(t *testing.T, width, height int, items ...api.Request) *harness {
	t.Helper()
	b := &harness{t: t, now: start}
	config := Config{Now: func() time.Time { return b.now }, NewID: func() string { return "decision-" + string(rune('1'+len(b.sends))) }}.withDefaults()
	b.m = newModel(config, apiCalls{
		poll: func(ask pollRequest) tea.Cmd { b.polls = append(b.polls, ask.open); return nil },
		send: func(id string, d api.Decide) tea.Cmd {
			b.ids, b.sends = append(b.ids, id), append(b.sends, d)
			return nil
		},
		act: func(id, act string, body api.RequestAction, name string) tea.Cmd {
			b.acts = append(b.acts, act+" "+id+": "+body.Text)
			b.actName, b.body = name, body
			return nil
		},
		reveal: func(id string) tea.Cmd { b.reveals = append(b.reveals, id); return nil },
		view: func(report viewReport) tea.Cmd {
			b.views, b.renderings = append(b.views, report.id+" "+report.shown), append(b.renderings, report.rendering)
			b.m.Update(viewResult{report, true})
			return nil
		},
		after: func(after time.Duration, msg tea.Msg) tea.Cmd {
			if _, isPoll := msg.(pollDue); isPoll {
				b.delays = append(b.delays, after)
			}
			return nil
		},
	})
	b.m.Init()
	b.resize(width, height)
	if items != nil {
		b.poll(items...)
	}
	return b
}

func (b *harness) update(msg tea.Msg) {
	b.t.Helper()
	_, cmd := b.m.Update(msg)
	if cmd != nil {
		if _, ok := cmd().(tea.QuitMsg); ok {
			b.quit = true
		}
	}
	b.m.View() // as the program does after every message
}

func (b *harness) resize(width, height int) {
	b.update(tea.WindowSizeMsg{Width: width, Height: height})
}

// poll answers the last poll.
func (b *harness) poll(items ...api.Request) {
	result := pollResult{seq: b.m.pollSeq, items: items, me: &api.Me{Principal: "ann", Account: "acme"}}
	for i := range items {
		if d := b.m.openDetail(); d != nil && d.r.ID == items[i].ID {
			result.open = &items[i]
		}
	}
	b.items = items
	b.update(result)
}

func (b *harness) advance(d time.Duration) {
	b.now = b.now.Add(d)
	b.update(tick{})
}

// answer is the server's response to the last decision.
func (b *harness) answer(outcome fermata.Outcome, err error) {
	b.update(sendResult{resumeID: b.sends[len(b.sends)-1].ResumeID, outcome: outcome, err: err})
}

var namedKeys = map[string]tea.KeyPressMsg{
	"enter": {Code: tea.KeyEnter}, "esc": {Code: tea.KeyEscape}, "tab": {Code: tea.KeyTab}, "space": {Code: tea.KeySpace, Text: " "},
	"up": {Code: tea.KeyUp}, "down": {Code: tea.KeyDown}, "left": {Code: tea.KeyLeft}, "right": {Code: tea.KeyRight}, "end": {Code: tea.KeyEnd}, "home": {Code: tea.KeyHome},
	"backspace": {Code: tea.KeyBackspace}, "shift+tab": {Code: tea.KeyTab, Mod: tea.ModShift}, "alt+enter": {Code: tea.KeyEnter, Mod: tea.ModAlt},
	"ctrl+s": {Code: 's', Mod: tea.ModCtrl}, "ctrl+c": {Code: 'c', Mod: tea.ModCtrl}, "ctrl+u": {Code: 'u', Mod: tea.ModCtrl}, "ctrl+k": {Code: 'k', Mod: tea.ModCtrl},
	"ctrl+r": {Code: 'r', Mod: tea.ModCtrl},
}

// keys presses keys.
func (b *harness) keys(names ...string) {
	b.t.Helper()
	for _, name := range names {
		key, ok := namedKeys[name]
		if !ok {
			r := []rune(name)
			if len(r) != 1 {
				b.t.Fatalf("no key %q", name)
			}
			key = tea.KeyPressMsg{Code: r[0], Text: name}
		}
		b.update(key)
		// it was opened and is being loaded
		if d := b.m.openDetail(); name == "enter" && d != nil && !d.known {
			b.poll(b.items...)
		}
	}
}

// types types a text.
func (b *harness) types(text string) {
	for _, r := range text {
		b.update(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

// frame returns the screen. It must fit the window and contain only our own escape sequences.
func (b *harness) frame() string {
	b.t.Helper()
	frame := b.m.View().Content
	checkSequences(b.t, frame)
	lines := strings.Split(ansi.Strip(frame), "\n")
	if len(lines) != b.m.height {
		b.t.Errorf("%d lines in a window of %d", len(lines), b.m.height)
	}
	for i, line := range lines {
		if w := lipgloss.Width(line); w > b.m.width {
			b.t.Errorf("line %d is %d wide in a window of %d: %q", i, w, b.m.width, line)
		}
		for _, r := range line {
			if isDangerous(r) {
				b.t.Errorf("line %d holds %U: %q", i, r, line)
			}
		}
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// isDangerous is an independent implementation of the sanitizer's check.
func isDangerous(r rune) bool {
	return r != ' ' && unicode.In(r, unicode.C, unicode.Z) || unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune("\u034f\u115f\u1160\u2800\u3164\uffa0\ufe0f\ufffd", r)
}

// checkSequences looks for escape sequences that are not for colours.
func checkSequences(t *testing.T, frame string) {
	t.Helper()
	for rest := frame; ; {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			return
		}
		rest = rest[i+1:]
		end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("[0123456789;", r) })
		if !strings.HasPrefix(rest, "[") || end < 0 || rest[end] != 'm' {
			t.Fatalf("an escape sequence was not escaped: %q", rest[:min(len(rest), 20)])
		}
	}
}

func (b *harness) sees(parts ...string) {
	b.t.Helper()
	frame := b.frame()
	for _, part := range parts {
		if !strings.Contains(frame, part) {
			b.t.Errorf("there is no %q in\n%s", part, frame)
		}
	}
}

func (b *harness) seesNot(parts ...string) {
	b.t.Helper()
	frame := b.frame()
	for _, part := range parts {
		if strings.Contains(frame, part) {
			b.t.Errorf("there is %q in\n%s", part, frame)
		}
	}
}

// golden compares a frame with the reviewed one.
func (b *harness) golden(name string) {
	b.t.Helper()
	golden.Compare(b.t, filepath.Join("testdata", name+".txt"), b.frame())
}

// The requests of the tests.

func dropUsers() api.Request {
	deadline := start.Add(23*time.Hour + 55*time.Minute)
	asked := approval("drop-table", "Drop the table users with 48213 rows. It cannot be brought back.", `{"name":"users","rows":48213}`)
	asked.Fixed, asked.Rule, asked.Reason = true, "big-tables", "it has more than 1000 rows"
	return request("int_drop", "drop-users", "inproc:drop-table", fermata.Approval.Name(), asked, fermata.Approval.HumanAnswerSchema(), &deadline)
}

func refund() api.Request {
	deadline := start.Add(9*time.Minute + 3*time.Second)
	asked := approval("refund", "", `{"order":9007199254740993,"amount":120.50,"note":"sorry"}`)
	asked.ArgsSchema = json.RawMessage(`{"type":"object","properties":{"order":{"type":"integer","description":"The number of the order."},"amount":{"type":"number","minimum":0,"maximum":500},"note":{"type":"string"}},"required":["order","amount"]}`)
	return request("int_refund", "refund-17", "inproc:support", fermata.Approval.Name(), asked, fermata.Approval.HumanAnswerSchema(), &deadline)
}

func review() api.Request {
	data := map[string]any{"reason": "Content ready for review", "topic": "tea", "draft": "Five things about tea.\n\nFirst, it is hot.\nSecond, it is wet.", "round": 1}
	schema := `{"type":"object","properties":{"action":{"type":"string","enum":["approve","revise","reject"]},"feedback":{"type":"string"},"editedContent":{"type":"string"}},"required":["action"]}`
	return request("int_review", "article-tea", "inproc:content-review", "content-review", data, json.RawMessage(schema), nil)
}

// approval is an approval question with a correct digest.
func approval(action, summary, args string) fermata.ApprovalRequest {
	asked := fermata.ApprovalRequest{Action: action, Summary: summary, Args: json.RawMessage(args)}
	digest, err := asked.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: asked.Args})
	if err != nil {
		panic(err)
	}
	asked.Digest = digest
	return asked
}

func request(id, stateKey, graph, kind string, data any, schema json.RawMessage, deadline *time.Time) api.Request {
	raw, ok := data.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(data); err != nil {
			panic(err)
		}
	}
	return worded(api.Request{
		ID: id, StateKey: stateKey, GraphID: graph, Address: "node:drop/approve:" + id, Next: [][]string{{"log", "mail"}, {"tell"}}, Kind: kind, Data: raw, AnswerSchema: schema,
		Shown: strings.Repeat("3f9a", 16), State: statePending, CreatedAt: start.Add(-4 * time.Minute), Deadline: deadline,
	})
}

// worded returns a request with its presentation, as a server sends it.
func worded(r api.Request) api.Request {
	_, from, _ := strings.Cut(r.GraphID, ":")
	s := presentation.Source{Request: desk.Request{State: desk.StateOpen, Subject: desk.Subject{Kind: r.Kind}}, Data: r.Data, Masked: r.Masked, Address: r.Address, AnswerSchema: r.AnswerSchema, Agent: from}
	s.Verbs = []requirement.Verb{requirement.VerbApprove, requirement.VerbEdit, requirement.VerbReject, requirement.VerbRespond}
	if r.Activity != nil {
		s.Verbs = nil
		for _, verb := range r.Activity.Verbs {
			s.Verbs = append(s.Verbs, requirement.Verb(verb))
		}
		if r.Activity.Edit != nil {
			s.Edited = r.Activity.Edit.Args
		}
	}
	r.Presentation = new(presentation.Of(s))
	return r
}
