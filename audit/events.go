package audit

// The life of a request.
type (
	// RequestAsked says that a question became visible.
	RequestAsked struct {
		Kind     string       `json:"kind"`
		Action   Action       `json:"action,omitzero"`
		Question Digest       `json:"question,omitzero"`
		Need     []GroupCount `json:"need,omitempty"`
		Ruling   Ruling       `json:"ruling,omitzero"`
		Route    string       `json:"route,omitempty"`
		Deadline Timestamp    `json:"deadline,omitzero"`
	}

	// RequestDelivered says what became of one copy of a request on a channel.
	RequestDelivered struct {
		Surface  string        `json:"surface"`
		Copy     string        `json:"copy"`
		State    DeliveryState `json:"state"`
		Attempt  int           `json:"attempt,omitempty"`
		Error    string        `json:"error,omitempty"` // a code
		Rendered Digest        `json:"rendered,omitzero"`
		Clipped  bool          `json:"clipped,omitempty"`
	}

	// RequestViewed says that somebody opened a request.
	RequestViewed struct {
		Shown Shown `json:"shown"`
	}

	// RequestClaimed says that somebody works on a request.
	RequestClaimed struct {
		Until Timestamp `json:"until,omitzero"`
	}

	// RequestReleased says that whoever claimed a request gave it back.
	RequestReleased struct {
		Why string `json:"why,omitempty"` // a code
	}

	// RequestEscalated says that a request went to others, by somebody's wish or by its route.
	RequestEscalated struct {
		To     []string `json:"to"`
		Step   string   `json:"step,omitempty"`
		Reason Digest   `json:"reason,omitzero"`
	}

	// RequestDelegated says that a request went from one person to another.
	RequestDelegated struct {
		To     string `json:"to"`
		Reason Digest `json:"reason,omitzero"`
	}

	// RequestSnoozed says that somebody wants to be asked later.
	RequestSnoozed struct {
		Until Timestamp `json:"until"`
	}

	// RequestChanged says that a request changed in a way that has no kind of its own: its deadline moved, a step of its route was taken ("step"), left out
	// ("step_skipped") or made needless by a later one ("step_missed"), an edit needs more people.
	RequestChanged struct {
		What     string    `json:"what"` // a code
		Deadline Timestamp `json:"deadline,omitzero"`
	}

	// RequestCommented says that somebody said something.
	RequestCommented struct {
		Text Digest `json:"text"`
	}

	// RequestDecided is somebody's word on a request, and all that it rests on.
	RequestDecided struct {
		Verb Verb `json:"verb"`
		// Settles says that the request is over with this word; with a quorum the first ones do not.
		Settles bool   `json:"settles"`
		Action  Action `json:"action,omitzero"`
		// FaultEdited is the digest of the arguments after an edit; Action has them as they were asked about.
		Edited Digest `json:"edited,omitzero"`
		Answer Digest `json:"answer,omitzero"`
		Reason Digest `json:"reason,omitzero"`
		Shown  Shown  `json:"shown"`
		// Groups are those for which the word counts, as the actor was a member at that time.
		Groups   []string `json:"groups,omitempty"`
		Quorum   Quorum   `json:"quorum,omitzero"`
		Ruling   Ruling   `json:"ruling,omitzero"`
		Timing   Timing   `json:"timing,omitzero"`
		Click    Click    `json:"click,omitzero"`
		ResumeID string   `json:"resumeId,omitempty"`
		Trace    Trace    `json:"trace,omitzero"`
	}

	// RequestRefused is a word that did not count, or something else that somebody was not let do with a request, and why.
	RequestRefused struct {
		Verb Verb `json:"verb,omitempty"`
		// Act is what they wanted to do, if it was no word: claim, delegate, remember …
		Act      string  `json:"act,omitempty"`
		Why      Refusal `json:"why"`
		Shown    Shown   `json:"shown,omitzero"`
		Ruling   Ruling  `json:"ruling,omitzero"`
		Click    Click   `json:"click,omitzero"`
		ResumeID string  `json:"resumeId,omitempty"`
		Trace    Trace   `json:"trace,omitzero"`
	}

	// RequestExpired says that nobody settled a request in time. It is no rejection.
	RequestExpired struct {
		Deadline Timestamp `json:"deadline"`
		Why      string    `json:"why,omitempty"` // a code
		Timing   Timing    `json:"timing,omitzero"`
	}

	// RequestWithdrawn says that a run no longer asks.
	RequestWithdrawn struct {
		Why string `json:"why,omitempty"` // a code
	}
)

// What is allowed beforehand.
type (
	// PolicyLoaded says that actions are judged by a policy that this log has not named before.
	PolicyLoaded struct {
		Ruling   Ruling `json:"ruling"`
		Previous string `json:"previous,omitempty"` // its digest
		Rules    int    `json:"rules"`
	}

	// PolicyDenied says that the rules do not let something be done, and that nobody was asked.
	PolicyDenied struct {
		Action Action `json:"action"`
		Ruling Ruling `json:"ruling"`
	}

	// GrantMade says that something is allowed for a while without asking again.
	GrantMade struct {
		Grant string    `json:"grant"`
		Scope Digest    `json:"scope"`
		Rule  string    `json:"rule,omitempty"`
		Until Timestamp `json:"until"`
		Uses  int64     `json:"uses,omitempty"` // 0: as many as there is time for
	}

	// GrantUsed says that a grant took the place of a question.
	GrantUsed struct {
		Grant  string `json:"grant"`
		Action Action `json:"action"`
		Ruling Ruling `json:"ruling,omitzero"`
	}

	// GrantRevoked says that a grant is over before its time.
	GrantRevoked struct {
		Grant string `json:"grant"`
		Why   string `json:"why,omitempty"` // a code
	}
)

// Who is let in. The id of a key or a session stands in the via of what is done with it; neither can be used by who knows its id.
type (
	// APIKeyMade says that somebody may act under a name.
	APIKeyMade struct {
		Key   string    `json:"key"`
		Name  string    `json:"name"`
		Role  string    `json:"role"`
		Until Timestamp `json:"until,omitzero"` // without: for ever
	}

	// APIKeyRevoked says that a key is over before its time.
	APIKeyRevoked struct {
		Key string `json:"key"`
	}

	// SessionBegun says that a person has signed in.
	SessionBegun struct {
		Session string    `json:"session"`
		Roles   []string  `json:"roles"`
		Until   Timestamp `json:"until"`
	}

	// SessionEnded says that a session is over before its time: its person has signed out, or somebody else ended it.
	SessionEnded struct {
		Session string `json:"session"`
	}
)

// What was done.
type (
	// EffectBegun is the intent: written before anything happens outside.
	EffectBegun struct {
		Number int    `json:"number"`
		Action Action `json:"action"`
		Key    string `json:"key"`
		// Repeatable says that the target ignores a second call with the same key.
		Repeatable bool   `json:"repeatable,omitempty"`
		Fence      int64  `json:"fence,omitempty"`
		Ruling     Ruling `json:"ruling,omitzero"` // if a policy or a grant allowed it and nobody was asked
		Trace      Trace  `json:"trace,omitzero"`
	}

	// EffectEnded is the receipt.
	EffectEnded struct {
		Number  int         `json:"number"`
		State   EffectState `json:"state"`
		Receipt Digest      `json:"receipt,omitzero"`
		Error   Digest      `json:"error,omitzero"`
		Trace   Trace       `json:"trace,omitzero"`
	}

	// RunStarted says that a run began.
	RunStarted struct {
		Provider   string `json:"provider"`
		Generation int    `json:"generation,omitempty"`
		Input      Digest `json:"input,omitzero"`
	}

	// RunEnded says that a run is over, and how.
	RunEnded struct {
		Status  string `json:"status"`
		Outcome Digest `json:"outcome,omitzero"`
	}

	// RunParked says that a run is left alone until somebody looks at what stops it.
	RunParked struct {
		Attempts int `json:"attempts"`
	}

	// RunRetried says that somebody wants a parked run to go on.
	RunRetried struct {
		Attempts int `json:"attempts"` // how often it was tried before
	}
)

// What was done with the record itself.
type (
	// LogExported says that somebody took a copy.
	LogExported struct {
		Format string `json:"format"`
		From   int64  `json:"from"`
		To     int64  `json:"to"`
		SHA256 string `json:"sha256,omitempty"` // of the file
	}

	// PayloadsErased says that payloads are gone, with their salts.
	PayloadsErased struct {
		Payloads []string `json:"payloads"`
		Order    string   `json:"order,omitempty"` // why: the id of a request or of a rule, not a person's name
	}

	// LogVerified says that somebody looked whether the record is whole.
	LogVerified struct {
		From    int64  `json:"from"`
		To      int64  `json:"to"`
		Signed  int64  `json:"signed"`
		Problem string `json:"problem,omitempty"` // a Fault
		At      int64  `json:"at,omitempty"`
	}

	// LogSigned says that a checkpoint was signed.
	LogSigned struct {
		Verifier string `json:"verifier"`
		Size     int64  `json:"size"`
		Root     Hash   `json:"root"`
	}
)

// GroupCount is how many people of a group have to agree.
type GroupCount struct {
	Group string `json:"group"`
	Count int    `json:"count"`
}

// Quorum is how far a request is: what it needs, and whose approvals count.
type Quorum struct {
	Need []GroupCount `json:"need,omitempty"`
	Have []string     `json:"have,omitempty"`
}

// DeliveryState is where a copy of a request stands.
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

// Verb is what somebody can say to a request.
type Verb string

// The verbs. Only the two approvals let anything be done.
const (
	VerbApprove          Verb = "approve"
	VerbApproveWithEdits Verb = "approve_with_edits"
	VerbReject           Verb = "reject"
	VerbRespond          Verb = "respond"
	VerbAskClarification Verb = "ask_back"
	VerbAbandon          Verb = "escape"
)

func (v Verb) valid() error {
	return oneOf(v, VerbApprove, VerbApproveWithEdits, VerbReject, VerbRespond, VerbAskClarification, VerbAbandon, "")
}

// Approves reports whether the verb lets something be done.
func (v Verb) Approves() bool { return v == VerbApprove || v == VerbApproveWithEdits }

// Refusal is why a word did not count, or something else could not be done.
type Refusal string

// Why a word may not count.
const (
	RefusedAlreadyDecided Refusal = "already_decided"
	RefusedExpired        Refusal = "expired"
	RefusedSuperseded     Refusal = "superseded"
	RefusedDigestMismatch Refusal = "digest_mismatch" // not what is asked now
	RefusedNotFound       Refusal = "not_found"
	RefusedNotAllowed     Refusal = "not_allowed" // not in a group that may
	RefusedOwnRequest     Refusal = "own_request" // separation of duties
	RefusedWeakAuth       Refusal = "weak_auth"   // the policy wants a stronger login
	RefusedNotLinked      Refusal = "not_linked"  // nobody knows who that is
	RefusedBadAnswer      Refusal = "bad_answer"  // does not fit its kind
	RefusedBadSignature   Refusal = "bad_signature"
	RefusedReplayed       Refusal = "replayed"
	RefusedResumeReused   Refusal = "resume_id_reused"
	RefusedVerbNotAllowed Refusal = "verb_not_allowed"
	RefusedAlreadyVoted   Refusal = "already_voted"
	RefusedByPolicy       Refusal = "policy"
	RefusedNoRole         Refusal = "no_role"      // nobody whom this is for, whatever the request is
	RefusedNotPossible    Refusal = "not_possible" // not now, or not so: somebody else looks after it, its deadline cannot be moved so far
)

func (r Refusal) valid() error {
	return oneOf(r, RefusedAlreadyDecided, RefusedExpired, RefusedSuperseded, RefusedDigestMismatch, RefusedNotFound, RefusedNotAllowed, RefusedOwnRequest, RefusedWeakAuth, RefusedNotLinked, RefusedBadAnswer,
		RefusedBadSignature, RefusedReplayed, RefusedResumeReused, RefusedVerbNotAllowed, RefusedAlreadyVoted, RefusedByPolicy, RefusedNoRole, RefusedNotPossible)
}

// EffectState is how an effect ended, as far as anybody knows.
type EffectState string

// How an effect can end. Begun is that of a ledger's line that has no end yet.
const (
	EffectStateBegun     EffectState = "started"
	EffectStateSucceeded EffectState = "succeeded"
	EffectStateFailed    EffectState = "failed"
)

func (s EffectState) valid() error { return oneOf(s, EffectStateSucceeded, EffectStateFailed) }
