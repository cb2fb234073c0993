// Package requests creates requests for interrupts, applies what people do with them, and withdraws
// them.
package requests

import (
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/govern"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says how people decide.
type Config struct {
	Directory desk.Directory
	Routes    func() map[string]desk.Route
	// DefaultPage are the targets that the default route pages.
	DefaultPage []string
	Policy      bool // there is a policy
	Notify      bool // notices are sent
	// RequestTimeout is how long a request may be open; negative means no limit.
	RequestTimeout time.Duration
	Poll           time.Duration
	Log            *slog.Logger
}

// Service creates, changes and withdraws requests.
type Service struct {
	config     Config
	store      *encrypted.Store
	docs       *docs.Docs
	governor   *govern.Governor
	providers  *providers.Set
	background *background.Group
}

// New returns a service.
func New(config Config, store *encrypted.Store, docs *docs.Docs, governor *govern.Governor, providers *providers.Set, background *background.Group) *Service {
	return &Service{config: config, store: store, docs: docs, governor: governor, providers: providers, background: background}
}
