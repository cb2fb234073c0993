// Package office has the assistant of the example and of the demo: an agent that writes mails,
// makes appointments and transfers money, and asks its user for what it does not know.
package office

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/examples/assistant/target"
	"github.com/fermata-go/fermata/policy"
	"github.com/fermata-go/fermata/tool"
)

// contacts is the address book. Two people are called Anna.
var contacts = []contact{
	{"anna-m", "Anna Meier", "legal", "anna.meier@example.com"},
	{"anna-s", "Anna Schmidt", "sales", "anna.schmidt@example.com"},
	{"tom", "Tom Becker", "supplier", "tom@becker.example"},
}

type contact struct{ ID, Name, Team, Address string }

//go:embed policy.yaml
var policyFile []byte

// New returns the assistant. It sends mails to the file mails.jsonl of a directory, and writes
// appointments to appointments.jsonl, transfers to transfers.jsonl and notes to notes.jsonl.
func New(dir string, model agent.Model) (agent.Agent, error) {
	rules, err := policy.Load("policy.yaml", policyFile, policy.Config{Requester: dialog.User})
	if err != nil {
		return nil, err
	}
	a := &assistant{
		rules: rules, mails: target.Open(dir, "mails"), appointments: target.Open(dir, "appointments"), transfers: target.Open(dir, "transfers"), notes: target.Open(dir, "notes"),
	}
	return agent.NewChat(agent.Chat{
		Name:        "assistant",
		Instruction: "You write mails and make appointments for the user. Call the tools with what the user said, and with nothing that you made up: the tools ask the user for the rest. Names of people stay as the user wrote them. Then say in one sentence what was done.",
		Model:       model,
		Tools: []*tool.Tool{
			tool.New("send_mail", "Sends a mail to a contact.", a.sendMail),
			tool.New("add_event", "Adds an appointment with a contact to the calendar.", a.addEvent),
			tool.New("remember", "Notes something about a contact.", a.remember),
			tool.New("transfer", "Transfers money to a contact.", a.transfer),
		},
	})
}

type assistant struct {
	mails, appointments, transfers, notes *target.Log
	rules                                 fermata.Policy
}

// Mail is the argument of send_mail.
type Mail struct {
	To      string `json:"to" jsonschema:"the name, as the user wrote it"`
	Address string `json:"address,omitempty" jsonschema:"leave it out"`
	Subject string `json:"subject,omitempty" jsonschema:"if the user said it"`
}

// sendMail asks for whom and about what at the same time, then for the confirmation.
func (a *assistant) sendMail(ctx context.Context, mail Mail) (string, error) {
	who, stop, err := resolve(ctx, mail.To, "send_mail")
	subject, subjectErr := a.subject(ctx, mail.Subject)
	if err := errors.Join(err, subjectErr); err != nil {
		return "", err // both questions are open
	}
	if stop || subject == "" {
		return "Nothing was sent.", nil
	}
	mail.To, mail.Address, mail.Subject = who.Name, who.Address, subject
	answer, err := dialog.Confirm(ctx, a.rules, "send_mail", mail, dialog.Question{
		Text: fmt.Sprintf("Send a mail about “%s” to %s (%s)?", subject, who.Name, who.Address), Risk: dialog.RiskLow, Agent: "assistant", Language: dialog.English, Node: "send_mail",
	})
	if err != nil {
		return "", err
	}
	if !answer.Yes {
		return "Nothing was sent.", nil
	}
	if err := once(ctx, a.mails, mail); err != nil {
		return "", err
	}
	return fmt.Sprintf("The mail about “%s” is on its way to %s.", subject, who.Name), nil
}

func (a *assistant) subject(ctx context.Context, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	answer, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Clarification, Text: "What is the mail about?", Agent: "assistant", Language: dialog.English, Node: "send_mail", Why: "It becomes the subject of the mail."})
	return answer.Text, err
}

// Event is the argument of add_event.
type Event struct {
	With string `json:"with" jsonschema:"the name, as the user wrote it"`
	Day  string `json:"day,omitempty" jsonschema:"as 2027-05-31, if the user said it"`
}

func (a *assistant) addEvent(ctx context.Context, event Event) (string, error) {
	who, stop, err := resolve(ctx, event.With, "add_event")
	if err != nil || stop {
		return "Nothing was added.", err
	}
	ask := "When do you meet?"
	if _, err := time.Parse(time.DateOnly, event.Day); event.Day != "" && err != nil {
		ask, event.Day = fmt.Sprintf("“%s” is not a date. When do you meet?", event.Day), ""
	}
	if event.Day == "" {
		answer, err := dialog.Ask(ctx, dialog.Question{
			Kind: dialog.Form, Text: ask, Agent: "assistant", Language: dialog.English, Node: "add_event",
			Fields: []dialog.Field{{Name: "day", Label: "Day, as 2027-05-31", Type: dialog.DateField}},
		})
		if err != nil {
			return "", err
		}
		if event.Day = answer.Fields["day"]; event.Day == "" {
			return "Nothing was added.", nil
		}
	}
	event.With = who.Name
	if err := once(ctx, a.appointments, event); err != nil {
		return "", err
	}
	return fmt.Sprintf("In your calendar: %s, %s.", who.Name, event.Day), nil
}

// Transfer is the argument of transfer.
type Transfer struct {
	To    string `json:"to" jsonschema:"the name, as the user wrote it"`
	Euros int    `json:"euros"`
}

// transfer asks for a confirmation by the policy, which depends on the user and the amount.
func (a *assistant) transfer(ctx context.Context, transfer Transfer) (string, error) {
	who, stop, err := resolve(ctx, transfer.To, "transfer")
	if err != nil || stop {
		return "Nothing was transferred.", err
	}
	transfer.To = who.Name
	risk := dialog.RiskHigh
	if transfer.Euros >= 5000 {
		risk = dialog.RiskCritical // not by voice
	}
	answer, err := dialog.Confirm(ctx, a.rules, "transfer", transfer, dialog.Question{
		Text: fmt.Sprintf("Transfer %d € to %s?", transfer.Euros, who.Name), Risk: risk, Agent: "assistant", Language: dialog.English, Node: "transfer",
	})
	if rejected, ok := errors.AsType[*fermata.RejectedError](err); ok {
		return "Nothing was transferred. " + rejected.Reason, nil
	}
	if err != nil {
		return "", err
	}
	if !answer.Yes {
		return "Nothing was transferred.", nil
	}
	if err := once(ctx, a.transfers, transfer); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d € are on their way to %s.", transfer.Euros, who.Name), nil
}

// Note is the argument of remember.
type Note struct {
	About string `json:"about" jsonschema:"the name, as the user wrote it"`
	Note  string `json:"note"`
}

// remember stores a note about a person. Its reply does not depend on the person, so the question
// comes after it: the note is stored with the most likely one, and moved if the user means another.
func (a *assistant) remember(ctx context.Context, note Note) (string, error) {
	about := mention(note.About, dialog.Question{
		Text: fmt.Sprintf("Which %s did you mean?", note.About), Say: fmt.Sprintf("Noted: %s %s.", note.About, note.Note),
		Why: "There are several people with this name.", Agent: "assistant", Language: dialog.English, Node: "remember",
		Facts: []dialog.Fact{{Name: "note", Value: note.Note}},
	})
	about.Incidental = true
	found := about.Resolve()
	if found.Question != nil && found.Option != "" {
		answer, err := dialog.Ask(ctx, *found.Question)
		if err != nil {
			return "", err
		}
		if answer.Option != "" {
			found.Option = answer.Option
		}
	}
	who, ok := contactByID(found.Option)
	if !ok { // the name is not known
		var stop bool
		var err error
		if who, stop, err = resolve(ctx, note.About, "remember"); err != nil || stop {
			return "Nothing was noted.", err
		}
	}
	note.About = who.Name
	if err := once(ctx, a.notes, note); err != nil {
		return "", err
	}
	return fmt.Sprintf("The note is with %s.", who.Name), nil
}

// mention returns a name with the contacts that it may mean, and the question about it.
func mention(name string, ask dialog.Question) dialog.Mention {
	m := dialog.Mention{Name: name, Ask: ask}
	for _, c := range contacts {
		if strings.Contains(strings.ToLower(c.Name), strings.ToLower(name)) {
			m.Candidates = append(m.Candidates, dialog.Option{ID: c.ID, Label: c.Name, Facts: map[string]string{"team": c.Team}})
		}
	}
	return m
}

func contactByID(id string) (contact, bool) {
	at := slices.IndexFunc(contacts, func(c contact) bool { return c.ID == id })
	if at < 0 {
		return contact{}, false
	}
	return contacts[at], true
}

// resolve returns the contact with a name. It asks if there are several or none. stop means that
// the user abandoned the task.
func resolve(ctx context.Context, name, node string) (who contact, stop bool, err error) {
	for {
		about := mention(name, dialog.Question{
			Text: fmt.Sprintf("Which %s do you mean?", name), AllowOther: true,
			Why: "The address book has several people with this name, or none.", Agent: "assistant", Language: dialog.English, Node: node,
			Facts: []dialog.Fact{{Name: "last contact", Value: node}},
		})
		about.Unknown = fmt.Sprintf("I do not know %s. Who do you mean?", name)
		found := about.Resolve()
		if found.Question == nil {
			who, _ := contactByID(found.Option) // the candidates are contacts
			return who, false, nil
		}
		answer, err := dialog.Ask(ctx, *found.Question)
		if err != nil || answer.Option == "" && answer.Text == "" {
			return who, true, err
		}
		if answer.Option == "" { // another name
			name = strings.Trim(answer.Text, " .!?")
			continue
		}
		if who, ok := contactByID(answer.Option); ok {
			return who, false, nil
		}
		// the handler has created the person
		address, err := dialog.Ask(ctx, dialog.Question{Kind: dialog.Clarification, Text: fmt.Sprintf("What is the address of %s?", answer.Text), Agent: "assistant", Language: dialog.English, Node: node})
		return contact{answer.Option, answer.Text, "", address.Text}, address.Text == "", err
	}
}

// once performs an action once: its key is recorded before, and the target knows it.
func once(ctx context.Context, log *target.Log, action any) error {
	key, err := fermata.Do(ctx, "key", func(context.Context) (string, error) { return time.Now().UTC().Format(time.RFC3339Nano), nil })
	if err != nil {
		return err
	}
	_, err = log.DoOnce(key, action)
	return err
}
