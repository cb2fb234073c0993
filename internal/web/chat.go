package web

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
)

// chatData is the data of the chat page.
type chatData struct {
	Items []api.Conversation
	// All has the conversations of all users, for auditors; Next is the address of the next page.
	All  bool
	Next string
	// Record is the conversation that is shown; nil for a new one.
	*dialog.Record
	Bubbles []bubble
	Cards   []card
	// Form has the cards as one form, if one of them is a form or there are several.
	Form *formField
	// OpenKey changes with the open questions.
	OpenKey string
	Handed  []handedOver
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

// mayChat reports whether the person may hold conversations.
func (v *visit) mayChat() bool { return v.isAdmin() || slices.Contains(v.Me.Roles, "user") }

// onlyChats reports whether the person sees no other page.
func (v *visit) onlyChats() bool {
	return !slices.ContainsFunc(v.Me.Roles, func(role string) bool { return role != "user" })
}

func chatURL(id string) string { return "/chat/" + url.PathEscape(id) }

// chats shows the list of conversations and the form for a new one.
func (s *Site) chats(v *visit) (response, error) {
	data, err := s.chatList(v)
	if err != nil {
		return nil, err
	}
	return s.chatPage(v, data), nil
}

func (s *Site) chatList(v *visit) (data chatData, err error) {
	if !s.config.Chat {
		return data, errNotFound
	}
	var list api.Page[api.Conversation]
	if data.All = !v.mayChat(); data.All {
		list, err = v.api.AllConversations(v.ctx(), v.FormValue("cursor"))
	} else {
		list, err = v.api.Conversations(v.ctx())
	}
	if err != nil {
		return data, err
	}
	data.Items, data.Key, data.ReadOnly = list.Items, client.NewID(), data.All
	if list.Next != "" {
		data.Next = pageURL("/chat", "cursor", list.Next)
	}
	if s.config.Tour {
		data.Examples = []string{v.t("chat.try.mail"), v.t("chat.try.meet")}
	}
	return data, nil
}

func (s *Site) chatPage(v *visit, data chatData) page {
	p := page{Name: "chat", Title: v.t("chat.title"), Nav: "/chat", Scripts: []string{"chat.js"}, Data: data}
	if data.Bad != "" {
		p.Status = http.StatusUnprocessableEntity
	}
	return p
}

// chat shows a conversation. With the parameter fragment it is only the part that changes.
func (s *Site) chat(v *visit) (response, error) {
	if v.FormValue("fragment") != "" {
		data := chatData{}
		if err := s.loadChat(v, &data); err != nil {
			return nil, err
		}
		return fragment{Name: "chat", Part: "thread", Data: data}, nil
	}
	data, err := s.chatList(v)
	if err == nil {
		err = s.loadChat(v, &data)
	}
	if err != nil {
		return nil, err
	}
	return s.chatPage(v, data), nil
}

// loadChat reads the conversation of the address.
func (s *Site) loadChat(v *visit, data *chatData) error {
	if !s.config.Chat {
		return errNotFound
	}
	record, err := v.api.Conversation(v.ctx(), v.PathValue("id"))
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
func (d *chatData) show(v *visit, record dialog.Record) {
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
	for i, line := range record.Lines {
		if line.Prompt == nil || newest[line.Prompt.Question] != line.N {
			aside := false
			if line.Prompt != nil {
				a := record.Find(line.Prompt.Question)
				aside = a != nil && a.Question.Relevance == dialog.NonBlocking
			}
			line.Text = labelOf(v, record.Lines[:i], line)
			d.Bubbles = append(d.Bubbles, bubble{line, aside})
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
		form := fieldData(cardForm(d.Cards), nil)
		form.ByValue = true
		d.Form = &form
	}
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
func labelOf(v *visit, earlier []dialog.Line, line dialog.Line) string {
	if line.From != dialog.ByUser {
		return line.Text
	}
	if line.Text == dialog.ChoiceEscape {
		return v.t("chat.cancel")
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
func requestOfHandOver(v *visit, record dialog.Record, question string) string {
	at := slices.IndexFunc(record.Runs, func(l dialog.RunLink) bool { return l.Question == question && !l.Settled })
	if at < 0 || v.onlyChats() {
		return ""
	}
	run, err := v.api.Run(v.ctx(), record.Runs[at].Run)
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
func (s *Site) startChat(v *visit) (response, error) {
	if !s.config.Chat {
		return nil, errNotFound
	}
	key := cmp.Or(v.FormValue(idempotencyName), client.NewID())
	record, err := v.api.CreateConversation(v.ctx(), api.CreateConversation{ID: "chat-" + key})
	if err == nil {
		_, err = v.api.SendMessage(v.ctx(), record.ID, api.SendMessage{ID: key, Text: strings.TrimSpace(v.FormValue("text")), Channel: chatChannel})
	}
	if err != nil {
		return s.keepMessage(v, "", err)
	}
	return redirect{To: chatURL(record.ID) + "#end"}, nil
}

// chatChannel names this page in records.
const chatChannel = "web"

// sendChat sends a message, a button or a form.
func (s *Site) sendChat(v *visit) (response, error) {
	if !s.config.Chat {
		return nil, errNotFound
	}
	id := v.PathValue("id")
	message := api.SendMessage{ID: v.FormValue(idempotencyName), Channel: chatChannel}
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
		record, err := v.api.Conversation(v.ctx(), id)
		if err != nil {
			return nil, err
		}
		var data chatData
		data.show(v, record)
		// A message that was accepted is sent again: the browser has lost the answer.
		if !data.ReadOnly && !accepted(record, message.ID) && !data.fits(message, v.PostForm["shown"]) {
			return s.askAgain(v, id, v.t("chat.changed"))
		}
	}
	if _, err := v.api.SendMessage(v.ctx(), id, message); err != nil {
		return s.keepMessage(v, id, err)
	}
	return redirect{To: chatURL(id) + "#end"}, nil
}

// accepted reports whether the conversation has a message.
func accepted(record dialog.Record, message string) bool {
	return message != "" && slices.ContainsFunc(record.Lines, func(l dialog.Line) bool { return l.Message == message })
}

// keepMessage shows the page again, with the message that could not be sent.
func (s *Site) keepMessage(v *visit, id string, err error) (response, error) {
	problem, ok := errors.AsType[*api.Problem](err)
	if !ok || problem.Status >= http.StatusInternalServerError || problem.Status == http.StatusNotFound || problem.Status == http.StatusForbidden {
		return nil, err
	}
	return s.askAgain(v, id, problem.Detail)
}

// askAgain shows the page with what was not sent, and the reason.
func (s *Site) askAgain(v *visit, id, reason string) (response, error) {
	data, err := s.chatList(v)
	if err == nil && id != "" {
		err = s.loadChat(v, &data)
	}
	if err != nil {
		return nil, err
	}
	data.keepAnswers(v.PostForm)
	data.Bad = reason
	return s.chatPage(v, data), nil
}
