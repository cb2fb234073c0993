package slackfake

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// kindScope returns the scope for a channel: its kind and what is done, such as groups:read.
func kindScope(c *channel, what string) string {
	switch {
	case c.User != "":
		return "im:" + what
	case c.Private:
		return "groups:" + what
	}
	return "channels:" + what
}

// readable returns a visible channel, if the bot has the scope for it.
func (s *Slack) readable(id, what string) (*channel, error) {
	c, err := s.visible(id)
	if err != nil {
		return nil, err
	}
	return c, s.needScope(kindScope(c, what))
}

func (s *Slack) conversationInfo(a args) (any, error) {
	c, err := s.readable(a["channel"], "read")
	if err != nil {
		return nil, err
	}
	return map[string]any{"ok": true, "channel": s.channelBody(c)}, nil
}

func (s *Slack) channelBody(c *channel) map[string]any {
	return map[string]any{
		"id": c.ID, "name": c.Name, "is_channel": c.User == "", "is_im": c.User != "", "user": c.User, "is_private": c.Private || c.User != "",
		"is_archived": c.Archived, "is_ext_shared": c.Shared, "is_shared": c.Shared, "is_member": slices.Contains(c.members, s.bot.ID),
	}
}

// listConversations lists the public channels, and the private channels that the bot has joined.
func (s *Slack) listConversations(a args) (any, error) {
	limit, offset, err := 100, 0, error(nil)
	if a["limit"] != "" {
		if limit, err = strconv.Atoi(a["limit"]); err != nil || limit < 1 || limit > 1000 {
			return nil, fail("invalid_limit")
		}
	}
	types := strings.Split(cmp.Or(a["types"], "public_channel"), ",")
	for _, kind := range types {
		scope, ok := map[string]string{"public_channel": "channels:read", "private_channel": "groups:read", "im": "im:read"}[kind]
		if !ok {
			return nil, fail("invalid_types")
		}
		if err := s.needScope(scope); err != nil {
			return nil, err
		}
	}
	all := []any{}
	for _, id := range slices.Sorted(maps.Keys(s.channels)) {
		c, kind := s.channels[id], "public_channel"
		switch {
		case c.User != "":
			kind = "im"
		case c.Private:
			kind = "private_channel"
		}
		seen := kind == "public_channel" || slices.Contains(c.members, s.bot.ID)
		if seen && slices.Contains(types, kind) && !(c.Archived && a["exclude_archived"] == "true") {
			all = append(all, s.channelBody(c))
		}
	}
	if a["cursor"] != "" {
		if offset, err = strconv.Atoi(a["cursor"]); err != nil || offset > len(all) {
			return nil, fail("invalid_cursor")
		}
	}
	end, next := min(offset+limit, len(all)), ""
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return map[string]any{"ok": true, "channels": all[offset:end], "response_metadata": map[string]any{"next_cursor": next}}, nil
}

// maxHistory is the size limit of a page of history.
const maxHistory = 999

func (s *Slack) conversationHistory(a args) (any, error) {
	c, err := s.readable(a["channel"], "history")
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.members, s.bot.ID) {
		return nil, fail("not_in_channel")
	}
	limit := 100
	if a["limit"] != "" {
		if limit, err = strconv.Atoi(a["limit"]); err != nil || limit < 1 || limit > maxHistory {
			return nil, fail("invalid_limit")
		}
	}
	var all []*Message // newest first, without replies
	for _, m := range slices.Backward(c.messages) {
		after := a["oldest"] == "" || m.TS > a["oldest"] || a["inclusive"] == "1" && m.TS == a["oldest"]
		before := a["latest"] == "" || m.TS < a["latest"] || a["inclusive"] == "1" && m.TS == a["latest"]
		if m.To == "" && m.ThreadTS == "" && after && before {
			all = append(all, m)
		}
	}
	offset := 0
	if a["cursor"] != "" {
		if offset, err = strconv.Atoi(a["cursor"]); err != nil || offset > len(all) {
			return nil, fail("invalid_cursor")
		}
	}
	end := min(offset+limit, len(all))
	messages := make([]any, 0, end-offset)
	for _, m := range all[offset:end] {
		messages = append(messages, s.messageBody(m, a["include_all_metadata"] == "1" || a["include_all_metadata"] == "true"))
	}
	next := ""
	if end < len(all) {
		next = strconv.Itoa(end)
	}
	return map[string]any{"ok": true, "messages": messages, "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}}, nil
}

func (s *Slack) conversationMembers(a args) (any, error) {
	c, err := s.readable(a["channel"], "read")
	if err != nil {
		return nil, err
	}
	limit, offset := 100, 0
	if n, err := strconv.Atoi(a["limit"]); err == nil && n > 0 {
		limit = min(n, 1000)
	}
	if a["cursor"] != "" {
		if offset, err = strconv.Atoi(a["cursor"]); err != nil || offset > len(c.members) {
			return nil, fail("invalid_cursor")
		}
	}
	end := min(offset+limit, len(c.members))
	next := ""
	if end < len(c.members) {
		next = strconv.Itoa(end)
	}
	return map[string]any{"ok": true, "members": c.members[offset:end], "response_metadata": map[string]any{"next_cursor": next}}, nil
}

func (s *Slack) openConversation(a args) (any, error) {
	users := strings.Split(a["users"], ",")
	if len(users) != 1 || users[0] == "" {
		return nil, fail("users_list_not_supplied")
	}
	user, ok := s.users[users[0]]
	switch {
	case !ok:
		return nil, fail("user_not_found")
	case user.Bot:
		return nil, fail("cannot_dm_bot")
	}
	id := s.directMessages(user.ID)
	if id == "" {
		id = s.newID("D")
		s.channels[id] = &channel{Channel: Channel{ID: id, Name: user.Name, User: user.ID, Private: true}, members: []string{user.ID, s.bot.ID}}
	}
	return map[string]any{"ok": true, "channel": s.channelBody(s.channels[id])}, nil
}

func (s *Slack) userInfo(a args) (any, error) {
	user, ok := s.users[a["user"]]
	if !ok {
		return nil, fail("user_not_found")
	}
	return map[string]any{"ok": true, "user": map[string]any{
		"id": user.ID, "team_id": user.Team, "name": user.Name, "real_name": user.Name, "is_bot": user.Bot, "is_stranger": user.Team != s.team,
		"profile": map[string]any{"display_name": user.Name, "real_name": user.Name},
	}}, nil
}

func (s *Slack) userGroupMembers(a args) (any, error) {
	users, ok := s.userGroups[a["usergroup"]]
	if !ok {
		return nil, fail("no_such_subteam")
	}
	return map[string]any{"ok": true, "users": users}, nil
}
