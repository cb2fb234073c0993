package activation

import "errors"

// unusableText is the reason for a refusal that people see if the code gives none. The error itself
// may contain parts of the answer.
const unusableText = "the answer could not be used"

// Refuse reopens an answered interrupt because its answer cannot be used. It returns the error to
// wait with, or err if there is no such interrupt.
func (s *Scope) Refuse(id string, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() { // it stays as it was saved
		return ErrEnded
	}
	for _, r := range s.state.records.All() {
		if r.ID == id && r.Status == StatusAnswered {
			return s.refuse(r, unusableText, err)
		}
	}
	return err
}

// refuse reopens an answered interrupt. The caller holds the lock.
func (s *Scope) refuse(r *Record, reason string, err error) *Signal {
	r.Status, r.Answer, r.AnswerType, r.Refused = StatusOpen, nil, "", reason //mutate:unusable-answer-reopens
	s.state.badAnswers = append(s.state.badAnswers, &BadAnswer{ID: r.ID, Err: err})
	return &Signal{Record: r}
}

// RefuseLast refuses the answer that the code at this place got last. reason is shown to the
// person. It returns the error to wait with, or nil if there is no such answer.
func (s *Scope) RefuseLast(reason string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return ErrEnded
	}
	if s.state == nil {
		return nil
	}
	var last *Record
	for _, r := range s.state.records.All() {
		if r.RelPath == s.RelPath && r.Status == StatusAnswered && r.used > 0 && (last == nil || r.used > last.used) {
			last = r
		}
	}
	if last == nil {
		return nil
	}
	signal := s.refuse(last, reason, refusedError(reason))
	s.raise(last)
	return signal
}

// RefuseAndWait is Refuse for a question that the code at this place has just asked. The code must
// return the error.
func (s *Scope) RefuseAndWait(id string, err error) error {
	err = s.Refuse(id, err)
	if signal, ok := err.(*Signal); ok {
		s.Raise(signal)
	}
	return err
}

// ErrRefused is the error of an answer that the code refused.
var ErrRefused = errors.New("fermata: the answer was refused")

// refusedError is ErrRefused with the reason as its text.
type refusedError string

func (e refusedError) Error() string        { return string(e) }
func (e refusedError) Is(target error) bool { return target == ErrRefused }
