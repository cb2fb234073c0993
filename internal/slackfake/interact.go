package slackfake

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// ackTimeout is how long the app may take to acknowledge a click.
const ackTimeout = 3 * time.Second

// ErrNoButton is returned for a click on a button that the message does not have.
var ErrNoButton = errors.New("slackfake: the message has no such button")

// Delivery is a request to the app and its response.
type Delivery struct {
	// URL, Header and Body are the request; with Socket Mode, Body is the payload.
	URL    string
	Header http.Header
	Body   []byte
	// Status is the HTTP status of the response, 200 for an acknowledged envelope.
	Status   int
	Response []byte
	Elapsed  time.Duration
}

// Click clicks a button or an item of an overflow menu in a message, by its action id; for a menu
// item by the action id, a slash and the value.
func (s *Slack) Click(ctx context.Context, user, channel, ts, action string) (*Delivery, error) {
	payload, err := s.clickPayload(user, channel, ts, action)
	if err != nil {
		return nil, err
	}
	return s.deliver(ctx, "interactive", payload)
}

// ClickPayload returns the payload of a click without sending it, for forged requests.
func (s *Slack) ClickPayload(user, channel, ts, action string) (json.RawMessage, error) {
	payload, err := s.clickPayload(user, channel, ts, action)
	if err != nil {
		return nil, err
	}
	return json.Marshal(payload)
}

func (s *Slack) clickPayload(user, channelID, ts, action string) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	if c == nil || c.find(ts) == nil {
		return nil, fmt.Errorf("slackfake: no message %s in channel %q", ts, channelID)
	}
	m := c.find(ts)
	who, ok := s.users[user]
	if !ok || !slices.Contains(c.members, user) || m.To != "" && m.To != user {
		return nil, fmt.Errorf("slackfake: user %q does not see the message", user)
	}
	found := findAction(m.Blocks, action)
	if found == nil {
		return nil, fmt.Errorf("%w: %s", ErrNoButton, action)
	}
	found["action_ts"] = s.newTS()
	return map[string]any{
		"type": "block_actions", "api_app_id": s.appID, "token": "verification",
		"team":         map[string]any{"id": s.team, "domain": "fake"},
		"user":         map[string]any{"id": who.ID, "username": who.Name, "name": who.Name, "team_id": who.Team},
		"channel":      map[string]any{"id": c.ID, "name": c.Name},
		"container":    map[string]any{"type": "message", "message_ts": m.TS, "channel_id": c.ID, "is_ephemeral": m.To != ""},
		"message":      s.messageBody(m, true),
		"trigger_id":   s.newTrigger(user),
		"response_url": s.newResponseURL(c.ID, user, m.TS),
		"actions":      []any{found},
	}, nil
}

// findAction returns the action of a click, as it is in a payload.
func findAction(blocks json.RawMessage, action string) map[string]any {
	var all []struct {
		BlockID   string            `json:"block_id"`
		Elements  []json.RawMessage `json:"elements"`
		Accessory json.RawMessage   `json:"accessory"`
	}
	_ = json.Unmarshal(blocks, &all)
	for _, b := range all {
		for _, raw := range append(b.Elements, b.Accessory) {
			var e struct {
				Type     string           `json:"type"`
				ActionID string           `json:"action_id"`
				Value    string           `json:"value"`
				Text     any              `json:"text"`
				Options  []map[string]any `json:"options"`
			}
			if json.Unmarshal(raw, &e) != nil {
				continue
			}
			if e.ActionID == action && e.Type == "button" {
				return map[string]any{"type": "button", "action_id": e.ActionID, "block_id": b.BlockID, "value": e.Value, "text": e.Text}
			}
			for _, option := range e.Options {
				if value, _ := option["value"].(string); e.ActionID+"/"+value == action {
					return map[string]any{"type": e.Type, "action_id": e.ActionID, "block_id": b.BlockID, "selected_option": option}
				}
			}
		}
	}
	return nil
}

// Command sends a slash command, such as /fermata.
func (s *Slack) Command(ctx context.Context, user, channelID, command, text string) (*Delivery, error) {
	s.mu.Lock()
	c, who := s.channels[channelID], s.users[user]
	if c == nil || who.ID == "" {
		s.mu.Unlock()
		return nil, fmt.Errorf("slackfake: no channel %q or no user %q", channelID, user)
	}
	fields := map[string]string{
		"command": command, "text": text, "user_id": who.ID, "user_name": who.Name, "team_id": who.Team, "team_domain": "fake",
		"channel_id": c.ID, "channel_name": c.Name, "api_app_id": s.appID, "trigger_id": s.newTrigger(user), "response_url": s.newResponseURL(c.ID, user, ""),
	}
	s.mu.Unlock()
	d, err := s.deliver(ctx, "slash_commands", fields)
	if err == nil && d.Status == http.StatusOK && len(bytes.TrimSpace(d.Response)) > 0 {
		s.showCommandResponse(c.ID, user, d)
	}
	return d, err
}

// showCommandResponse posts what the app returned for a command to the person who sent it.
func (s *Slack) showCommandResponse(channelID, user string, d *Delivery) {
	var message struct {
		Text   string          `json:"text"`
		Blocks json.RawMessage `json:"blocks"`
	}
	if json.Unmarshal(d.Response, &message) != nil {
		message.Text = string(d.Response)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[channelID]
	c.messages = append(c.messages, &Message{Channel: c.ID, TS: s.newTS(), User: s.bot.ID, Text: message.Text, Blocks: message.Blocks, To: user, At: s.config.Now()})
}

// Submit submits the modal of a user with values by block id. It returns the errors of the app by
// block id. Without errors the modal is closed.
func (s *Slack) Submit(ctx context.Context, user string, values map[string]string) (map[string]string, *Delivery, error) {
	s.mu.Lock()
	var v *View
	for _, open := range s.views {
		if open.User == user {
			v = open
		}
	}
	if v == nil {
		s.mu.Unlock()
		return nil, nil, fmt.Errorf("slackfake: user %q has no open modal", user)
	}
	state, errs := viewState(v.Blocks, values)
	if len(errs) > 0 { // Slack checks required inputs before it calls the app
		s.mu.Unlock()
		return errs, nil, nil
	}
	who := s.users[user]
	payload := map[string]any{
		"type": "view_submission", "api_app_id": s.appID, "token": "verification", "trigger_id": s.newTrigger(user),
		"team": map[string]any{"id": s.team, "domain": "fake"},
		"user": map[string]any{"id": who.ID, "username": who.Name, "name": who.Name, "team_id": who.Team},
		"view": s.viewBody(v, state),
	}
	s.mu.Unlock()
	d, err := s.deliver(ctx, "interactive", payload)
	if err != nil {
		return nil, d, err
	}
	if d.Status != http.StatusOK {
		return nil, d, fmt.Errorf("slackfake: the app answered a submission with status %d", d.Status)
	}
	return s.applySubmission(v, d)
}

func (s *Slack) applySubmission(v *View, d *Delivery) (map[string]string, *Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer struct {
		Action string            `json:"response_action"`
		Errors map[string]string `json:"errors"`
	}
	if len(bytes.TrimSpace(d.Response)) > 0 {
		if err := json.Unmarshal(d.Response, &answer); err != nil {
			return nil, d, fmt.Errorf("slackfake: the app's response to a submission is not JSON: %w", err)
		}
	}
	if answer.Action == "errors" {
		for id := range answer.Errors {
			if !hasInput(v.Blocks, id) {
				return nil, d, fmt.Errorf("slackfake: an error names %q, which is not an input block", id)
			}
		}
		v.Errors = answer.Errors
		return answer.Errors, d, nil
	}
	if answer.Action != "" && answer.Action != "clear" {
		return nil, d, fmt.Errorf("slackfake: unsupported response_action %q", answer.Action)
	}
	delete(s.views, v.ID)
	return nil, d, nil
}

// deliver sends a payload over a socket, if one is open, or else as a signed request.
func (s *Slack) deliver(ctx context.Context, kind string, payload any) (*Delivery, error) {
	s.mu.Lock()
	target := s.clicks
	if kind == "slash_commands" {
		target = s.commands
	}
	hasSocket := len(s.sockets) > 0
	s.mu.Unlock()
	if hasSocket {
		return s.deliverSocket(ctx, kind, payload)
	}
	if target == "" {
		return nil, errors.New("slackfake: the app has neither a URL nor a socket")
	}
	body, err := formBody(kind, payload)
	if err != nil {
		return nil, err
	}
	return s.Post(ctx, target, s.Sign(body, s.config.Now(), s.secret), body)
}

// formBody returns the form of a payload.
func formBody(kind string, payload any) ([]byte, error) {
	form := make(url.Values)
	if fields, ok := payload.(map[string]string); ok && kind == "slash_commands" {
		for name, value := range fields {
			form.Set(name, value)
		}
		return []byte(form.Encode()), nil
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	form.Set("payload", string(text))
	return []byte(form.Encode()), nil
}

// Sign returns the headers of a request to the app, signed with a secret at a time.
func (s *Slack) Sign(body []byte, at time.Time, secret string) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + stamp + ":"))
	mac.Write(body)
	header := make(http.Header)
	header.Set("Content-Type", "application/x-www-form-urlencoded")
	header.Set("X-Slack-Request-Timestamp", stamp)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return header
}

// Post sends a request to the app as it is, for example an old, forged or repeated one.
func (s *Slack) Post(ctx context.Context, target string, header http.Header, body []byte) (*Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, ackTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	began := time.Now()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("slackfake: the app did not answer: %w", err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxCall))
	if err != nil {
		return nil, err
	}
	return &Delivery{URL: target, Header: r.Header, Body: body, Status: response.StatusCode, Response: answer, Elapsed: time.Since(began)}, nil
}

// Replay sends a delivery again, byte for byte.
func (s *Slack) Replay(ctx context.Context, d *Delivery) (*Delivery, error) {
	return s.Post(ctx, d.URL, d.Header, d.Body)
}
