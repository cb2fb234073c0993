// Package desk has the rules for questions to people: who must agree, who may not, who is told when, and when it is too late. It
// stores nothing, sends nothing and has no clock: a request is a document, an act is a value, and [Apply] makes a new document
// of both.
//
//	change, err := desk.New(desk.RequestSpec{ID: id, Asked: asked, Need: need, Route: route}, desk.Env{Now: now})
//	…
//	change, err = desk.Apply(request, desk.Approve{From: desk.From{Actor: ann, Seen: seen}}, desk.Env{Now: now, Directory: groups})
//	if changed, ok := errors.AsType[*desk.ChangedError](err); ok {
//		// ann looked at something else: say what has changed
//	}
//
// Whoever keeps the documents stores a [Change] whole (the document, when the clock is due next, the notices, the facts for the
// audit, and the final word, if there is one) if the stored document still has the revision that the act was made on. If not,
// it loads the document and applies the act again.
//
//	load ──▶ Apply ──▶ store if the revision is the same ──▶ tell people
//	  ▲                  │ no
//	  └──────────────────┘
//
// A few rules hold whatever happens. A request has one final word at most. It takes a quorum of different people who may decide at
// the moment of the last vote. What has expired was not rejected, and is never approved. Nothing is decided once the deadline has
// passed. A step of a route has its turn once. A vote is for what was seen: when the arguments are edited, everybody votes again.
package desk
