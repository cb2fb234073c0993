package voice

import (
	"context"
	"io"

	"github.com/fermata-go/fermata/dialog"
)

// Script is a [Line] whose user says what is written in it, and then hangs up.
type Script struct {
	// Replies are what the user says, in this order.
	Replies []Heard
	// Said collects what was spoken to the user.
	Said []string
}

var _ Line = (*Script)(nil)

// Say implements [Line].
func (s *Script) Say(ctx context.Context, text string, _ dialog.Language) error {
	s.Said = append(s.Said, text)
	return ctx.Err()
}

// Hear implements [Line].
func (s *Script) Hear(ctx context.Context, _ dialog.Language) (Heard, error) {
	if len(s.Replies) == 0 {
		return Heard{}, io.EOF
	}
	heard := s.Replies[0]
	s.Replies = s.Replies[1:]
	return heard, ctx.Err()
}
