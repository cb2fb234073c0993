package audit

// Events of a request.
type (
	// RequestAsked records a new request.
	RequestAsked struct {
		Kind     string       `json:"kind"`
		Action   Action       `json:"action,omitzero"`
		Question Digest       `json:"question,omitzero"`
		Need     []GroupCount `json:"need,omitempty"`
		Ruling   Ruling       `json:"ruling,omitzero"`
		Route    string       `json:"route,omitempty"`
		Deadline Timestamp    `json:"deadline,omitzero"`
	}

	// RequestDelivered records the delivery of a request to a target for the first time, or a
	// notice that could not be delivered. Copy, Rendered and Clipped are not written.
	RequestDelivered struct {
		Surface  string        `json:"surface"`
		Copy     string        `json:"copy"`
		State    DeliveryState `json:"state"`
		Attempt  int           `json:"attempt,omitempty"`
		Error    string        `json:"error,omitempty"` // a code
		Rendered Digest        `json:"rendered,omitzero"`
		Clipped  bool          `json:"clipped,omitempty"`
	}

	// RequestViewed records that a person opened a request.
	RequestViewed struct {
		Shown Shown `json:"shown"`
	}

	// RequestRevealed records that a person saw masked values: Fields are their JSON pointers.
	RequestRevealed struct {
		Fields []string `json:"fields"`
	}

	// RequestRendered records what was put on a person's screen.
	RequestRendered struct {
		Shown Shown `json:"shown"`
	}

	// RequestClaimed records a claim.
	RequestClaimed struct {
		Until Timestamp `json:"until,omitzero"`
	}

	// RequestReleased records the release of a claim.
	RequestReleased struct {
		Why string `json:"why,omitempty"` // a code
	}

	// RequestEscalated records an escalation, by a person or by the route.
	RequestEscalated struct {
		To     []string `json:"to"`
		Step   string   `json:"step,omitempty"`
		Reason Digest   `json:"reason,omitzero"`
	}

	// RequestDelegated records a delegation to another person.
	RequestDelegated struct {
		To     string `json:"to"`
		Reason Digest `json:"reason,omitzero"`
	}

	// RequestSnoozed records a snooze.
	RequestSnoozed struct {
		Until Timestamp `json:"until"`
	}

	// RequestChanged records a change that has no kind of its own: a moved deadline, a route step
	// that fired ("step"), was skipped ("step_skipped") or was made redundant by a later one
	// ("step_missed"), or an edit that needs more people.
	RequestChanged struct {
		What     string    `json:"what"` // a code
		Deadline Timestamp `json:"deadline,omitzero"`
	}

	// RequestCommented records a comment.
	RequestCommented struct {
		Text Digest `json:"text"`
	}

	// RequestDecided records a vote on a request, with its context.
	RequestDecided struct {
		Verb Verb `json:"verb"`
		// Settles reports that this vote closed the request. With a quorum, earlier votes do not.
		Settles bool `json:"settles"`
		// Action is the proposed action. Edited is the digest of the action with edited
		// arguments, if they were edited. Approved is one of the two, if this vote approved the
		// action. Records of earlier versions have no Approved: there, Action is what the vote
		// was for.
		Action   Action `json:"action,omitzero"`
		Edited   Digest `json:"edited,omitzero"`
		Approved Digest `json:"approved,omitzero"`
		// Codes are the machine-readable reasons for a rejection or an edit.
		Codes []string `json:"codes,omitempty"`
		// Conditions are those of this vote. ApprovedConditions are those of all votes together,
		// if this vote approved the action.
		Conditions         Conditions `json:"conditions,omitzero"`
		ApprovedConditions Conditions `json:"approvedConditions,omitzero"`

		Answer Digest `json:"answer,omitzero"`
		Reason Digest `json:"reason,omitzero"`
		Shown  Shown  `json:"shown"`
		// Groups are the groups for which the vote counts. The actor was a member at that time.
		Groups   []string `json:"groups,omitempty"`
		Quorum   Quorum   `json:"quorum,omitzero"`
		Ruling   Ruling   `json:"ruling,omitzero"`
		Timing   Timing   `json:"timing,omitzero"`
		Click    Click    `json:"click,omitzero"`
		ResumeID string   `json:"resumeId,omitempty"`
		Trace    Trace    `json:"trace,omitzero"`
	}

	// RequestRefused records a refused vote or other command, and the reason.
	RequestRefused struct {
		Verb Verb `json:"verb,omitempty"`
		// Act is the command, if it was not a vote: claim, delegate, remember …
		Act      string  `json:"act,omitempty"`
		Why      Refusal `json:"why"`
		Shown    Shown   `json:"shown,omitzero"`
		Ruling   Ruling  `json:"ruling,omitzero"`
		Click    Click   `json:"click,omitzero"`
		ResumeID string  `json:"resumeId,omitempty"`
		Trace    Trace   `json:"trace,omitzero"`
	}

	// RequestExpired records that a request was not decided in time. It is not a rejection.
	RequestExpired struct {
		Deadline Timestamp `json:"deadline"`
		Why      string    `json:"why,omitempty"` // a code
		// Then is what a rule does at the deadline: reject, or default for the default answer.
		Then   string `json:"then,omitempty"`
		Answer Digest `json:"answer,omitzero"` // the default answer
		Timing Timing `json:"timing,omitzero"`
	}

	// RequestWithdrawn records that a run no longer asks.
	RequestWithdrawn struct {
		Why string `json:"why,omitempty"` // a code
	}
)

// Policy and grant events.
type (
	// PolicyLoaded records the first use of a policy version in this log.
	PolicyLoaded struct {
		Ruling   Ruling `json:"ruling"`
		Previous string `json:"previous,omitempty"` // the digest
		Rules    int    `json:"rules"`
	}

	// PolicyDenied records that the rules denied an action, without a request.
	PolicyDenied struct {
		Action Action `json:"action"`
		Ruling Ruling `json:"ruling"`
	}

	// PolicyAllowed records that the rules answered an interrupt, without a request. Kind is the
	// kind of the interrupt; Action is empty if it is not about an action.
	PolicyAllowed struct {
		Kind     string `json:"kind"`
		Action   Action `json:"action,omitzero"`
		Question Digest `json:"question"`
		Ruling   Ruling `json:"ruling"`
	}

	// GrantMade records a new grant.
	GrantMade struct {
		Grant string    `json:"grant"`
		Scope Digest    `json:"scope"`
		Rule  string    `json:"rule,omitempty"`
		Until Timestamp `json:"until"`
		Uses  int64     `json:"uses,omitempty"` // 0 means no limit
	}

	// GrantUsed records that a grant replaced an approval.
	GrantUsed struct {
		Grant  string `json:"grant"`
		Action Action `json:"action"`
		Ruling Ruling `json:"ruling,omitzero"`
	}

	// GrantRevoked records that a grant was revoked.
	GrantRevoked struct {
		Grant string `json:"grant"`
		Why   string `json:"why,omitempty"` // a code
	}
)

// Authentication events. The via of an actor contains the id of the key or session. An id alone
// does not give access.
type (
	// APIKeyMade records a new API key.
	APIKeyMade struct {
		Key   string    `json:"key"`
		Name  string    `json:"name"`
		Role  string    `json:"role"`
		Until Timestamp `json:"until,omitzero"` // zero means no expiry
	}

	// APIKeyRevoked records that a key was revoked.
	APIKeyRevoked struct {
		Key string `json:"key"`
	}

	// SessionBegun records that a person signed in.
	SessionBegun struct {
		Session string    `json:"session"`
		Roles   []string  `json:"roles"`
		Until   Timestamp `json:"until"`
	}

	// SessionEnded records that a session ended early: the person signed out, or another person
	// ended it.
	SessionEnded struct {
		Session string `json:"session"`
	}

	// ChannelLinked records that an account of a channel was linked to the actor, or that its link
	// was renewed. Link is the id of the link, which does not contain the address.
	ChannelLinked struct {
		Link    string    `json:"link"`
		Channel string    `json:"channel"` // the kind
		Roles   []string  `json:"roles,omitempty"`
		Until   Timestamp `json:"until"`
	}

	// ChannelUnlinked records that a link ended early. Principal is the person that it belonged to:
	// the actor, or a member whom the actor removed.
	ChannelUnlinked struct {
		Link      string `json:"link"`
		Channel   string `json:"channel"` // the kind
		Principal string `json:"principal"`
	}
)

// Events of people.
type (
	// NotificationsChanged records that a person changed how they are notified: What is settings,
	// address_added or address_removed.
	NotificationsChanged struct {
		What    string `json:"what"`
		Channel string `json:"channel,omitempty"` // of an address
		// Person is whose addresses were removed, if another actor did it.
		Person string `json:"person,omitempty"`
		// AwayFrom to AwayUntil is the absence, with its delegate.
		AwayFrom  Timestamp `json:"awayFrom,omitzero"`
		AwayUntil Timestamp `json:"awayUntil,omitzero"`
		Delegate  string    `json:"delegate,omitempty"`
		// Quiet reports that there are quiet hours.
		Quiet bool `json:"quiet,omitempty"`
	}
)

// WebhookChanged records that an admin changed a subscription to events: What is created, changed,
// secret_rotated or removed. Host is where events go; the rest of the URL may be a secret.
type WebhookChanged struct {
	Webhook string `json:"webhook"`
	What    string `json:"what"`
	Host    string `json:"host,omitempty"`
}

// Effect and run events.
type (
	// EffectBegun is the intent. It is written before the external call.
	EffectBegun struct {
		Number int    `json:"number"`
		Action Action `json:"action"`
		Key    string `json:"key"`
		// Repeatable reports that the target ignores a second call with the same key.
		Repeatable bool  `json:"repeatable,omitempty"`
		Fence      int64 `json:"fence,omitempty"`
		// if a policy or a grant allowed it without a request
		Ruling Ruling `json:"ruling,omitzero"`
		Trace  Trace  `json:"trace,omitzero"`
	}

	// EffectEnded is the receipt. Records of earlier versions have no Action.
	EffectEnded struct {
		Number  int         `json:"number"`
		Action  Action      `json:"action,omitzero"`
		State   EffectState `json:"state"`
		Receipt Digest      `json:"receipt,omitzero"`
		Error   Digest      `json:"error,omitzero"`
		Trace   Trace       `json:"trace,omitzero"`
	}

	// AgentReceipt is what an agent elsewhere says it did after a decision. Ran is the digest of
	// the action and the arguments.
	AgentReceipt struct {
		Outcome ReceiptOutcome `json:"outcome"`
		Ran     Digest         `json:"ran"`
		Result  Digest         `json:"result,omitzero"`
	}

	// RunStarted records the start of a run.
	RunStarted struct {
		Provider   string `json:"provider"`
		Generation int    `json:"generation,omitempty"`
		Input      Digest `json:"input,omitzero"`
		// Adopted reports that another client had started the work, and that the run continues it.
		Adopted bool `json:"adopted,omitempty"`
	}

	// RunEnded records the end of a run and its status.
	RunEnded struct {
		Status  string `json:"status"`
		Outcome Digest `json:"outcome,omitzero"`
	}

	// RunParked records that a run is parked until an operator acts.
	RunParked struct {
		Attempts int `json:"attempts"`
	}

	// RunRetried records that an operator retried a parked or failed run.
	RunRetried struct {
		Attempts int `json:"attempts"` // the number of attempts before
	}
)

// Events of the audit log itself.
type (
	// LogExported records an export.
	LogExported struct {
		Format string `json:"format"`
		From   int64  `json:"from"`
		To     int64  `json:"to"`
		SHA256 string `json:"sha256,omitempty"` // of the file
	}

	// PayloadsErased records that payloads were erased, with their salts.
	PayloadsErased struct {
		Payloads []string `json:"payloads"`
		// the reason: the id of a request or of a rule, not a person's name
		Order string `json:"order,omitempty"`
	}

	// LogVerified records a verification of the log.
	LogVerified struct {
		From    int64  `json:"from"`
		To      int64  `json:"to"`
		Signed  int64  `json:"signed"`
		Problem string `json:"problem,omitempty"` // a Fault
		At      int64  `json:"at,omitempty"`
	}

	// LogSigned records a signed checkpoint.
	LogSigned struct {
		Verifier string `json:"verifier"`
		Size     int64  `json:"size"`
		Root     Hash   `json:"root"`
	}
)

// GroupCount is the number of people of a group that must agree.
type GroupCount struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// Quorum is the progress of a request: what it needs, and whose approvals count.
type Quorum struct {
	Need []GroupCount `json:"need,omitempty"`
	Have []string     `json:"have,omitempty"`
}

// DeliveryState is the state of a copy of a request.
type DeliveryState string

// The states of a copy.
const (
	DeliveryPosted  DeliveryState = "posted"
	DeliveryUpdated DeliveryState = "updated"
	DeliveryFailed  DeliveryState = "failed"
)

func (s DeliveryState) valid() error {
	return oneOf(s, DeliveryPosted, DeliveryUpdated, DeliveryFailed)
}

// ReceiptOutcome is what an agent says about an action.
type ReceiptOutcome string

// The outcomes of an action. After ReceiptFailed it may have had an effect, after ReceiptNotDone it
// was not begun.
const (
	ReceiptDone    ReceiptOutcome = "done"
	ReceiptFailed  ReceiptOutcome = "failed"
	ReceiptNotDone ReceiptOutcome = "not_done"
)

func (o ReceiptOutcome) valid() error { return oneOf(o, ReceiptDone, ReceiptFailed, ReceiptNotDone) }

// Verb is a vote or a similar answer to a request.
type Verb string

// The verbs. Only the two approvals let an action run.
const (
	VerbApprove          Verb = "approve"
	VerbApproveWithEdits Verb = "approve_with_edits"
	VerbReject           Verb = "reject"
	VerbReturn           Verb = "return" // for redesign
	VerbRespond          Verb = "respond"
	VerbAskClarification Verb = "ask_back"
	VerbAbandon          Verb = "abandon"
)

func (v Verb) valid() error {
	return oneOf(v, VerbApprove, VerbApproveWithEdits, VerbReject, VerbReturn, VerbRespond, VerbAskClarification, VerbAbandon, "")
}

// Approves reports whether the verb lets an action run.
func (v Verb) Approves() bool { return v == VerbApprove || v == VerbApproveWithEdits }

// Conditions limit an approval.
type Conditions struct {
	Until  Timestamp `json:"until,omitzero"`
	OnlyIf Digest    `json:"onlyIf,omitzero"` // of the CEL expression
}

// Refusal is the reason for a refused vote or command.
type Refusal string

// The reasons.
const (
	RefusedAlreadyDecided Refusal = "already_decided"
	RefusedExpired        Refusal = "expired"
	RefusedSuperseded     Refusal = "superseded"
	RefusedDigestMismatch Refusal = "digest_mismatch" // does not match the current request
	RefusedNotFound       Refusal = "not_found"
	RefusedNotAllowed     Refusal = "not_allowed" // not in an approver group
	RefusedOwnRequest     Refusal = "own_request" // separation of duties
	RefusedWeakAuth       Refusal = "weak_auth"   // the policy requires stronger authentication
	RefusedNotLinked      Refusal = "not_linked"  // the account is not linked to a person
	RefusedBadAnswer      Refusal = "bad_answer"  // does not match the kind
	RefusedBadSignature   Refusal = "bad_signature"
	RefusedReplayed       Refusal = "replayed"
	RefusedResumeReused   Refusal = "resume_id_reused"
	RefusedVerbNotAllowed Refusal = "verb_not_allowed"
	RefusedAlreadyVoted   Refusal = "already_voted"
	RefusedByPolicy       Refusal = "policy"
	RefusedNoRole         Refusal = "no_role" // no role for this operation
	// the answer names another person or group than the caller
	RefusedIdentity Refusal = "identity_mismatch"
	// the conditions of an approval are invalid or do not hold
	RefusedConditions Refusal = "invalid_conditions"
	// not possible now, for example claimed by another person or past the cap
	RefusedNotPossible Refusal = "not_possible"
)

func (r Refusal) valid() error {
	return oneOf(r, RefusedAlreadyDecided, RefusedExpired, RefusedSuperseded, RefusedDigestMismatch, RefusedNotFound, RefusedNotAllowed, RefusedOwnRequest, RefusedWeakAuth, RefusedNotLinked, RefusedBadAnswer,
		RefusedBadSignature, RefusedReplayed, RefusedResumeReused, RefusedVerbNotAllowed, RefusedAlreadyVoted, RefusedByPolicy, RefusedNoRole, RefusedIdentity, RefusedConditions, RefusedNotPossible)
}

// EffectState is the state of an effect.
type EffectState string

// The states of an effect. EffectStateBegun is the state of a ledger entry without an end.
const (
	EffectStateBegun     EffectState = "started"
	EffectStateSucceeded EffectState = "succeeded"
	EffectStateFailed    EffectState = "failed"
)

func (s EffectState) valid() error { return oneOf(s, EffectStateSucceeded, EffectStateFailed) }
