package audit

import (
	"fmt"
	"strings"
)

// Actor is who did something, and how they were authenticated. Principals are ids, not names or
// addresses of people: they stay in the record.
type Actor struct {
	Principal string    `json:"principal"`
	Kind      ActorKind `json:"kind"`
	// Via is the channel. Auth is the authentication there, Identity the identity there, and Link
	// connects that identity to the principal.
	Via      string `json:"via,omitempty"`
	Auth     string `json:"auth,omitempty"`
	MFA      bool   `json:"mfa,omitempty"`
	Identity string `json:"identity,omitempty"`
	Link     string `json:"link,omitempty"`
}

func (a Actor) valid() error {
	if a.Principal == "" {
		return fmt.Errorf("actor has no principal")
	}
	return nil
}

// ActorKind is the kind of an actor.
type ActorKind string

// The actor kinds.
const (
	ActorPerson ActorKind = "person"
	ActorPolicy ActorKind = "policy"
	ActorClock  ActorKind = "clock"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system" // Fermata itself
)

func (k ActorKind) valid() error {
	return oneOf(k, ActorPerson, ActorPolicy, ActorClock, ActorAgent, ActorSystem)
}

// Location is the run, interrupt and request of a record. It is empty for records that are not
// about a run.
type Location struct {
	Run       string `json:"run,omitempty"`
	StateKey  string `json:"stateKey,omitempty"`
	Graph     string `json:"graph,omitempty"`
	Address   string `json:"address,omitempty"`
	Interrupt string `json:"interrupt,omitempty"`
	Request   string `json:"request,omitempty"`
	// Revision is the revision of the request.
	Revision int64 `json:"revision,omitempty"`
}

// Shown is what a person saw.
type Shown struct {
	// Surface is the channel of the rendering or, if none is known, how the person was
	// authenticated.
	Surface string `json:"surface,omitempty"`
	// Rendered is the digest of what there was to decide, as the client reported it.
	Rendered Digest `json:"rendered,omitzero"`
	// Screen is the digest of the hash of the text on the screen, as the client reported it.
	// Its salt is derived: see [Salt.Derive]. Template is what rendered it, with its version.
	Screen   Digest `json:"screen,omitzero"`
	Template string `json:"template,omitempty"`
	// Visible is how much of it was on the screen, as the client observed it. Clipped is
	// VisiblePart in records of earlier versions.
	Visible Visibility `json:"visible,omitempty"`
	Clipped bool       `json:"clipped,omitempty"`
	// Evidence is not written.
	Evidence []Evidence `json:"evidence,omitempty"`
	// At is when it was opened, or recorded: see [Shown.Opened].
	At Timestamp `json:"at,omitzero"`
}

// Opened reports whether At is when the screen was opened. That is not observed for Slack, e-mail
// and a batch: there, At is when the rendering was recorded, together with the decision.
func (s Shown) Opened() bool {
	return s.Surface != "slack" && s.Surface != "email" && !strings.HasPrefix(s.Template, "web-batch@")
}

// Visibility is how much of a text was on a screen. It is empty if that is unknown.
type Visibility string

// The extents of what was visible.
const (
	VisibleAll  Visibility = "all"  // every line was on the screen, and nothing was folded
	VisiblePart Visibility = "part" // a line was folded, or was not on the screen
)

func (v Visibility) valid() error { return oneOf(v, VisibleAll, VisiblePart, "") }

// Extent returns how much of the text was on the screen, also for records of earlier versions.
func (s Shown) Extent() Visibility {
	if s.Clipped {
		return VisiblePart
	}
	return s.Visible
}

// Evidence was shown with the request, or could be opened from it. It is part of the format, but
// not written.
type Evidence struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Action is the action of a request. Args is the salted digest of the runtime's plain digest of the
// action with its arguments. So the effect ledger can be compared with it without the arguments.
type Action struct {
	Name    string   `json:"name"`
	Args    Digest   `json:"args"`
	Effects []string `json:"effects,omitempty"`
	Cost    string   `json:"cost,omitempty"`
}

// Ruling is the policy in force and its ruling. Its digest has no salt: a policy is not secret, and
// an auditor compares it with the file.
type Ruling struct {
	Digest     string   `json:"digest,omitempty"`
	Version    string   `json:"version,omitempty"`
	Rules      []string `json:"rules,omitempty"`
	Trace      Digest   `json:"trace,omitzero"`
	Grant      string   `json:"grant,omitempty"`
	BreakGlass bool     `json:"breakGlass,omitempty"`
}

// Timing is the timing of a decision. Reading is the time between the first view and the decision.
type Timing struct {
	Created   Timestamp `json:"created,omitzero"`
	Delivered Timestamp `json:"delivered,omitzero"`
	FirstView Timestamp `json:"firstView,omitzero"`
	Decided   Timestamp `json:"decided,omitzero"`
	LatencyMS int64     `json:"latencyMs,omitempty"`
	ReadingMS int64     `json:"readingMs,omitempty"`
	Deadline  Timestamp `json:"deadline,omitzero"`
}

// Click is a message from a channel. Key is the channel's delivery id, Raw the digest of the
// received bytes.
type Click struct {
	Key string `json:"key,omitempty"`
	Raw Digest `json:"raw,omitzero"`
}

// Trace links a record to the runtime's traces.
type Trace struct {
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
}

func oneOf[T ~string](got T, known ...T) error {
	for _, k := range known {
		if got == k {
			return nil
		}
	}
	return fmt.Errorf("%.40q is not one of %q", got, known)
}
