// Package desk has the rules for requests to people: the required approvers, separation of duties,
// notifications, reminders and expiry. The package stores nothing, sends nothing and has no clock.
// A request is a document, a command is a value, and [Apply] computes the new document.
//
//	change, err := desk.New(desk.RequestSpec{ID: id, Subject: subject, Requirement: requirement, Route: route}, desk.Env{Now: now})
//	…
//	change, err = desk.Apply(request, desk.Approve{From: desk.From{Actor: ann, Seen: seen}}, desk.Env{Now: now, Directory: groups})
//	if changed, ok := errors.AsType[*desk.ChangedError](err); ok {
//		// ann saw an older revision: show changed.Changes
//	}
//
// The caller stores a [Change] as a whole: the document, the time of the next timer, the notices,
// the events for the audit log, and the decision, if there is one. It stores the change only if the
// stored document still has the revision that the command was applied to. Otherwise it loads the
// document and applies the command again.
//
//	load ──▶ Apply ──▶ store if the revision is the same ──▶ send notices
//	  ▲                  │ no
//	  └──────────────────┘
//
// Some rules always hold. A request has at most one decision. A decision needs a quorum of
// different people who are eligible at the time of the last vote. An expired request was not
// rejected and is never approved. No decision is made after the deadline. A route step runs once. A
// vote applies to what the voter saw: an edit of the arguments voids all votes.
package desk
