package webhook

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/outbound"
)

// SecretOverlap is how long the old secret of a subscription signs after a rotation.
const SecretOverlap = 24 * time.Hour

// typePrefix precedes the names of events in the type of a CloudEvent.
const typePrefix = "fermata."

// TypeTest is the type of the event that tests a subscription.
const TypeTest = "webhook.test"

// types are the types of events, without typePrefix.
var types = []string{
	"request.asked", "request.decided", "request.expired", "request.withdrawn",
	"run.created", "run.waiting", "run.parked", "run.completed", "run.failed", "run.cancelled", "run.superseded",
	"effect.begun", "effect.ended",
}

// Types returns the types of events that a filter can name.
func Types() []string { return slices.Clone(types) }

// Filter selects events. An empty list selects all.
type Filter struct {
	// Types are types of events, such as request.decided, or groups of them, such as request.*.
	Types []string `json:"types,omitempty"`
	// Kinds are kinds of requests. With kinds, only events of requests and effects are selected.
	Kinds []string `json:"kinds,omitempty"`
	// Graphs are ids of graphs, Environments names of environments.
	Graphs       []string `json:"graphs,omitempty"`
	Environments []string `json:"environments,omitempty"`
}

// Check returns an error if a type does not exist.
func (f Filter) Check() error {
	for _, name := range f.Types {
		if !slices.ContainsFunc(types, func(t string) bool { return matches(name, t) }) {
			return fmt.Errorf("webhook: unknown event type %q; use one of %s, or a group such as request.*", name, strings.Join(types, ", "))
		}
	}
	return nil
}

// matches reports whether a name of a filter selects a type.
func matches(name, of string) bool {
	group, isGroup := strings.CutSuffix(name, "*")
	return name == of || isGroup && strings.HasSuffix(group, ".") && strings.HasPrefix(of, group)
}

// SelectsType reports whether events of a type can be selected.
func (f Filter) SelectsType(of string) bool {
	return len(f.Types) == 0 || slices.ContainsFunc(f.Types, func(name string) bool { return matches(name, of) })
}

// Selects reports whether an event is selected.
func (f Filter) Selects(e Event) bool {
	kind := ""
	if e.Data.Request != nil {
		kind = e.Data.Request.Kind
	}
	return f.SelectsType(strings.TrimPrefix(e.Type, typePrefix)) && contains(f.Kinds, kind) && contains(f.Graphs, e.Data.Graph) && contains(f.Environments, e.Data.Environment)
}

func contains(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }

// Subscription is a URL that gets events of one account.
type Subscription struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Filter Filter `json:"filter"`
	// Secrets sign messages, the newest first. There are at most two.
	Secrets   []Secret  `json:"secrets"`
	CreatedBy string    `json:"createdBy"`
	Created   time.Time `json:"created"`
}

// Secret is a signing secret.
type Secret struct {
	Value string `json:"value"`
	// Until is when it stops signing; zero if it is the current secret.
	Until time.Time `json:"until,omitzero"`
}

// Rotate adds a new secret, and returns it. The secret before it signs too for [SecretOverlap].
func (s *Subscription) Rotate(now time.Time) string {
	secret := outbound.NewSecret()
	list := []Secret{{Value: secret}}
	if len(s.Secrets) > 0 {
		list = append(list, Secret{Value: s.Secrets[0].Value, Until: now.Add(SecretOverlap)})
	}
	s.Secrets = list
	return secret
}

// keys returns the keys that sign now.
func (s Subscription) keys(now time.Time) (all [][]byte) {
	for _, secret := range s.Secrets {
		if key, ok := outbound.ParseSecret(secret.Value); ok && (secret.Until.IsZero() || now.Before(secret.Until)) {
			all = append(all, key)
		}
	}
	return all
}
