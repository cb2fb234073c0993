// Package slackfake is a Slack workspace on a loopback address, for tests and for the demo.
//
//	slack, err := slackfake.Start(slackfake.Config{})
//	defer slack.Close()
//	ops := slack.AddChannel(slackfake.Channel{Name: "ops", Private: true})
//	alice := slack.AddUser("alice")
//	slack.Join(ops, alice, slack.BotUser())
//	// the app posts with slack.APIURL() and slack.BotToken()
//	delivery, err := slack.Click(ctx, alice, ops, ts, "approve")
//
// It is strict: it rejects what Slack rejects, with Slack's codes. It checks tokens, scopes,
// membership, the limits of blocks and views, trigger ids and rate limits. Where Slack only warns
// (a message with blocks and without a text), the fake rejects the call. It signs what it sends to
// the app. Tests can take it down, lose a response after a call took effect, and send forged, old
// or repeated requests. Its pages show the channels, and their buttons work.
package slackfake

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config configures a workspace. The zero value works.
type Config struct {
	// Addr is the listen address; 127.0.0.1:0 by default.
	Addr string
	// Now is the clock of time stamps, signatures, triggers and rate limits; time.Now by default.
	Now func() time.Time
	// Scopes are the scopes of the bot token; AllScopes by default.
	Scopes []string
	// Rates replace the rate limits of methods; see [DefaultRates]. A rate of zero is unlimited.
	Rates map[string]Rate
	// Tour is the text at the top of the pages.
	Tour string
}

// AllScopes are the scopes of a bot that the fake knows.
func AllScopes() []string {
	return []string{
		"channels:history", "channels:read", "chat:write", "commands", "groups:history", "groups:read",
		"im:history", "im:read", "im:write", "usergroups:read", "users:read",
	}
}

// User is a person or a bot.
type User struct {
	ID, Name string
	// Team is the workspace of the user. In a shared channel it differs from that of the app.
	Team string
	Bot  bool
}

// Channel is a channel or a direct message.
type Channel struct {
	ID, Name string
	Private  bool
	// Shared says that the channel is shared with another workspace (Slack Connect).
	Shared   bool
	Archived bool
	// User is the other person of a direct message.
	User string
}

// Message is a message in a channel.
type Message struct {
	Channel, TS, User, Text string
	Blocks                  json.RawMessage
	Metadata                json.RawMessage
	ThreadTS                string
	// To is the only person who sees an ephemeral message.
	To     string
	Edited bool
	At     time.Time
}

// Call is a call of the Web API, or a use of a response URL.
type Call struct {
	Method  string
	Channel string
	// Args are the arguments, without the token.
	Args map[string]string
	// Code is the error code of the response; "" if it succeeded, lost if the response was lost.
	Code string
	At   time.Time
}

// Slack is a workspace. It is safe for concurrent use.
type Slack struct {
	config Config
	http   *http.Server
	url    string

	mu         sync.Mutex
	team       string
	bot        User
	botToken   string
	appToken   string
	secret     string
	appID      string
	users      map[string]User
	channels   map[string]*channel
	userGroups map[string][]string
	triggers   map[string]*trigger
	responses  map[string]*responseURL
	views      map[string]*View
	calls      []Call
	failures   map[string][]Failure
	buckets    map[string]*bucket
	sockets    []*socket
	tickets    map[string]bool
	down       bool
	lastTS     int64
	ids        int
	clicks     string // the app's interactivity URL
	commands   string // the app's slash command URL
	waiting    map[string]chan json.RawMessage
}

type channel struct {
	Channel
	members  []string
	messages []*Message
}

// Start opens a workspace with a bot that has been added to no channel.
func Start(config Config) (*Slack, error) {
	config.Addr = cmp.Or(config.Addr, "127.0.0.1:0")
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Scopes == nil {
		config.Scopes = AllScopes()
	}
	listener, err := net.Listen("tcp", config.Addr)
	if err != nil {
		return nil, fmt.Errorf("slackfake: %w", err)
	}
	s := &Slack{
		config: config, url: "http://" + listener.Addr().String(),
		team: "T" + randomID(8), appID: "A" + randomID(8),
		botToken: "xoxb-" + randomID(24), appToken: "xapp-" + randomID(24), secret: strings.ToLower(randomID(26)),
		users: make(map[string]User), channels: make(map[string]*channel), userGroups: make(map[string][]string),
		triggers: make(map[string]*trigger), responses: make(map[string]*responseURL), views: make(map[string]*View),
		failures: make(map[string][]Failure), buckets: make(map[string]*bucket), tickets: make(map[string]bool),
		waiting: make(map[string]chan json.RawMessage),
	}
	s.bot = User{ID: s.newID("U"), Name: "fermata", Team: s.team, Bot: true}
	s.users[s.bot.ID] = s.bot
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// Close ends the server and its connections.
func (s *Slack) Close() error {
	s.dropSockets()
	if err := s.http.Close(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// handler serves the Web API, response URLs, sockets and pages.
func (s *Slack) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/{method}", s.serveMethod)
	mux.HandleFunc("POST /response/{token}", s.serveResponseURL)
	mux.HandleFunc("GET /link", s.serveSocket)
	s.addPages(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.isDown() && !strings.HasPrefix(r.URL.Path, "/client") && r.URL.Path != "/" {
			panic(http.ErrAbortHandler)
		}
		mux.ServeHTTP(w, r)
	})
}

// URL returns the address of the pages.
func (s *Slack) URL() string { return s.url }

// APIURL returns the base URL of the Web API, with a slash at the end.
func (s *Slack) APIURL() string { return s.url + "/api/" }

// BotToken returns the token of the bot.
func (s *Slack) BotToken() string { return s.botToken }

// AppToken returns the token for Socket Mode.
func (s *Slack) AppToken() string { return s.appToken }

// SigningSecret returns the secret that signs requests to the app.
func (s *Slack) SigningSecret() string { return s.secret }

// Team returns the id of the workspace.
func (s *Slack) Team() string { return s.team }

// BotUser returns the user id of the bot.
func (s *Slack) BotUser() string { return s.bot.ID }

// SetApp sets the URLs of the app for interactivity and for slash commands. Without them, and
// without a socket, a click is an error for the person.
func (s *Slack) SetApp(interactivity, commands string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clicks, s.commands = interactivity, commands
}

// SetDown makes the workspace unreachable for the app, or reachable again.
func (s *Slack) SetDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.dropSockets()
	}
}

func (s *Slack) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

// AddUser adds a person to the workspace and returns their id.
func (s *Slack) AddUser(name string) string { return s.AddForeignUser(name, s.team) }

// AddForeignUser adds a person of another workspace, for shared channels.
func (s *Slack) AddForeignUser(name, team string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	user := User{ID: s.newID("U"), Name: name, Team: team}
	s.users[user.ID] = user
	return user.ID
}

// AddChannel adds a channel and returns its id.
func (s *Slack) AddChannel(c Channel) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.ID == "" {
		c.ID = s.newID("C")
	}
	s.channels[c.ID] = &channel{Channel: c}
	return c.ID
}

// SetChannel changes a channel, for example to an archived one.
func (s *Slack) SetChannel(id string, change func(c *Channel)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.channels[id].Channel)
}

// Join adds users to a channel.
func (s *Slack) Join(id string, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	for _, user := range users {
		if !slices.Contains(c.members, user) {
			c.members = append(c.members, user)
		}
	}
}

// Leave removes a user from a channel.
func (s *Slack) Leave(id, user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	c.members = slices.DeleteFunc(c.members, func(member string) bool { return member == user })
}

// SetUserGroup sets the members of a user group.
func (s *Slack) SetUserGroup(id string, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.userGroups[id] = slices.Clone(users)
}

// Messages returns the messages of a channel without ephemeral ones, oldest first, with replies.
func (s *Slack) Messages(id string) (all []Message) {
	return s.messages(id, func(m *Message) bool { return m.To == "" })
}

// Ephemerals returns the ephemeral messages for a user in a channel, oldest first.
func (s *Slack) Ephemerals(id, user string) (all []Message) {
	return s.messages(id, func(m *Message) bool { return m.To == user })
}

func (s *Slack) messages(id string, wanted func(*Message) bool) (all []Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.channels[id]
	if c == nil {
		return nil
	}
	for _, m := range c.messages {
		if wanted(m) {
			all = append(all, *m)
		}
	}
	return all
}

// DirectMessages returns the channel of the bot's direct messages with a user; "" if there is none.
func (s *Slack) DirectMessages(user string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.directMessages(user)
}

func (s *Slack) directMessages(user string) string {
	for id, c := range s.channels {
		if c.User == user {
			return id
		}
	}
	return ""
}

// Calls returns the calls so far; of all methods, or of one.
func (s *Slack) Calls(method string) (all []Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls {
		if method == "" || call.Method == method {
			all = append(all, call)
		}
	}
	return all
}

// newID returns an id that is unique in the workspace.
func (s *Slack) newID(prefix string) string {
	s.ids++
	return fmt.Sprintf("%s0%s%03d", prefix, randomID(5), s.ids)
}

// newTS returns a time stamp that identifies a message in its channel.
func (s *Slack) newTS() string {
	s.lastTS = max(s.lastTS+1, s.config.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

func randomID(n int) string { return rand.Text()[:min(n, 26)] }
