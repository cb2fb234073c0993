package api

import "time"

// SaveWebhook is a subscription to events. Empty lists select all.
type SaveWebhook struct {
	URL          string   `json:"url" minLength:"1" maxLength:"2048" doc:"Where events are sent. It must be https and public, unless the server allows the host."`
	Types        []string `json:"types,omitempty" maxItems:"50" doc:"Event types, such as request.decided, or groups such as request.*."`
	Kinds        []string `json:"kinds,omitempty" maxItems:"50" doc:"Kinds of requests. With kinds, events of runs are not sent."`
	Graphs       []string `json:"graphs,omitempty" maxItems:"50" doc:"Ids of graphs."`
	Environments []string `json:"environments,omitempty" maxItems:"50" doc:"Names of environments."`
}

// Webhook is a subscription to events.
type Webhook struct {
	SaveWebhook
	ID        string     `json:"id"`
	CreatedBy string     `json:"createdBy"`
	CreatedAt time.Time  `json:"createdAt"`
	Secrets   int        `json:"secrets" doc:"The number of secrets that sign: 2 for a day after a rotation."`
	SentAt    *time.Time `json:"sentAt,omitempty" doc:"When the last message was accepted."`
	Failures  int        `json:"failures" doc:"Failed attempts since then."`
	Code      string     `json:"code,omitempty" doc:"Why the last attempt failed."`
	FailingAt *time.Time `json:"failingAt,omitempty" doc:"When the first of these attempts failed."`
	NextAt    *time.Time `json:"nextAt,omitempty" doc:"When the next attempt is made."`
	Disabled  string     `json:"disabled,omitempty" doc:"Why no more events are sent. Saving the webhook again enables it."`
}

// WebhookSecret is a webhook with its new secret. The secret is shown once.
type WebhookSecret struct {
	Webhook Webhook `json:"webhook"`
	Secret  string  `json:"secret" doc:"Verifies the signatures of messages, as the Standard Webhooks specification describes."`
}

// WebhookTest is the result of a test event.
type WebhookTest struct {
	Accepted bool   `json:"accepted"`
	Code     string `json:"code,omitempty" doc:"Why it was not accepted."`
}
