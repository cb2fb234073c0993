// Package admin maintains what is stored: retention, erasure, export, audit jobs, reconciliation,
// and checks before an upgrade.
package admin

import (
	"log/slog"
	"time"

	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/periodic"
	"github.com/fermata-go/fermata/internal/executor/providers"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/store/encrypted"
)

// Config says how long runs are kept and how the audit logs are maintained.
type Config struct {
	Retention time.Duration
	Audit     AuditConfig
	Poll      time.Duration
	Log       *slog.Logger
}

// Admin maintains what is stored.
type Admin struct {
	config         Config
	store          *encrypted.Store
	docs           *docs.Docs
	requests       *requests.Service
	providers      *providers.Set
	periodic       *periodic.Runner
	background     *background.Group
	loggedFindings findingLog // findings of audit checks that were logged already
}

// New returns an admin.
func New(config Config, store *encrypted.Store, docs *docs.Docs, requests *requests.Service, providers *providers.Set, periodic *periodic.Runner, background *background.Group) *Admin {
	return &Admin{config: config, store: store, docs: docs, requests: requests, providers: providers, periodic: periodic, background: background}
}
