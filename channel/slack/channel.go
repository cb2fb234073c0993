package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/fermata-go/fermata/channel"
)

// Kind is the kind of Slack targets: slack:C0EMEA or slack:#ops is a channel, slack:U0ANN a person,
// slack:S0OPS a user group, whose members get direct messages.
const Kind = "slack"

// Config configures the channel to one workspace.
type Config struct {
	// Account is the account of the people in the workspace. Required.
	Account string
	// BotToken is the token of the bot, xoxb-…. Required.
	BotToken string
	// SigningSecret verifies requests of Slack. Required without AppToken.
	SigningSecret string
	// AppToken, xapp-…, turns on Socket Mode: no public address is needed.
	AppToken string
	// Sockets is the number of Socket Mode connections; 2 by default, so that one is open while
	// Slack replaces the other.
	Sockets int
	// DigestAbove is the number of open requests that a Slack channel gets in DigestWindow before
	// further ones are collected in one message; 10 within 10 minutes by default.
	DigestAbove  int
	DigestWindow time.Duration
	// APIURL is the base URL of the Web API, for tests; that of Slack by default.
	APIURL string
	// Log gets messages for operators; slog.Default by default.
	Log *slog.Logger
	// Now is the clock; time.Now by default. With another clock, calls that exceed a rate limit
	// fail and do not wait.
	Now func() time.Time
}

// Channel delivers requests to a Slack workspace and returns decisions. It is safe for concurrent
// use.
type Channel struct {
	config Config
	api    *slack.Client
	http   *http.Client
	limits *limiter
	digest *digests

	mu   sync.Mutex
	self *slack.AuthTestResponse // of auth.test; nil before the first success
	dms  map[string]string       // channels of direct messages by user
	// ids of Slack channels by name, and when they were read
	named  map[string]string
	readAt time.Time
}

var (
	_ channel.Channel  = (*Channel)(nil)
	_ channel.Finder   = (*Channel)(nil)
	_ channel.Receiver = (*Channel)(nil)
	_ channel.Runner   = (*Channel)(nil)
	_ channel.Handler  = (*Channel)(nil)

	_ channel.AddressChecker = (*Channel)(nil)
)

// callTimeout is the timeout of one call of the Web API.
const callTimeout = 10 * time.Second

// New returns a channel. It does not call Slack.
func New(config Config) (*Channel, error) {
	switch {
	case config.Account == "":
		return nil, errors.New("slack: the account is missing")
	case !strings.HasPrefix(config.BotToken, "xoxb-"):
		return nil, errors.New("slack: the bot token is missing or does not start with xoxb-")
	case config.AppToken != "" && !strings.HasPrefix(config.AppToken, "xapp-"):
		return nil, errors.New("slack: the app token does not start with xapp-")
	case config.SigningSecret == "" && config.AppToken == "":
		return nil, errors.New("slack: the signing secret is missing: without it, anybody could send decisions; Socket Mode needs an app token instead")
	}
	config.APIURL = cmp.Or(config.APIURL, slack.APIURL)
	config.Sockets = cmp.Or(config.Sockets, 2)
	config.DigestAbove, config.DigestWindow = cmp.Or(config.DigestAbove, 10), cmp.Or(config.DigestWindow, 10*time.Minute)
	config.Log = cmp.Or(config.Log, slog.Default())
	simulated := config.Now != nil
	if !simulated {
		config.Now = time.Now
	}
	client := &http.Client{Timeout: callTimeout}
	c := &Channel{config: config, http: client, limits: newLimiter(config.Now, simulated), dms: make(map[string]string)}
	c.digest = newDigests(c)
	c.api = slack.New(config.BotToken, slack.OptionAPIURL(config.APIURL), slack.OptionHTTPClient(client), slack.OptionAppLevelToken(config.AppToken))
	return c, nil
}

// Kind returns [Kind].
func (c *Channel) Kind() string { return Kind }

// identity returns the workspace and the bot of the token.
func (c *Channel) identity(ctx context.Context) (*slack.AuthTestResponse, error) {
	c.mu.Lock()
	self := c.self
	c.mu.Unlock()
	if self != nil {
		return self, nil
	}
	self, err := call(ctx, c, "auth.test", "", func() (*slack.AuthTestResponse, error) { return c.api.AuthTestContext(ctx) })
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.self = self
	return self, nil
}

// call calls a method of the Web API within its rate limits and classifies the error.
func call[T any](ctx context.Context, c *Channel, method, to string, do func() (T, error)) (result T, err error) {
	if err := c.limits.wait(ctx, method, to); err != nil {
		return result, err
	}
	result, err = do()
	if limited, ok := errors.AsType[*slack.RateLimitedError](err); ok {
		c.limits.block(method, to, limited.RetryAfter)
	}
	if err != nil {
		return result, sendError(err)
	}
	return result, nil
}

// destinations returns the Slack channels of an address: one, or those of the members of a group.
func (c *Channel) destinations(ctx context.Context, to string) ([]string, error) {
	switch {
	case to == "":
		return nil, &channel.Error{Code: "channel_not_found", Permanent: true, Err: errors.New("slack: the target has no address")}
	case strings.HasPrefix(to, "U"), strings.HasPrefix(to, "W"):
		dm, err := c.directMessages(ctx, to)
		return []string{dm}, err
	case strings.HasPrefix(to, "S"):
		users, err := call(ctx, c, "usergroups.users.list", "", func() ([]string, error) { return c.api.GetUserGroupMembersContext(ctx, to) })
		if err != nil {
			return nil, err
		}
		if len(users) == 0 || len(users) > maxGroup {
			return nil, &channel.Error{Code: "group_size", Permanent: true, Err: fmt.Errorf("slack: user group %s has %d members; 1 to %d are possible", to, len(users), maxGroup)}
		}
		var all []string
		for _, user := range users {
			dm, err := c.directMessages(ctx, user)
			if err != nil {
				return nil, err
			}
			all = append(all, dm)
		}
		return all, nil
	}
	if name, ok := strings.CutPrefix(to, "#"); ok {
		id, err := c.channelID(ctx, name)
		return []string{id}, err
	}
	return []string{to}, nil
}

// address is an id of a channel, a direct message, a user or a user group, or #NAME.
var address = regexp.MustCompile(`^(?:[CGDUWS][A-Z0-9]{2,20}|#[\p{Ll}\p{N}_-]{1,80})$`)

// CheckAddress reports whether a target is a Slack id or the name of a channel.
func (c *Channel) CheckAddress(to string) error {
	if !address.MatchString(to) {
		return fmt.Errorf("%q is neither a Slack id such as C0EMEA, nor a channel name such as #ops", to)
	}
	return nil
}

// The list of channels is read again for an unknown name, but not more often than namesAge, and
// after namesMax, because a channel may be renamed.
const (
	namesAge   = time.Minute
	namesMax   = time.Hour
	namesPage  = 1000
	namesPages = 20
)

// channelID returns the id of a Slack channel by its name.
func (c *Channel) channelID(ctx context.Context, name string) (string, error) {
	c.mu.Lock()
	id, age := c.named[name], c.config.Now().Sub(c.readAt)
	c.mu.Unlock()
	if id != "" && age < namesMax {
		return id, nil
	}
	if id == "" && age < namesAge {
		return "", noSuchName(name)
	}
	all := make(map[string]string)
	query := slack.GetConversationsParameters{ExcludeArchived: true, Limit: namesPage, Types: []string{"public_channel", "private_channel"}}
	for range namesPages {
		type page struct {
			channels []slack.Channel
			next     string
		}
		read, err := call(ctx, c, "conversations.list", "", func() (page, error) {
			list, next, err := c.api.GetConversationsContext(ctx, &query)
			return page{list, next}, err
		})
		if err != nil {
			return "", err
		}
		for _, one := range read.channels {
			all[one.Name] = one.ID
		}
		if query.Cursor = read.next; query.Cursor == "" {
			break
		}
	}
	c.mu.Lock()
	c.named, c.readAt = all, c.config.Now()
	c.mu.Unlock()
	if all[name] == "" {
		return "", noSuchName(name)
	}
	return all[name], nil
}

func noSuchName(name string) error {
	return &channel.Error{Code: "channel_not_found", Permanent: true, Err: fmt.Errorf("slack: no channel #%s; the bot sees private channels only after an invitation", name)}
}

// maxGroup is the number of members of a user group who get direct messages.
const maxGroup = 20

// directMessages returns the channel of the direct messages with a user.
func (c *Channel) directMessages(ctx context.Context, user string) (string, error) {
	c.mu.Lock()
	dm := c.dms[user]
	c.mu.Unlock()
	if dm != "" {
		return dm, nil
	}
	opened, err := call(ctx, c, "conversations.open", "", func() (*slack.Channel, error) {
		ch, _, _, err := c.api.OpenConversationContext(ctx, &slack.OpenConversationParameters{Users: []string{user}, ReturnIM: true})
		return ch, err
	})
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dms[user] = opened.ID
	return opened.ID, nil
}
