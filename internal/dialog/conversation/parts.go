package conversation

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A conversation is one document with its newest lines and open questions, so that a message writes
// the same amount however long the conversation is. Older lines are in parts, which are written
// once.

const (
	// linesPerPart is how many lines a part has. The document of the conversation has up to twice
	// as many, and up to twice questionsPerPart that have ended.
	linesPerPart     = 100
	questionsPerPart = 20
	// maxBody is the size of the document, in bytes, from which on more is moved to a part, so that
	// only the last lines and the open questions stay.
	maxBody   = 256 << 10
	lastLines = 10
	// maxOpen is how many questions are open in a conversation. Runs ask further ones when others
	// are answered.
	maxOpen = 20
)

// part is an earlier part of a conversation.
type part struct {
	Lines     []Line    `json:"lines,omitempty"`
	Questions []*Asking `json:"questions,omitempty"`
	Runs      []RunLink `json:"runs,omitempty"`
}

func partID(conversation string, n int) string { return fmt.Sprintf("%s/%06d", conversation, n) }

// archive moves what has ended to a part, if the conversation has become long. size is that of its
// document.
func (tx *tx) archive(s *stored, size int) bool {
	if s.Working || s.ID == "" {
		return false
	}
	lines, questions := len(s.Lines), 0
	for _, a := range s.Questions {
		if !a.Status.Open() {
			questions++
		}
	}
	switch {
	case size > maxBody && (lines > lastLines || questions > 1):
		lines, questions = max(0, lines-lastLines), max(0, questions-1)
	case lines >= 2*linesPerPart || questions >= 2*questionsPerPart:
		lines, questions = min(lines, linesPerPart), questions/2
	default:
		return false
	}
	old := &part{Lines: slices.Clone(s.Lines[:lines])}
	s.Lines, s.Earlier = slices.Clone(s.Lines[lines:]), s.Earlier+lines
	s.Questions = slices.DeleteFunc(s.Questions, func(a *Asking) bool {
		move := !a.Status.Open() && len(old.Questions) < questions
		if move {
			old.Questions = append(old.Questions, a)
		}
		return move
	})
	s.Runs = slices.DeleteFunc(s.Runs, func(l RunLink) bool {
		move := l.Settled && l.Line <= s.Earlier
		if move {
			old.Runs = append(old.Runs, l)
		}
		return move
	})
	s.PastRuns += len(old.Runs)
	s.Parts++
	tx.documents = append(tx.documents, &txDocument{PartDocument, partID(s.key(), s.Parts), 0, old})
	return true
}

// Whole returns a conversation as it is stored, with its earlier parts. It returns ErrNotFound if
// the account has no such conversation.
func (h *Handler) Whole(ctx context.Context, account, id string) (Record, error) {
	s, err := h.load(ctx, account, id)
	if err != nil || s.Parts == 0 {
		return s.Record, err
	}
	whole := s.Record
	whole.Lines, whole.Questions, whole.Runs, whole.Earlier = nil, nil, nil, 0
	for n := range s.Parts {
		p, _, err := read[part](ctx, h, account, PartDocument, partID(s.key(), n+1))
		if err != nil {
			return Record{}, err
		}
		whole.Lines = append(whole.Lines, p.Lines...)
		whole.Questions = append(whole.Questions, p.Questions...)
		whole.Runs = append(whole.Runs, p.Runs...)
	}
	whole.Lines = append(whole.Lines, s.Lines...)
	whole.Questions = append(whole.Questions, s.Questions...)
	whole.Runs = append(whole.Runs, s.Runs...)
	return whole, nil
}

// retryDelete is how long the deletion of a conversation waits for runs that have to end, and for
// the expiry of questions that these runs ask.
const retryDelete = time.Hour

// retain deletes a conversation whose user has been silent for the retention. If runs wait for the
// user, their questions expire first.
func (h *Handler) retain(ctx context.Context, s *stored, tx *tx, now time.Time) (deleted bool, err error) {
	if h.config.Retention <= 0 || now.Before(s.Active.Add(h.config.Retention)) {
		return false, nil
	}
	var result Result
	for _, a := range s.Open() {
		if now.Before(a.CreatedAt.Add(retryDelete)) { // an agent that asks again at once, and forever
			continue
		}
		h.config.Machine.end(&s.Conversation, a, Expired, Answer{Expired: true, Method: ByDeadline}, now, &result)
	}
	if err := h.apply(ctx, s, tx, result, 0, now); err != nil {
		return false, err
	}
	if len(s.Outbox) > 0 || slices.ContainsFunc(s.Runs, func(l RunLink) bool { return !l.Settled }) {
		return false, nil
	}
	for n := range s.Parts {
		id := partID(s.key(), n+1)
		_, revision, err := read[part](ctx, h, tx.account, PartDocument, id)
		if err != nil {
			return false, err
		}
		tx.documents = append(tx.documents, &txDocument{PartDocument, id, revision, nil})
	}
	final := countOf(s)
	tx.final = &final
	*s = stored{Record: Record{Revision: s.Revision}, due: s.due}
	return true, nil
}
