// Package chat has the page on which users talk to the assistant of the server.
package chat

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/language"
	"github.com/fermata-go/fermata/internal/web/fields"
	"github.com/fermata-go/fermata/internal/web/page"
)

// Routes lists the pages of conversations.
func Routes() page.Routes {
	return page.Routes{
		"GET /chat":       chats,
		"POST /chat":      startChat,
		"GET /chat/{id}":  chat,
		"POST /chat/{id}": sendChat,
	}
}

// chatData is the data of the chat page.
type chatData struct {
	Items []api.Conversation
	// All has the conversations of all users, for auditors; Next is the address of the next page.
	All  bool
	Next string
	// Assistants are those that a new conversation can begin with; empty if there is no choice.
	// Chosen is the id of the selected one.
	Assistants []dialog.Assistant
	Chosen     string
	// Record is the conversation that is shown; nil for a new one.
	*dialog.Record
	Bubbles []bubble
	Cards   []card
	// Form has the cards as one form, if one of them is a form or there are several.
	Form *fields.Field
	// OpenKey changes with the open questions.
	OpenKey string
	Handed  []handedOver
	// Held says that a run waits for an approver.
	Held bool
	// Examples are messages to try, in the demo.
	Examples []string
	// Text is a message that could not be sent, and Bad the reason.
	Text, Bad string
	// Key is the idempotency key of the next message.
	Key      string
	ReadOnly bool
}

// bubble is a line of the transcript.
type bubble struct {
	dialog.Line
	// Aside is a question that the user does not have to answer.
	Aside bool
	// Correct offers the other options of a question that was answered.
	Correct *correction
}

// correction is an answer that the user can change.
type correction struct {
	Question string
	// Label is the answer, and Choices are the other options.
	Label   string
	Choices []dialog.Choice
	// Shown identifies the question with its answer.
	Shown string
}

// card is an open question.
type card struct {
	*dialog.Asking
	Prompt dialog.Prompt
	// Shown identifies the question as it is asked now: its id, status and newest line.
	Shown string
	// Text is the wording of the question, without the list of the answers that have buttons.
	Text  string
	Aside bool
	// Danger is a confirmation with a high risk.
	Danger bool
}

// handedOver is a question that a person answers for the user.
type handedOver struct {
	Text string
	// Request is the id of the request in the inbox, for people who may see it.
	Request string
}

func chatURL(id string) string { return "/chat/" + url.PathEscape(id) }

// AssistantTitle returns the title of an assistant; "" if there is no choice.
func (d chatData) AssistantTitle(id string) string {
	for _, a := range d.Assistants {
		if a.ID == id {
			return a.Title
		}
	}
	return ""
}

// chats shows the list of conversations and the form for a new one.
func chats(v *page.Visit) (page.Response, error) {
	data, err := chatList(v)
	if err != nil {
		return nil, err
	}
	return chatPage(v, data), nil
}

func chatList(v *page.Visit) (data chatData, err error) {
	if !v.Shell.Config.Chat {
		return data, page.ErrNotFound
	}
	var list api.Page[api.Conversation]
	if data.All = !v.MayChat(); data.All {
		list, err = v.API.AllConversations(v.Context(), v.FormValue("cursor"))
	} else {
		list, err = v.API.Conversations(v.Context())
	}
	if err != nil {
		return data, err
	}
	data.Items, data.Key, data.ReadOnly = list.Items, client.NewID(), data.All
	if !data.All {
		assistants, err := v.API.Assistants(v.Context())
		if err != nil {
			return data, err
		}
		if len(assistants.Items) > 1 {
			data.Assistants, data.Chosen = assistants.Items, cmp.Or(v.FormValue("assistant"), assistants.Items[0].ID)
		}
	}
	if list.Next != "" {
		data.Next = page.WithQuery("/chat", "cursor", list.Next)
	}
	if v.Shell.Config.Tour {
		data.Examples = []string{v.T("chat.try.mail"), v.T("chat.try.meet")}
	}
	return data, nil
}

func chatPage(v *page.Visit, data chatData) page.Page {
	p := page.Page{Name: "chat", Title: v.T("chat.title"), Nav: "/chat", Scripts: []string{"chat.js"}, Data: data}
	if data.Bad != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	return p
}

// chat shows a conversation. With the parameter fragment it is only the part that changes.
func chat(v *page.Visit) (page.Response, error) {
	if v.FormValue("fragment") != "" {
		data := chatData{}
		if err := loadChat(v, &data); err != nil {
			return nil, err
		}
		return page.Fragment{Name: "chat", Part: "thread", Data: data}, nil
	}
	data, err := chatList(v)
	if err == nil {
		err = loadChat(v, &data)
	}
	if err != nil {
		return nil, err
	}
	return chatPage(v, data), nil
}

// loadChat reads the conversation of the address.
func loadChat(v *page.Visit, data *chatData) error {
	if !v.Shell.Config.Chat {
		return page.ErrNotFound
	}
	record, err := v.API.Conversation(v.Context(), v.PathValue("id"))
	if err != nil {
		return err
	}
	data.show(v, record)
	for _, a := range record.Questions {
		if a.Status == dialog.HandedOver {
			data.Handed = append(data.Handed, handedOver{a.Question.Text, requestOfHandOver(v, record, a.ID)})
		}
	}
	return nil
}

// show fills in a conversation: open questions become cards, all other lines bubbles.
func (d *chatData) show(v *page.Visit, record dialog.Record) {
	d.Held = slices.ContainsFunc(record.Runs, func(l dialog.RunLink) bool { return l.Held })
	d.Record, d.ReadOnly = &record, d.All || record.User != v.Me.Principal
	newest := make(map[string]int) // the line of the newest wording of each open question
	for _, line := range record.Lines {
		if line.Prompt == nil || line.Prompt.Question == "" || d.ReadOnly {
			continue
		}
		if a := record.Find(line.Prompt.Question); a != nil && a.Status.Open() && a.Status != dialog.Queued && a.Status != dialog.HandedOver {
			newest[a.ID] = line.N
		}
	}
	var shown []string
	corrections := d.corrections(record)
	for i, line := range record.Lines {
		if line.Prompt == nil || newest[line.Prompt.Question] != line.N {
			aside := false
			if line.Prompt != nil {
				a := record.Find(line.Prompt.Question)
				aside = a != nil && a.Question.Relevance == dialog.NonBlocking
			}
			line.Text = labelOf(v, record.Lines[:i], line)
			d.Bubbles = append(d.Bubbles, bubble{line, aside, corrections[line.N]})
			continue
		}
		a := record.Find(line.Prompt.Question)
		shown = append(shown, fmt.Sprintf("%s:%s:%d", a.ID, a.Status, line.N))
		d.Cards = append(d.Cards, card{
			Asking: a, Prompt: *line.Prompt, Shown: shown[len(shown)-1], Text: cardText(a, *line.Prompt),
			Aside: a.Question.Relevance == dialog.NonBlocking, Danger: a.Question.Kind == dialog.Confirmation && a.Question.Risk >= dialog.RiskHigh,
		})
	}
	d.OpenKey = strings.Join(shown, " ")
	if len(d.Cards) > 1 || len(d.Cards) == 1 && len(d.Cards[0].Prompt.Fields) > 0 {
		form := fields.Of(cardForm(d.Cards), nil)
		form.ByValue = true
		d.Form = &form
	}
}

// corrections returns the answers that the user can change, by the number of the line that last
// showed the options.
func (d *chatData) corrections(record dialog.Record) map[int]*correction {
	byLine, lines := make(map[int]*correction), make(map[string]int)
	for _, line := range record.Lines {
		if line.Prompt == nil || d.ReadOnly {
			continue
		}
		a := record.Find(line.Prompt.Question)
		if a == nil || a.Status != dialog.Answered || a.Answer.Option == "" {
			continue
		}
		c := correction{Question: a.ID, Label: a.Answer.Text, Shown: fmt.Sprintf("%s:%s:%s", a.ID, a.Status, a.Answer.Option)}
		for _, choice := range line.Prompt.Choices {
			switch {
			case !slices.ContainsFunc(a.Question.Options, func(o dialog.Option) bool { return o.ID == choice.ID }):
			case choice.ID == a.Answer.Option:
				c.Label = choice.Label
			default:
				c.Choices = append(c.Choices, choice)
			}
		}
		if len(c.Choices) > 0 {
			delete(byLine, lines[a.ID])
			byLine[line.N], lines[a.ID] = &c, line.N
		}
	}
	return byLine
}

// cardText returns the text of a question without its answers, which have buttons. Remarks before
// the question stay.
func cardText(a *dialog.Asking, p dialog.Prompt) string {
	if a.Status == dialog.Asked && len(p.Choices) > 0 && !strings.Contains(p.Template, "+") {
		return a.Question.Text
	}
	return p.Text
}

// labelOf returns the text of a line; for a pressed button the label instead of its id.
func labelOf(v *page.Visit, earlier []dialog.Line, line dialog.Line) string {
	if line.From != dialog.ByUser {
		return line.Text
	}
	if line.Text == dialog.ChoiceEscape {
		return v.T("chat.cancel")
	}
	for _, e := range slices.Backward(earlier) {
		if e.Prompt == nil {
			continue
		}
		for _, choice := range e.Prompt.Choices {
			if choice.ID == line.Text {
				return choice.Label
			}
		}
	}
	return line.Text
}

// requestOfHandOver returns the id of the request that asks a person, if the signed-in person may
// see it.
func requestOfHandOver(v *page.Visit, record dialog.Record, question string) string {
	at := slices.IndexFunc(record.Runs, func(l dialog.RunLink) bool { return l.Question == question && !l.Settled })
	if at < 0 || v.OnlyChats() {
		return ""
	}
	run, err := v.API.Run(v.Context(), record.Runs[at].Run)
	if err != nil {
		return ""
	}
	for _, r := range run.Requests {
		if r.State == "pending" {
			return r.ID
		}
	}
	return ""
}

// startChat starts a conversation with its first message.
func startChat(v *page.Visit) (page.Response, error) {
	if !v.Shell.Config.Chat {
		return nil, page.ErrNotFound
	}
	key := cmp.Or(v.FormValue(page.IdempotencyName), client.NewID())
	record, err := v.API.CreateConversation(v.Context(), api.CreateConversation{ID: "chat-" + key, Assistant: v.FormValue("assistant"), Language: language.OfConversation(v.Request)})
	live := v.FormValue("live") != "" // the script sends the message when it follows the conversation
	if err == nil && !live {
		_, err = v.API.SendMessage(v.Context(), record.ID, api.SendMessage{ID: key, Text: strings.TrimSpace(v.FormValue("text")), Channel: chatChannel, Language: language.OfConversation(v.Request)})
	}
	if err != nil {
		return keepMessage(v, "", err)
	}
	return page.Redirect{To: chatURL(record.ID) + "#end"}, nil
}

// chatChannel names this page in records.
const chatChannel = "web"

// sendChat sends a message, a button or a form.
func sendChat(v *page.Visit) (page.Response, error) {
	if !v.Shell.Config.Chat {
		return nil, page.ErrNotFound
	}
	id := v.PathValue("id")
	message := api.SendMessage{ID: v.FormValue(page.IdempotencyName), Channel: chatChannel, Language: language.OfConversation(v.Request)}
	switch v.FormValue("answers") {
	case "":
		message.Question, message.Choice, _ = strings.Cut(v.FormValue("choice"), ":")
		if message.Choice == "" {
			message.Text = strings.TrimSpace(v.FormValue("text"))
		}
	case dialog.ChoiceEscape:
		message.Replies = escapeAll(v.PostForm["shown"])
	default:
		message.Replies = readAnswers(v.PostForm)
	}
	if message.Question != "" || len(message.Replies) > 0 {
		record, err := v.API.Conversation(v.Context(), id)
		if err != nil {
			return nil, err
		}
		var data chatData
		data.show(v, record)
		// A message that was accepted is sent again: the browser has lost the answer.
		if !data.ReadOnly && !accepted(record, message.ID) && !data.fits(message, v.PostForm["shown"]) {
			return askAgain(v, id, v.T("chat.changed"))
		}
	}
	if _, err := v.API.SendMessage(v.Context(), id, message); err != nil {
		return keepMessage(v, id, err)
	}
	return page.Redirect{To: chatURL(id) + "#end"}, nil
}

// accepted reports whether the conversation has a message.
func accepted(record dialog.Record, message string) bool {
	return message != "" && slices.ContainsFunc(record.Lines, func(l dialog.Line) bool { return l.Message == message })
}

// keepMessage shows the page again, with the message that could not be sent.
func keepMessage(v *page.Visit, id string, err error) (page.Response, error) {
	problem, ok := errors.AsType[*api.Problem](err)
	if !ok || problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusNotFound || problem.Status == http.StatusForbidden {
		return nil, err
	}
	return askAgain(v, id, problem.Detail)
}

// askAgain shows the page with what was not sent, and the reason.
func askAgain(v *page.Visit, id, reason string) (page.Response, error) {
	data, err := chatList(v)
	if err == nil && id != "" {
		err = loadChat(v, &data)
	}
	if err != nil {
		return nil, err
	}
	data.keepAnswers(v.PostForm)
	data.Bad = reason
	return chatPage(v, data), nil
}
