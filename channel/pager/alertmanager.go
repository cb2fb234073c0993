package pager

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/outbound"
	"github.com/fermata-go/fermata/internal/post"
)

// alertLifetime is how long an alert fires unless it is resolved before. A request is open for a
// day by default; its end resolves the alert.
const alertLifetime = 7 * 24 * time.Hour

// AlertmanagerConfig configures an [Alertmanager] channel.
type AlertmanagerConfig struct {
	// URL is the address of Alertmanager, without /api/v2/alerts.
	URL string
	// Token, if set, is sent as bearer token.
	Token string
	// Labels are added to each alert, for Alertmanager's routes.
	Labels map[string]string
	// Allow are hosts that may be called although they are not public; see
	// [outbound.Config].
	Allow []string
}

// Alertmanager pages through Prometheus Alertmanager. Its targets are alertmanager:RECEIVER; the
// name becomes the label receiver.
type Alertmanager struct {
	config AlertmanagerConfig
	client *outbound.Client
	url    string
}

// NewAlertmanager returns a channel.
func NewAlertmanager(config AlertmanagerConfig) (*Alertmanager, error) {
	if config.URL == "" {
		return nil, errors.New("pager: the URL of Alertmanager is missing")
	}
	to := strings.TrimSuffix(config.URL, "/") + "/api/v2/alerts"
	client, err := newClient(to, config.Allow)
	if err != nil {
		return nil, err
	}
	return &Alertmanager{config: config, client: client, url: to}, nil
}

// Kind returns "alertmanager".
func (a *Alertmanager) Kind() string { return "alertmanager" }

// alert is an alert of Alertmanager's API v2. Its labels identify it.
type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	StartsAt     time.Time         `json:"startsAt,omitzero"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// Send fires or resolves an alert.
func (a *Alertmanager) Send(ctx context.Context, m channel.Message) (string, error) {
	one := alert{Labels: make(map[string]string), EndsAt: m.Card.At.UTC().Add(alertLifetime), GeneratorURL: m.Card.Link}
	for name, value := range a.config.Labels {
		one.Labels[name] = value
	}
	one.Labels["alertname"], one.Labels["account"], one.Labels["receiver"] = "FermataRequestWaiting", m.Account, m.To
	one.Labels["incident"] = incidentKey(m)
	if isOver(m) {
		one.EndsAt = m.Card.At.UTC()
	} else {
		one.Annotations = map[string]string{
			"summary": summary(m), "request": m.Card.Request, "severity": severity(m.Severity), "action": cmp.Or(m.Card.Action, m.Card.Kind), "rules": strings.Join(m.Card.Rules, ", "),
		}
		one.StartsAt = m.Card.At.UTC()
	}
	header := make(http.Header)
	if a.config.Token != "" {
		header.Set("Authorization", "Bearer "+a.config.Token)
	}
	return one.Labels["incident"], post.JSON(ctx, a.client, a.url, header, []alert{one})
}

// Test fires an alert of severity info and resolves it at once.
func (a *Alertmanager) Test(ctx context.Context, to string) (channel.TestResult, error) {
	return test(ctx, a, to)
}
