package office

import (
	"context"
	"fmt"
	"regexp"

	"github.com/fermata-go/fermata/agent"
)

// Script returns a model without a network. It knows four sentences, three of them in four
// languages.
func Script() agent.Model { return scripted{} }

// scripted knows four sentences, and repeats results of tools.
type scripted struct{}

var (
	asksMail  = regexp.MustCompile(`(?i)(?:^|\PL)(?:write|mail|schreib\w*|écri\w*|escrib\w*)(?: an| to| à| a)? (\pL+)(?: (?:about|über|wegen|au sujet de|sobre) (.+))?`)
	asksNote  = regexp.MustCompile(`(?i)(?:^|\PL)(?:remember|note) that (\pL+) (.+?)\.?$`)
	asksMoney = regexp.MustCompile(`(?i)(?:^|\PL)(?:transfer|pay|überweis\w*|vire\w*|transfiere) (\d+)(?: ?€| euros?)? (?:to|an|à|a) (\pL+)`)
	asksEvent = regexp.MustCompile(`(?i)(?:^|\PL)(?:meet|triff|treffe|rencontre\w*|reunión con) (\pL+)(?: (?:on|am|le|el) (\S+))?`)
)

func (scripted) Generate(_ context.Context, request *agent.Request) (*agent.Response, error) {
	last := request.Messages[len(request.Messages)-1]
	say := func(text string) (*agent.Response, error) {
		return &agent.Response{Message: agent.Assistant(text), Model: "scripted", FinishReason: agent.FinishStop}, nil
	}
	call := func(name, format string, args ...any) (*agent.Response, error) {
		message := agent.Assistant("", agent.ToolCall{ID: "1", Name: name, Args: fmt.Sprintf(format, args...)})
		return &agent.Response{Message: message, Model: "scripted", FinishReason: agent.FinishToolCalls}, nil
	}
	if last.Role == agent.RoleTool {
		return say(last.Text)
	}
	if m := asksMail.FindStringSubmatch(last.Text); m != nil {
		return call("send_mail", `{"to":%q,"subject":%q}`, m[1], m[2])
	}
	if m := asksNote.FindStringSubmatch(last.Text); m != nil {
		return call("remember", `{"about":%q,"note":%q}`, m[1], m[2])
	}
	if m := asksMoney.FindStringSubmatch(last.Text); m != nil {
		return call("transfer", `{"to":%q,"euros":%s}`, m[2], m[1])
	}
	if m := asksEvent.FindStringSubmatch(last.Text); m != nil {
		return call("add_event", `{"with":%q,"day":%q}`, m[1], m[2])
	}
	return say("I can write mails (“write to Anna about lunch”) and make appointments (“meet Tom on 2027-05-31”).")
}
