package slackfake

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"wrap": func(page pageData, m shownMessage) any {
		return struct {
			Page    pageData
			Message shownMessage
		}{page, m}
	},
}).Parse(pageText))

// addPages adds the pages on which a person uses the workspace in a browser.
func (s *Slack) addPages(mux *http.ServeMux) {
	pages := http.NewServeMux()
	pages.HandleFunc("GET /client", s.showPage("page"))
	pages.HandleFunc("GET /client/messages", s.showPage("messages"))
	pages.HandleFunc("POST /client/click", s.act(func(ctx context.Context, f url.Values) error {
		_, err := s.Click(ctx, f.Get("as"), f.Get("channel"), f.Get("ts"), f.Get("action"))
		return err
	}))
	pages.HandleFunc("POST /client/command", s.act(func(ctx context.Context, f url.Values) error {
		name, text, _ := strings.Cut(strings.TrimSpace(f.Get("text")), " ")
		if !strings.HasPrefix(name, "/") {
			return fmt.Errorf("type a command such as /fermata")
		}
		_, err := s.Command(ctx, f.Get("as"), f.Get("channel"), name, text)
		return err
	}))
	pages.HandleFunc("POST /client/submit", s.act(s.submitForm))
	pages.HandleFunc("POST /client/close", s.act(func(_ context.Context, f url.Values) error {
		s.CloseView(f.Get("as"))
		return nil
	}))
	mux.Handle("GET /{$}", http.RedirectHandler("/client", http.StatusSeeOther))
	// other sites must not click here
	mux.Handle("/client", http.NewCrossOriginProtection().Handler(pages))
	mux.Handle("/client/", http.NewCrossOriginProtection().Handler(pages))
}

// submitForm submits a modal with the values of a form.
func (s *Slack) submitForm(ctx context.Context, f url.Values) error {
	user := f.Get("as")
	view, ok := s.OpenView(user)
	if !ok {
		return nil
	}
	values := make(map[string]string)
	for _, b := range inputs(view.Blocks) {
		values[b.BlockID] = strings.ReplaceAll(strings.Join(f["v:"+b.BlockID], ","), "\r\n", "\n")
	}
	errs, _, err := s.Submit(ctx, user, values)
	s.mu.Lock()
	defer s.mu.Unlock()
	if open := s.views[view.ID]; open != nil {
		open.Errors = errs
	}
	return err
}

// act performs an action of a person and returns to the page.
func (s *Slack) act(do func(ctx context.Context, form url.Values) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			http.Error(w, "bad form", http.StatusBadRequest)
			return
		}
		back := url.Values{"as": {r.PostForm.Get("as")}, "channel": {r.PostForm.Get("channel")}}
		if err := do(r.Context(), r.PostForm); err != nil {
			back.Set("error", err.Error())
		}
		http.Redirect(w, r, "/client?"+back.Encode(), http.StatusSeeOther)
	}
}

// pageData is what the page shows.
type pageData struct {
	Tour, Error string
	Users       []User
	As          User
	Channels    []Channel
	Channel     Channel
	Messages    []shownMessage
	View        *View
	ViewInputs  []shownInput
	ViewTexts   []shownBlock
	Submit      string
	Here        string // the query of the page
	App         string
}

type shownMessage struct {
	Message
	Author  string
	Time    string
	Blocks  []shownBlock
	Replies []shownMessage
}

// shownBlock is a block as the page shows it.
type shownBlock struct {
	Type    string
	Text    template.HTML
	Parts   []template.HTML
	Buttons []shownButton
	Preform []string
}

type shownButton struct{ Label, Action, URL, Style, Confirm string }

type shownInput struct {
	inputBlock
	Error   string
	Checked map[string]bool
}

func (s *Slack) showPage(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data := s.pageData(r.URL.Query())
		var b bytes.Buffer
		if err := pageTemplate.ExecuteTemplate(&b, name, data); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		if data.View != nil {
			w.Header().Set("X-View", data.View.ID)
		}
		_, _ = w.Write(b.Bytes())
	}
}

// pageData collects what a person sees. It falls back to the first person and channel.
func (s *Slack) pageData(query url.Values) (d pageData) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.Tour, d.Error, d.App = s.config.Tour, query.Get("error"), s.bot.Name
	for _, u := range s.users {
		if !u.Bot {
			d.Users = append(d.Users, u)
		}
	}
	slices.SortFunc(d.Users, func(a, b User) int { return strings.Compare(a.Name, b.Name) })
	d.As = s.users[query.Get("as")]
	if d.As.ID == "" && len(d.Users) > 0 {
		d.As = d.Users[0]
	}
	for _, c := range s.channels {
		if slices.Contains(c.members, d.As.ID) {
			d.Channels = append(d.Channels, c.Channel)
		}
	}
	slices.SortFunc(d.Channels, func(a, b Channel) int { return strings.Compare(a.User+a.Name, b.User+b.Name) })
	for i, c := range d.Channels {
		if c.ID == query.Get("channel") || i == 0 {
			d.Channel = c
		}
	}
	if c := s.channels[d.Channel.ID]; c != nil {
		d.Messages = s.shownMessages(c, d.As.ID, "")
	}
	for _, v := range s.views {
		if v.User == d.As.ID {
			d.addView(v)
		}
	}
	d.Here = url.Values{"as": {d.As.ID}, "channel": {d.Channel.ID}}.Encode()
	return d
}

// addView adds an open modal.
func (d *pageData) addView(v *View) {
	shown := *v
	d.View = &shown
	var submit textPart
	_ = json.Unmarshal(v.raw["submit"], &submit)
	d.Submit = submit.Text
	for _, b := range inputs(v.Blocks) {
		checked := make(map[string]bool)
		for _, o := range b.Element.Checked {
			checked[o.Value] = true
		}
		if b.Element.Selected != nil {
			checked[b.Element.Selected.Value] = true
		}
		d.ViewInputs = append(d.ViewInputs, shownInput{inputBlock: b, Error: v.Errors[b.BlockID], Checked: checked})
	}
	for _, b := range shownBlocks(v.Blocks) {
		if b.Type != "input" {
			d.ViewTexts = append(d.ViewTexts, b)
		}
	}
}

// shownMessages returns the messages of a channel or of a thread that a person sees.
func (s *Slack) shownMessages(c *channel, user, thread string) (all []shownMessage) {
	for _, m := range c.messages {
		if m.ThreadTS != thread || m.To != "" && m.To != user {
			continue
		}
		shown := shownMessage{Message: *m, Author: s.users[m.User].Name, Time: m.At.Format(time.TimeOnly), Blocks: shownBlocks(m.Blocks)}
		if len(shown.Blocks) == 0 {
			shown.Blocks = []shownBlock{{Type: "section", Text: mrkdwn(m.Text)}}
		}
		if thread == "" {
			shown.Replies = s.shownMessages(c, user, m.TS)
		}
		all = append(all, shown)
	}
	return all
}

// shownBlocks converts blocks that are valid.
func shownBlocks(raw json.RawMessage) (all []shownBlock) {
	var blocks []struct {
		Type      string            `json:"type"`
		Text      *textPart         `json:"text"`
		Fields    []textPart        `json:"fields"`
		Elements  []json.RawMessage `json:"elements"`
		Accessory json.RawMessage   `json:"accessory"`
	}
	_ = json.Unmarshal(raw, &blocks)
	for _, b := range blocks {
		shown := shownBlock{Type: b.Type}
		if b.Text != nil {
			shown.Text = b.Text.html()
		}
		for _, f := range b.Fields {
			shown.Parts = append(shown.Parts, f.html())
		}
		for _, raw := range append(b.Elements, b.Accessory) {
			shown.addElement(raw)
		}
		all = append(all, shown)
	}
	return all
}

// addElement adds a button, a menu, a text or preformatted text.
func (b *shownBlock) addElement(raw json.RawMessage) {
	var e struct {
		Type     string          `json:"type"`
		Text     json.RawMessage `json:"text"`
		ActionID string          `json:"action_id"`
		URL      string          `json:"url"`
		Style    string          `json:"style"`
		Options  []option        `json:"options"`
		Elements []textPart      `json:"elements"`
		Confirm  *struct {
			Text textPart `json:"text"`
		} `json:"confirm"`
	}
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	var label textPart
	_ = json.Unmarshal(e.Text, &label)
	switch e.Type {
	case "button":
		button := shownButton{Label: label.Text, Action: e.ActionID, URL: e.URL, Style: e.Style}
		if e.Confirm != nil {
			button.Confirm = e.Confirm.Text.Text
		}
		b.Buttons = append(b.Buttons, button)
	case "overflow", "static_select":
		for _, o := range e.Options {
			b.Buttons = append(b.Buttons, shownButton{Label: o.Text.Text, Action: e.ActionID + "/" + o.Value, URL: o.URL, Style: "menu"})
		}
	case "plain_text", "mrkdwn":
		part := textPart{Type: e.Type}
		_ = json.Unmarshal(e.Text, &part.Text)
		b.Parts = append(b.Parts, part.html())
	case "rich_text_preformatted", "rich_text_section", "rich_text_quote":
		var text strings.Builder
		for _, part := range e.Elements {
			text.WriteString(part.Text)
		}
		b.Preform = append(b.Preform, text.String())
	}
}

// html returns a text object as HTML.
func (t textPart) html() template.HTML {
	if t.Type == "mrkdwn" {
		return mrkdwn(t.Text)
	}
	return lines(template.HTMLEscapeString(t.Text))
}

var (
	slackLink = regexp.MustCompile(`&lt;(https?://[^|&\s]+(?:&amp;[^|&\s]+)*)(?:\|(.*?))?&gt;`)
	slackBold = regexp.MustCompile(`(^|[\s(])\*([^*\n]+)\*`)
	slackCode = regexp.MustCompile("`([^`\n]+)`")
	slackDate = regexp.MustCompile(`&lt;!date\^[0-9]+\^[^|&]*\|([^&]*)&gt;`) // shown by its fallback
	slackUser = regexp.MustCompile(`&lt;([@!#][^&|]+)(?:\|[^&]*)?&gt;`)
)

// mrkdwn converts Slack's markup to HTML: links, dates, mentions, bold and code.
func mrkdwn(text string) template.HTML {
	// the app escapes &, < and >; the other < and > are markup
	safe := template.HTMLEscapeString(text)
	safe = slackLink.ReplaceAllStringFunc(safe, func(found string) string {
		parts := slackLink.FindStringSubmatch(found)
		label := parts[2]
		if label == "" {
			label = parts[1]
		}
		return `<a href="` + parts[1] + `" target="_blank" rel="noopener">` + label + `</a>`
	})
	safe = slackDate.ReplaceAllString(safe, `$1`)
	safe = slackUser.ReplaceAllString(safe, `<mark>$1</mark>`)
	safe = slackBold.ReplaceAllString(safe, `$1<b>$2</b>`)
	safe = slackCode.ReplaceAllString(safe, `<code>$1</code>`)
	for entity, plain := range map[string]string{"&amp;lt;": "&lt;", "&amp;gt;": "&gt;", "&amp;amp;": "&amp;"} {
		safe = strings.ReplaceAll(safe, entity, plain)
	}
	return lines(safe)
}

func lines(safe string) template.HTML {
	return template.HTML(strings.ReplaceAll(safe, "\n", "<br>")) //nolint:gosec // escaped by the callers
}
