package slack

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/sanitize"
)

// maxListed is the number of requests that the slash command lists.
const maxListed = 15

const helpText = `/fermata – list the open requests that you can decide
/fermata help – show this text
Buttons in messages decide requests; those with … open a form. The menu next to them asks the agent a question or escalates the request.`

// runCommand answers the slash command.
func (c *Channel) runCommand(ctx context.Context, d channel.Desk, person *client.Client, principal string, in *click) error {
	switch strings.TrimSpace(in.Text) {
	case "", "list":
	default:
		return c.tell(ctx, in, "You are "+sanitize.Line(principal)+".\n"+helpText)
	}
	page, err := person.Requests(ctx, client.Query{Limit: 100})
	if err != nil {
		return err
	}
	slices.SortStableFunc(page.Items, func(a, b api.Request) int { return riskOf(b) - riskOf(a) })
	r := rendered{}
	count := 0
	for _, request := range page.Items {
		if request.Activity != nil && request.Activity.IneligibleReason != "" {
			continue
		}
		if count++; count > maxListed {
			continue
		}
		section := slack.NewSectionBlock(plainText(listed(request), maxSection), nil, nil)
		if link := d.RequestURL(request.ID); link != "" {
			section.Accessory = slack.NewAccessory(linkButton(link, "Open"))
		}
		r.add(section)
	}
	switch {
	case count == 0:
		return c.tell(ctx, in, "No open request waits for you.")
	case count > maxListed:
		r.text = fmt.Sprintf("%d open requests wait for you. These have the highest risk:", count)
	default:
		r.text = fmt.Sprintf("Open requests that wait for you: %d", count)
	}
	r.blocks = append([]slack.Block{slack.NewSectionBlock(plainText(r.text, maxSection), nil, nil)}, r.blocks...)
	return c.respond(ctx, in, r)
}

func riskOf(r api.Request) int {
	if r.Activity == nil {
		return 0
	}
	return r.Activity.Risk
}

// listed words a request in one line.
func listed(r api.Request) string {
	text := sanitize.Line(r.Kind)
	if r.Presentation != nil && r.Presentation.Title != "" {
		text = r.Presentation.Title
	}
	if risk := riskOf(r); risk > 0 && risk < len(riskNames) {
		text += ", " + riskNames[risk] + " risk"
	}
	if r.Activity != nil && r.Activity.Progress != "" {
		text += ", " + sanitize.Line(r.Activity.Progress)
	}
	return clip(text, maxSection)
}
