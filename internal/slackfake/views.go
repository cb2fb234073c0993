package slackfake

import (
	"encoding/json"
	"time"
)

// trigger lets the app open one modal, for three seconds.
type trigger struct {
	user    string
	expires time.Time
	used    bool
}

// triggerTimeout is how long a trigger id can be used.
const triggerTimeout = 3 * time.Second

func (s *Slack) newTrigger(user string) string {
	id := randomID(10) + "." + s.team
	s.triggers[id] = &trigger{user: user, expires: s.config.Now().Add(triggerTimeout)}
	return id
}

// View is an open modal.
type View struct {
	ID, User, CallbackID, PrivateMetadata string
	Title                                 string
	Blocks                                json.RawMessage
	// Errors are the errors that the app returned for the last submission, by block id.
	Errors map[string]string
	hash   string
	raw    object
}

const (
	maxModalBlocks     = 100
	maxPrivateMetadata = 3000
)

func (s *Slack) openView(a args) (any, error) {
	t := s.triggers[a["trigger_id"]]
	switch {
	case t == nil:
		return nil, fail("invalid_trigger_id")
	case s.config.Now().After(t.expires):
		return nil, fail("expired_trigger_id")
	case t.used:
		return nil, fail("exchanged_trigger_id")
	}
	v, problems := readView(json.RawMessage(a["view"]))
	if len(problems) > 0 {
		return nil, fail("invalid_arguments", problems...)
	}
	t.used = true
	v.ID, v.User, v.hash = s.newID("V"), t.user, randomID(10)
	for id, old := range s.views { // a person has one modal at a time
		if old.User == v.User {
			delete(s.views, id)
		}
	}
	s.views[v.ID] = v
	return map[string]any{"ok": true, "view": s.viewBody(v, nil)}, nil
}

// readView validates a modal.
func readView(raw json.RawMessage) (v *View, problems []string) {
	c := &checker{surface: inModal, blockIDs: make(map[string]bool)}
	o, kind, ok := c.object("/view", raw)
	if !ok {
		return nil, c.problems
	}
	if kind != "modal" {
		c.add("/view/type", "unsupported type: %s", kind)
	}
	c.only("/view", o, "title", "blocks", "close", "submit", "private_metadata", "callback_id", "clear_on_close", "notify_on_close", "external_id", "submit_disabled")
	c.text("/view/title", o["title"], 24, "plain_text")
	for _, name := range []string{"submit", "close"} {
		if o[name] != nil {
			c.text("/view/"+name, o[name], 24, "plain_text")
		}
	}
	v = &View{raw: o, Blocks: o["blocks"]}
	v.PrivateMetadata = c.optionalString("/view", o, "private_metadata", maxPrivateMetadata)
	v.CallbackID = c.optionalString("/view", o, "callback_id", 255)
	c.blocks("/view/blocks", o["blocks"], maxModalBlocks)
	if c.inputs > 0 && o["submit"] == nil {
		c.add("/view/submit", "missing required field: submit")
	}
	var title struct{ Text string }
	_ = json.Unmarshal(o["title"], &title)
	v.Title = title.Text
	return v, c.problems
}

// viewBody returns a view as Slack sends it, with the state of its inputs.
func (s *Slack) viewBody(v *View, state any) map[string]any {
	body := map[string]any{
		"id": v.ID, "team_id": s.team, "type": "modal", "title": v.raw["title"], "blocks": v.Blocks, "private_metadata": v.PrivateMetadata,
		"callback_id": v.CallbackID, "hash": v.hash, "app_id": s.appID, "root_view_id": v.ID, "bot_id": "B" + s.bot.ID[1:],
	}
	if state != nil {
		body["state"] = map[string]any{"values": state}
	}
	return body
}

// OpenView returns the modal that a user sees.
func (s *Slack) OpenView(user string) (View, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.views {
		if v.User == user {
			return *v, true
		}
	}
	return View{}, false
}

// CloseView closes the modal of a user without submitting it.
func (s *Slack) CloseView(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range s.views {
		if v.User == user {
			delete(s.views, id)
		}
	}
}
