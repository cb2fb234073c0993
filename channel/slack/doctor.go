package slack

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
)

// scopes are the scopes of the bot token, each with what needs it.
var scopes = []struct{ name, why string }{
	{"chat:write", "post and replace messages"},
	{"commands", "the slash command"},
	{"groups:read", "check that a channel is private, and its readers"},
	{"groups:history", "find a message whose response was lost"},
	{"channels:read", "notice that a channel is public"},
	{"im:write", "direct messages"},
	{"im:history", "find a direct message whose response was lost"},
	{"users:read", "names of readers"},
	{"usergroups:read", "user groups as targets and approvers"},
}

// Scopes returns the scopes that the bot token needs.
func Scopes() (names []string) {
	for _, s := range scopes {
		names = append(names, s.name)
	}
	return names
}

// Finding is the result of a check.
type Finding struct {
	// Check is what was checked, such as token or channel C0EMEA.
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	// Warning says that it works, but should be looked at.
	Warning bool   `json:"warning,omitempty"`
	Detail  string `json:"detail"`
}

// Examination says what [Channel.Examine] checks.
type Examination struct {
	// Channels are the ids of Slack channels to which requests are posted.
	Channels []string
	// Approvers are the Slack ids of people (U…) and user groups (S…) who may read the channels.
	// Without them, readers are not checked.
	Approvers []string
	// URL is the public address of the server; "" skips the probe of the endpoint.
	URL string
}

// Examine checks the token, its scopes, the channels and the endpoint. It posts nothing.
func (c *Channel) Examine(ctx context.Context, e Examination) []Finding {
	self, err := c.identity(ctx)
	if err != nil {
		return []Finding{{Check: "token", Detail: explainError(err)}}
	}
	all := []Finding{{Check: "token", OK: true, Detail: fmt.Sprintf("workspace %s (%s), bot %s", self.Team, self.TeamID, self.User)}}
	all = append(all, checkScopes(self))
	if c.config.AppToken != "" {
		all = append(all, c.checkSocket(ctx))
	}
	if e.URL != "" && c.config.SigningSecret != "" {
		all = append(all, c.probe(ctx, e.URL))
	}
	for _, id := range e.Channels {
		all = append(all, c.examineChannel(ctx, id, self.UserID, e.Approvers)...)
	}
	return all
}

// checkScopes compares the scopes of the token with those that are needed.
func checkScopes(self *slack.AuthTestResponse) Finding {
	granted := strings.Split(strings.ReplaceAll(self.Header.Get("X-OAuth-Scopes"), " ", ""), ",")
	var missing []string
	for _, s := range scopes {
		if !slices.Contains(granted, s.name) {
			missing = append(missing, fmt.Sprintf("%s (%s)", s.name, s.why))
		}
	}
	if len(missing) > 0 {
		return Finding{Check: "scopes", Detail: "missing: " + strings.Join(missing, ", ") + "; add them and install the app again"}
	}
	return Finding{Check: "scopes", OK: true, Detail: "all granted"}
}

func (c *Channel) checkSocket(ctx context.Context) Finding {
	if _, _, err := c.api.StartSocketModeContext(ctx); err != nil {
		return Finding{Check: "socket mode", Detail: explainError(sendError(err))}
	}
	return Finding{Check: "socket mode", OK: true, Detail: "the app token can open connections"}
}

// examineChannel checks that a channel is private, and its readers.
func (c *Channel) examineChannel(ctx context.Context, id, bot string, approvers []string) []Finding {
	check := "channel " + id
	info, err := call(ctx, c, "conversations.info", "", func() (*slack.Channel, error) {
		return c.api.GetConversationInfoContext(ctx, &slack.GetConversationInfoInput{ChannelID: id})
	})
	if err != nil {
		return []Finding{{Check: check, Detail: explainError(err)}}
	}
	check = fmt.Sprintf("channel %s (#%s)", id, info.Name)
	members, err := c.members(ctx, id)
	if err != nil {
		return []Finding{{Check: check, Detail: explainError(err)}}
	}
	var all []Finding
	switch {
	case info.IsArchived:
		return []Finding{{Check: check, Detail: "the channel is archived"}}
	case !slices.Contains(members, bot):
		return []Finding{{Check: check, Detail: "the bot is not a member: /invite it"}}
	case !info.IsPrivate:
		all = append(all, Finding{Check: check, Detail: "the channel is public: all people in the workspace can read the requests"})
	case info.IsExtShared:
		all = append(all, Finding{Check: check, OK: true, Warning: true, Detail: "the channel is shared with another workspace: its people read the requests, but cannot decide"})
	default:
		all = append(all, Finding{Check: check, OK: true, Detail: fmt.Sprintf("private, %d members", len(members))})
	}
	if len(approvers) == 0 {
		return all
	}
	return append(all, c.checkReaders(ctx, check, members, bot, approvers))
}

func (c *Channel) members(ctx context.Context, id string) (all []string, err error) {
	query := &slack.GetUsersInConversationParameters{ChannelID: id, Limit: 200}
	for {
		type page struct {
			users []string
			next  string
		}
		p, err := call(ctx, c, "conversations.members", "", func() (page, error) {
			users, next, err := c.api.GetUsersInConversationContext(ctx, query)
			return page{users, next}, err
		})
		if err != nil {
			return nil, err
		}
		if all = append(all, p.users...); p.next == "" {
			return all, nil
		}
		query.Cursor = p.next
	}
}

// maxReaders is the number of readers that are named.
const maxReaders = 20

// checkReaders lists the members of a channel who are not approvers.
func (c *Channel) checkReaders(ctx context.Context, check string, members []string, bot string, approvers []string) Finding {
	allowed := map[string]bool{bot: true}
	for _, id := range approvers {
		allowed[id] = true
		if !strings.HasPrefix(id, "S") {
			continue
		}
		users, err := call(ctx, c, "usergroups.users.list", "", func() ([]string, error) { return c.api.GetUserGroupMembersContext(ctx, id) })
		if err != nil {
			return Finding{Check: check + " readers", Detail: "user group " + id + ": " + explainError(err)}
		}
		for _, user := range users {
			allowed[user] = true
		}
	}
	var others []string
	for _, user := range members {
		if !allowed[user] && len(others) <= maxReaders {
			others = append(others, c.nameOf(ctx, user))
		}
	}
	if len(others) == 0 {
		return Finding{Check: check + " readers", OK: true, Detail: "only approvers"}
	}
	if len(others) > maxReaders {
		others = append(others[:maxReaders], "and more")
	}
	return Finding{Check: check + " readers", OK: true, Warning: true, Detail: "readers who are not approvers: " + strings.Join(others, ", ")}
}

func (c *Channel) nameOf(ctx context.Context, id string) string {
	user, err := call(ctx, c, "users.info", "", func() (*slack.User, error) { return c.api.GetUserInfoContext(ctx, id) })
	if err != nil {
		return id
	}
	return user.Name + " (" + id + ")"
}

// probe sends the endpoint a signed request that does nothing, and a forged one.
func (c *Channel) probe(ctx context.Context, base string) Finding {
	target := strings.TrimSuffix(base, "/") + "/channels/slack/interactivity"
	f := Finding{Check: "endpoint " + target}
	status, err := c.postProbe(ctx, target, c.config.SigningSecret)
	switch {
	case err != nil:
		f.Detail = "not reachable: " + err.Error()
		return f
	case status == http.StatusUnauthorized:
		f.Detail = "it rejects the signature: the server has another signing secret, its clock is wrong, or a proxy changes the body"
		return f
	case status != http.StatusOK:
		f.Detail = fmt.Sprintf("status %d: a proxy or firewall may block form posts, or the server has no Slack channel", status)
		return f
	}
	if status, err = c.postProbe(ctx, target, c.config.SigningSecret+"x"); err != nil || status != http.StatusUnauthorized {
		f.Detail = fmt.Sprintf("it accepts a forged signature (status %d)", status)
		return f
	}
	f.OK, f.Detail = true, "accepts signed requests and rejects forged ones"
	return f
}

func (c *Channel) postProbe(ctx context.Context, target, secret string) (int, error) {
	body := []byte("ssl_check=1")
	stamp := strconv.FormatInt(c.config.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	response, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	return response.StatusCode, nil
}

// explainError words an error of Slack with what to do.
func explainError(err error) string {
	e, ok := errors.AsType[*channel.Error](err)
	if !ok {
		return err.Error()
	}
	advice := map[string]string{
		"invalid_auth": "the token is not valid", "token_revoked": "the token was revoked: install the app again", "not_authed": "the token is missing",
		"account_inactive": "the app was removed from the workspace", "channel_not_found": "the channel does not exist, or it is private and the bot is not a member: /invite it",
		"missing_scope": "the token does not have the scope for this", "unreachable": "Slack is not reachable", "not_allowed_token_type": "this kind of token cannot be used here",
	}[e.Code]
	if advice == "" {
		return e.Code
	}
	return e.Code + ": " + advice
}
