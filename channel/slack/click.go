package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
)

// click is what a person did in Slack, as it is stored until it is processed.
type click struct {
	Act string `json:"act"`
	// Team and UserTeam are the workspaces of the app and of the person. They differ in a shared
	// channel.
	Team     string `json:"team"`
	UserTeam string `json:"userTeam"`
	User     string `json:"user"`
	UserName string `json:"userName,omitempty"`
	// Channel and Thread are where the message is.
	Channel string `json:"channel,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Shown   shown  `json:"shown"`
	// Text is the text of a command.
	Text string `json:"text,omitempty"`
	// Answer is the answer of a submitted modal.
	Answer      json.RawMessage `json:"answer,omitempty"`
	ResponseURL string          `json:"responseURL,omitempty"`
	// Screen is the text of the message or modal.
	Screen string `json:"screen,omitempty"`

	id      string // identifies the click, also if it arrives again
	trigger string // opens a modal
	view    *submission
}

// submission is a submitted modal.
type submission struct {
	callback, private string
	values            map[string]map[string]inputValue
}

// inputValue is the state of an input of a modal.
type inputValue struct {
	Type     string  `json:"type"`
	Value    *string `json:"value"`
	Selected *struct {
		Value string `json:"value"`
	} `json:"selected_option"`
}

// payload is the part of Slack's payloads that is used.
type payload struct {
	Type string `json:"type"`
	Team struct {
		ID string `json:"id"`
	} `json:"team"`
	User struct {
		ID       string `json:"id"`
		TeamID   string `json:"team_id"`
		Username string `json:"username"`
	} `json:"user"`
	Channel struct {
		ID string `json:"id"`
	} `json:"channel"`
	Container struct {
		MessageTS string `json:"message_ts"`
		ChannelID string `json:"channel_id"`
	} `json:"container"`
	Message     screen `json:"message"`
	TriggerID   string `json:"trigger_id"`
	ResponseURL string `json:"response_url"`
	Actions     []struct {
		BlockID  string `json:"block_id"`
		ActionID string `json:"action_id"`
		ActionTS string `json:"action_ts"`
		Value    string `json:"value"`
		Selected struct {
			Value string `json:"value"`
		} `json:"selected_option"`
	} `json:"actions"`
	View struct {
		screen
		ID              string `json:"id"`
		Hash            string `json:"hash"`
		CallbackID      string `json:"callback_id"`
		PrivateMetadata string `json:"private_metadata"`
		State           struct {
			Values map[string]map[string]inputValue `json:"values"`
		} `json:"state"`
	} `json:"view"`
}

// errIgnored is returned for payloads that need no action, such as a click on a link.
var errIgnored = errors.New("slack: nothing to do")

// errPayload is returned for payloads that are not ours.
var errPayload = errors.New("slack: unexpected payload")

// parseInteraction reads a click or a submitted modal.
func parseInteraction(data []byte) (*click, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, errPayload
	}
	c := &click{Team: p.Team.ID, UserTeam: p.User.TeamID, User: p.User.ID, UserName: p.User.Username, trigger: p.TriggerID, ResponseURL: p.ResponseURL}
	if c.UserTeam == "" { // Slack leaves it out in some payloads of the own workspace
		c.UserTeam = p.Team.ID
	}
	switch p.Type {
	case "block_actions":
		return c.readAction(p)
	case "view_submission":
		c.Screen = p.View.text()
		c.id = clickID("view", p.Team.ID, p.User.ID, p.View.ID, p.View.Hash)
		c.view = &submission{callback: p.View.CallbackID, private: p.View.PrivateMetadata, values: p.View.State.Values}
		return c, nil
	}
	return nil, errIgnored
}

func (c *click) readAction(p payload) (*click, error) {
	if len(p.Actions) != 1 {
		return nil, errPayload
	}
	a := p.Actions[0]
	if a.ActionID == actOpen {
		return nil, errIgnored
	}
	if !strings.HasPrefix(a.BlockID, blockActions) {
		return nil, errPayload
	}
	c.Screen = p.Message.text()
	c.Channel, c.Thread = p.Channel.ID, p.Container.MessageTS
	if c.Channel == "" {
		c.Channel = p.Container.ChannelID
	}
	c.id = clickID("action", p.Team.ID, p.User.ID, c.Channel, c.Thread, a.ActionID, a.ActionTS)
	if a.ActionID == actMenu {
		c.Shown.Action, c.Shown.Request, _ = strings.Cut(a.Selected.Value, " ")
		c.Shown.Form = c.Shown.Action == actAsk
	} else if json.Unmarshal([]byte(a.Value), &c.Shown) != nil {
		return nil, errPayload
	}
	if c.Shown.Request == "" {
		return nil, errPayload
	}
	c.Act = c.Shown.Action
	return c, nil
}

// actCommand is a slash command.
const actCommand = "command"

// parseCommand reads a slash command.
func parseCommand(get func(name string) string) (*click, error) {
	c := &click{
		Act: actCommand, Team: get("team_id"), UserTeam: get("team_id"), User: get("user_id"), UserName: get("user_name"),
		Channel: get("channel_id"), Text: get("text"), ResponseURL: get("response_url"),
	}
	if get("command") == "" || c.User == "" {
		return nil, errPayload
	}
	c.id = clickID("command", c.Team, c.User, get("trigger_id"))
	return c, nil
}

// clickID returns an id that is the same if Slack sends the same click again, also with another
// signature.
func clickID(parts ...string) string {
	text, _ := json.Marshal(parts)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
