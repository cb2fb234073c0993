package dialog

import (
	"slices"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

// Mention is a name in what the user said, with the entities that it may mean.
type Mention struct {
	Name string
	// Candidates are the entities that the name may mean, the most likely one first.
	Candidates []Option
	// Incidental means that the result does not depend on which one is meant: the agent does its
	// work with the most likely one and asks afterwards.
	Incidental bool
	// Ask is the question for a name that is ambiguous: its text, and what else it needs. Resolve
	// sets the kind, the options, the relevance and the default.
	Ask Question
	// Unknown is the text of the question for a name without candidates, such as "I do not know
	// Bob. Who do you mean?"; "" is that of Ask. The answer is a text, which is the next name to
	// resolve, or with AllowOther the entity that the user has created.
	Unknown string
}

// Resolution is the entity that a name means, or the question to ask.
type Resolution struct {
	// Option is the id of the entity; "" if it is not known yet.
	Option string
	// Question is nil if the name is known and not ambiguous. Ask a blocking one before the work,
	// and a non-blocking one after it, with the result in Say: then Option is what the work was
	// done with.
	Question *Question
}

// Resolve finds the entity that a name means: the only candidate, or the only one with exactly this
// label or alias. Otherwise it sets the relevance of the question: an incidental mention does not
// block the answer to the user. A name without candidates is always asked about first.
func (m Mention) Resolve() Resolution {
	exact := slices.DeleteFunc(slices.Clone(m.Candidates), func(o Option) bool {
		return fold.Text(o.Label) != fold.Text(m.Name) && !slices.ContainsFunc(o.Aliases, func(alias string) bool { return fold.Text(alias) == fold.Text(m.Name) })
	})
	switch {
	case len(m.Candidates) == 0:
		q := m.Ask
		q.Kind, q.Options, q.Relevance, q.Default, q.Remember, q.Say = Clarification, nil, Blocking, "", nil, ""
		if m.Unknown != "" {
			q.Text = m.Unknown
		}
		return Resolution{Question: &q}
	case len(m.Candidates) == 1:
		return Resolution{Option: m.Candidates[0].ID}
	case len(exact) == 1:
		return Resolution{Option: exact[0].ID}
	}
	q := m.Ask
	q.Kind, q.Options, q.Relevance, q.Default = Disambiguation, m.Candidates, Blocking, ""
	if !m.Incidental {
		return Resolution{Question: &q}
	}
	q.Relevance, q.Default = NonBlocking, m.Candidates[0].ID
	return Resolution{Option: q.Default, Question: &q}
}
