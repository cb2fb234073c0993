// Package dialog asks an agent's questions to its end user, in a conversation. Agents do not talk
// to users: a tool, node or agent asks with one call, and the handler words the question, asks it,
// interprets the reply and resumes the run that asked.
//
//	answer, err := dialog.Ask(ctx, dialog.Question{
//		Kind: dialog.Disambiguation,
//		Text: "Which Anna do you mean?",
//		Options: []dialog.Option{
//			{ID: "anna-m", Label: "Anna Meier", Facts: map[string]string{"team": "legal"}},
//			{ID: "anna-s", Label: "Anna Schmidt", Facts: map[string]string{"team": "sales"}},
//		},
//		AllowOther: true,
//	})
//	if err != nil {
//		return "", err // the run is saved and waits
//	}
//
// An open question is an interrupt of the run that asked, so it is saved before it is shown, it
// survives restarts, and it is answered once:
//
//	user              handler                          run
//	 │  message ────────▶ │ start ────────────────────────▶ │ Ask: saved, waits
//	 │                    │ ◀─────────────────── interrupt │
//	 │ ◀──────── question │                                 │
//	 │  reply ──────────▶ │ read, accept, store             │
//	 │                    │ answer ───────────────────────▶ │ Ask returns
//	 │ ◀────────── output │ ◀────────────────────── output │
//
// # Replies
//
// A reply is an answer, an escape ("cancel"), a new intent, a counter-question ("why?") or unclear.
// Exact rules come first: buttons, whole phrases, ordinals, names and facts that fit one option, in
// English, German, French and Spanish. Then a model may judge, with a threshold and a margin. Doubt
// leads to another question: it is never a yes and never a cancellation. Only a whole phrase that
// means yes confirms an action, whatever a model thinks.
//
// # Structure
//
// [Handler] stores conversations as documents and delivers answers to runs. A conversation is not a
// run itself: it outlives its runs, and several of them can wait at once. Each message returns the
// [Record] of the conversation, with its [Line]s and the questions that are open.
//
// [Machine] configures how replies are read. Its [Wording] replaces templates, for each kind,
// channel and modality, with variants.
package dialog
