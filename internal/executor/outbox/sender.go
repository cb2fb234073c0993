// Package outbox delivers notices to people and messages to runs.
package outbox

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/executor/stats"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says how notices are sent.
type Config struct {
	// Channels deliver notices to people.
	Channels []channel.Channel
	// Directory lists the people of targets, if it is a desk.Lister.
	Directory desk.Directory
	// Environment and BaseURL are shown in messages.
	Environment, BaseURL string
	Poll                 time.Duration
	Log                  *slog.Logger
}

// Sender delivers notices to people.
type Sender struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	requests   *requests.Service
	background *background.Group
	stats      *stats.Counter
	channels   map[string]channel.Channel // by kind
	inbox      desk.Channels              // what people find without a channel
	accepted   chan struct{}              // signals a new message of a person
	outages    outages
}

// New returns a sender.
func New(config Config, store *encrypted.Store, docs *docs.Docs, requests *requests.Service, background *background.Group, stats *stats.Counter) *Sender {
	o := &Sender{config: config, store: store, docs: docs, requests: requests, background: background, stats: stats, channels: make(map[string]channel.Channel), accepted: make(chan struct{}, 1)}
	for _, c := range config.Channels {
		o.channels[c.Kind()] = c
	}
	stats.NoteChannels(slices.Collect(maps.Keys(o.channels)))
	return o
}
