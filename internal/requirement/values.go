package requirement

import "slices"

// OnTimeout is what happens when the deadline of a requirement passes without a decision. Waiting
// never approves anything.
type OnTimeout string

// The values of OnTimeout.
const (
	RejectOnTimeout OnTimeout = "reject"
	ExpireOnTimeout OnTimeout = "expire"
	// the rest of the route fires now, and the route's own deadline applies
	EscalateOnTimeout OnTimeout = "escalate"
	// the answer that the question declares for this case; never for actions
	DefaultOnTimeout OnTimeout = "default"
)

// OnTimeouts lists the values, strictest first.
var OnTimeouts = []OnTimeout{RejectOnTimeout, ExpireOnTimeout, EscalateOnTimeout, DefaultOnTimeout}

// leniency orders the values. "" and an unknown value count as to expire.
func (o OnTimeout) leniency() int {
	if i := slices.Index(OnTimeouts, o); i >= 0 {
		return i
	}
	return ExpireOnTimeout.leniency()
}

// OnEscalate is what happens if a person escalates a request.
type OnEscalate string

// The values of OnEscalate.
const (
	EscalateToNextStep OnEscalate = "next_step"
	// the request closes, and the run receives the reason: neither an approval nor a rejection
	EscalateReturns OnEscalate = "return"
)

// Duty is a role that a person already has in a request.
type Duty string

// The duties that separation of duties can exclude.
const (
	DutyRequester Duty = "requester" // on whose behalf the run asks
	// a person whose input shaped the action; the requester too, because a run begins with the
	// requester's input
	DutyAuthor Duty = "author"
	// changed the arguments last; cannot approve, but can reject
	DutyLastEditor Duty = "last_editor"
	// approved an earlier action of the same run
	DutyPriorApprover Duty = "prior_approver"
)

// Duties lists the duties.
var Duties = []Duty{DutyRequester, DutyAuthor, DutyLastEditor, DutyPriorApprover}

// Auth is the strength of an authentication.
type Auth string

// The strengths of authentication, weakest first.
const (
	AuthNone     Auth = ""
	AuthLinked   Auth = "slack_linked" // a chat account that is linked to the person
	AuthToken    Auth = "token"        // an API key
	AuthSSO      Auth = "sso"
	AuthMFA      Auth = "sso_mfa"
	AuthHardware Auth = "hardware" // a key that signs what was shown
)

// AuthLevels lists the strengths, weakest first. The first is none.
var AuthLevels = []Auth{AuthNone, AuthLinked, AuthToken, AuthSSO, AuthMFA, AuthHardware}

// AtLeast reports whether a is as strong as least. An unknown strength counts as the weakest, and
// nothing satisfies it as a minimum.
func (a Auth) AtLeast(least Auth) bool {
	return least == AuthNone || slices.Index(AuthLevels, a) >= least.requiredLevel()
}

// requiredLevel orders minimums. An unknown strength is above all others.
func (a Auth) requiredLevel() int {
	if level := slices.Index(AuthLevels, a); level >= 0 {
		return level
	}
	return len(AuthLevels)
}

// Verb is something that people do with a request.
type Verb string

// The verbs. A requirement lists the allowed ones.
const (
	VerbApprove          Verb = "approve"
	VerbEdit             Verb = "edit" // approve with edited arguments
	VerbReject           Verb = "reject"
	VerbRespond          Verb = "respond"
	VerbAskClarification Verb = "ask"
	VerbClaim            Verb = "claim"
	VerbDelegate         Verb = "delegate"
	VerbSnooze           Verb = "snooze"
	VerbExtend           Verb = "extend"
	VerbEscalate         Verb = "escalate"
	VerbAbandon          Verb = "abandon"
)

// The default verbs of a request about an action, of a gate or a hold, and of a question. To answer
// a hold is to continue with an edited state.
var (
	ActionVerbs   = []Verb{VerbApprove, VerbEdit, VerbReject, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
	GateVerbs     = []Verb{VerbApprove, VerbReject, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
	HoldVerbs     = []Verb{VerbApprove, VerbRespond, VerbReject, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
	QuestionVerbs = []Verb{VerbRespond, VerbAskClarification, VerbClaim, VerbDelegate, VerbSnooze, VerbExtend, VerbEscalate, VerbAbandon}
)

// actionVerbs returns the allowed verbs of a request about an action.
func (r *Requirement) actionVerbs() []Verb {
	if len(r.Verbs) == 0 {
		return ActionVerbs
	}
	return r.Verbs
}
