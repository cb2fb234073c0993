package docs

import (
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	// CounterKind is a counter of the policy's limits: what was charged to it, and when. It is
	// written in the transaction of what it is charged for, by its revision: of two actions that
	// together would exceed a limit, one finds the counter changed and is judged again.
	CounterKind store.DocumentKind = "counter"
	// ChargeKind is what one action was charged, and the grant that it has used, so that neither
	// happens twice when it is evaluated again: after a takeover, or because its target has
	// changed. It is deleted with its run.
	ChargeKind store.DocumentKind = "charge"
)

// GrantKind is an approval that is remembered within bounds.
const GrantKind store.DocumentKind = "grant"

// HeartbeatKind is the heartbeat of all processes that let questions expire. It belongs to no
// account. Before anything expires the heartbeat is read, and written if it is old. So a gap in it
// is a time in which no process was running, or which the clock of the store left out; and every
// process that lets a question expire knows of the gap.
const HeartbeatKind store.DocumentKind = "beat"

// JobKind says when a periodic job is due, and its last result. It belongs to no account.
const JobKind store.DocumentKind = "job"

// AgentRateKind counts the requests that an agent created in the last hour. Its id is the agent.
const AgentRateKind store.DocumentKind = "agent-rate"

// WebhookKind is a subscription to events. Its id is that of the subscription.
const WebhookKind store.DocumentKind = "webhook"

// SavedViewsKind has the saved searches of a person. Its id is the person.
const SavedViewsKind store.DocumentKind = "views"

// PasskeysKind has the passkeys of a member, in the form of package server/authn. Its id is that of
// the member.
const PasskeysKind store.DocumentKind = "passkeys"

const (
	// ReceiptKind is what an agent elsewhere says it did after the decision on its request. Its id
	// is the run, with which it is deleted.
	ReceiptKind store.DocumentKind = "receipt"
	// ReceiptSenderKind says since when an agent sends receipts. Its id is the agent.
	ReceiptSenderKind store.DocumentKind = "receipt-sender"
)

// RenderingKind is the text of a rendering: see [RenderingID]. It is deleted with its run.
const RenderingKind store.DocumentKind = "rendering"

// CollectedKind has the answers that wait for the other answers of a run, because its provider
// takes only all of them at once. Its id is the run, with which it is deleted.
const CollectedKind store.DocumentKind = "collected"

// RunMessageKind is a message to a run: a clarification, or that a request was withdrawn.
const RunMessageKind store.DocumentKind = "back"

const (
	// RulingKind is what the rules said of an action, with their whole input, so that other rules
	// can be tried on it: see Replay. It is deleted with its run.
	RulingKind store.DocumentKind = "ruling"
	// PolicyKind is the text of a policy that was applied to actions of the account. Its id is the
	// digest of the policy.
	PolicyKind store.DocumentKind = "policy"
)

// ConversationKinds are the documents of package dialog. They are known here because they are
// erased with their account.
var ConversationKinds = []store.DocumentKind{"conversation", "conversation-entity", "conversation-facts", "conversation-list", "conversation-memory", "conversation-part", "conversation-report"}

// GateKind is the kind of the questions of package gate. They decide on an action, like
// fermata.Approval.
const GateKind = "approval-gate"

// HoldKind is the kind of the holds of package graph.
const HoldKind = "hold"

// How long work on a paper is put off: a paper that cannot be read will hardly be readable soon;
// other errors may pass.
const (
	UnreadableDelay = 5 * time.Minute
	RetryDelay      = 5 * time.Second
)
