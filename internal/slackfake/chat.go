package slackfake

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// Limits of messages.
const (
	maxText     = 40000
	maxBlocks   = 50
	maxMetadata = 8000
)

// content is what a call puts into a message.
type content struct {
	text     string
	blocks   json.RawMessage
	metadata json.RawMessage
}

// readContent validates the text, blocks and metadata of a call.
func readContent(a args) (c content, err error) {
	c.text = a["text"]
	if c.blocks, err = compact("blocks", a["blocks"]); err != nil {
		return c, err
	}
	if c.metadata, err = compact("metadata", a["metadata"]); err != nil {
		return c, err
	}
	switch {
	case c.text == "":
		return c, fail("no_text")
	case utf8.RuneCountInString(c.text) > maxText:
		return c, fail("msg_too_long")
	case len(c.metadata) > maxMetadata:
		return c, fail("metadata_too_large")
	}
	if len(c.metadata) > 0 {
		var m struct {
			Type    string                     `json:"event_type"`
			Payload map[string]json.RawMessage `json:"event_payload"`
		}
		if json.Unmarshal(c.metadata, &m) != nil || m.Type == "" || m.Payload == nil {
			return c, fail("invalid_metadata_format")
		}
	}
	if len(c.blocks) > 0 {
		if problems := checkBlocks(c.blocks, maxBlocks, inMessage); len(problems) > 0 {
			return c, fail("invalid_blocks", problems...)
		}
	}
	return c, nil
}

// postable returns a channel in which the bot may post.
func (s *Slack) postable(id string) (*channel, error) {
	if id == "" {
		return nil, fail("invalid_arguments", "[ERROR] missing required field: channel")
	}
	if _, isUser := s.users[id]; isUser { // a post to a user goes to the direct messages with them
		if dm := s.directMessages(id); dm != "" {
			id = dm
		} else {
			return nil, fail("channel_not_found")
		}
	}
	c, err := s.visible(id)
	switch {
	case err != nil:
		return nil, err
	case c.Archived:
		return nil, fail("is_archived")
	case !slices.Contains(c.members, s.bot.ID):
		return nil, fail("not_in_channel")
	}
	return c, nil
}

// visible returns a channel that the bot can see: a private one only if it is a member.
func (s *Slack) visible(id string) (*channel, error) {
	c := s.channels[id]
	if c == nil || c.Private && !slices.Contains(c.members, s.bot.ID) {
		return nil, fail("channel_not_found")
	}
	return c, nil
}

func (s *Slack) postMessage(a args) (any, error) {
	c, err := s.postable(a["channel"])
	if err != nil {
		return nil, err
	}
	content, err := readContent(a)
	if err != nil {
		return nil, err
	}
	thread := a["thread_ts"]
	if thread != "" && c.find(thread) == nil {
		return nil, fail("thread_not_found")
	}
	m := &Message{
		Channel: c.ID, TS: s.newTS(), User: s.bot.ID, Text: content.text, Blocks: content.blocks, Metadata: content.metadata,
		ThreadTS: thread, At: s.config.Now(),
	}
	c.messages = append(c.messages, m)
	return map[string]any{"ok": true, "channel": c.ID, "ts": m.TS, "message": s.messageBody(m, true)}, nil
}

func (s *Slack) updateMessage(a args) (any, error) {
	c, err := s.visible(a["channel"])
	if err != nil {
		return nil, err
	}
	m := c.find(a["ts"])
	switch {
	case m == nil || m.To != "":
		return nil, fail("message_not_found")
	case m.User != s.bot.ID:
		return nil, fail("cant_update_message")
	case c.Archived:
		return nil, fail("is_archived")
	}
	content, err := readContent(a)
	if err != nil {
		return nil, err
	}
	m.Text, m.Blocks, m.Edited = content.text, content.blocks, true
	if content.metadata != nil {
		m.Metadata = content.metadata
	}
	return map[string]any{"ok": true, "channel": c.ID, "ts": m.TS, "text": m.Text}, nil
}

func (s *Slack) postEphemeral(a args) (any, error) {
	c, err := s.postable(a["channel"])
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.members, a["user"]) {
		return nil, fail("user_not_in_channel")
	}
	content, err := readContent(a)
	if err != nil {
		return nil, err
	}
	m := &Message{Channel: c.ID, TS: s.newTS(), User: s.bot.ID, Text: content.text, Blocks: content.blocks, To: a["user"], ThreadTS: a["thread_ts"], At: s.config.Now()}
	c.messages = append(c.messages, m)
	return map[string]any{"ok": true, "message_ts": m.TS}, nil
}

func (c *channel) find(ts string) *Message {
	for _, m := range c.messages {
		if m.TS == ts {
			return m
		}
	}
	return nil
}

// messageBody returns a message as the Web API shows it.
func (s *Slack) messageBody(m *Message, metadata bool) map[string]any {
	body := map[string]any{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text, "team": s.team, "app_id": s.appID, "bot_id": "B" + s.bot.ID[1:]}
	if m.Blocks != nil {
		body["blocks"] = m.Blocks
	}
	if m.Metadata != nil && metadata {
		body["metadata"] = m.Metadata
	}
	if m.ThreadTS != "" {
		body["thread_ts"] = m.ThreadTS
	}
	return body
}

// responseURL answers one click or command: five times within half an hour.
type responseURL struct {
	channel, user, message string
	uses                   int
	expires                time.Time
}

const (
	responseUses    = 5
	responseTimeout = 30 * time.Minute
)

// newResponseURL returns a response URL of a user in a channel.
func (s *Slack) newResponseURL(channel, user, message string) string {
	token := randomID(26)
	s.responses[token] = &responseURL{channel: channel, user: user, message: message, uses: responseUses, expires: s.config.Now().Add(responseTimeout)}
	return s.url + "/response/" + token
}

// serveResponseURL posts an ephemeral message, or replaces the message of the click.
func (s *Slack) serveResponseURL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCall))
	if err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}
	code := s.respond(r.PathValue("token"), body)
	if code != "" {
		writeJSON(w, http.StatusNotFound, map[string]any{"ok": false, "error": code})
		return
	}
	_, _ = io.WriteString(w, "ok")
}

func (s *Slack) respond(token string, body []byte) (code string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		s.calls = append(s.calls, Call{Method: "response_url", Args: map[string]string{"body": string(body)}, Code: code, At: s.config.Now()})
	}()
	target := s.responses[token]
	if target == nil {
		return "used_url"
	}
	if target.uses == 0 || s.config.Now().After(target.expires) {
		return "expired_url"
	}
	var message struct {
		Text         string          `json:"text"`
		Blocks       json.RawMessage `json:"blocks"`
		ResponseType string          `json:"response_type"`
		Replace      bool            `json:"replace_original"`
	}
	if json.Unmarshal(body, &message) != nil {
		return "invalid_payload"
	}
	content, err := readContent(args{"text": message.Text, "blocks": string(message.Blocks)})
	if err != nil {
		return err.Error()
	}
	target.uses--
	c := s.channels[target.channel]
	if m := c.find(target.message); message.Replace && m != nil {
		m.Text, m.Blocks, m.Edited = content.text, content.blocks, true
		return ""
	}
	m := &Message{Channel: c.ID, TS: s.newTS(), User: s.bot.ID, Text: content.text, Blocks: content.blocks, To: target.user, At: s.config.Now()}
	if message.ResponseType == "in_channel" {
		m.To = ""
	}
	c.messages = append(c.messages, m)
	return ""
}
