package dialog

import (
	"context"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/enduser"
)

// Request is the kind of the interrupts that [Ask] raises. In a conversation only the end user
// answers them: they are not in the inboxes of approvers.
var Request = fermata.NewKind[Question, Answer]("dialog-question", fermata.ForEndUser())

// Ask asks the end user of the run. The first call returns an error that the tool, node or agent
// must return: the run is saved and waits. The handler words the question, asks, and resumes the
// run; then Ask returns the answer.
//
// An escape of the user and an expired question are answers: see [Answer.Escaped] and
// [Answer.Expired].
func Ask(ctx context.Context, q Question) (Answer, error) {
	if err := q.Validate(); err != nil {
		return Answer{}, err
	}
	return Request.Ask(ctx, q)
}

// User returns the end user of the run that a tool, node or agent is part of, as the server has
// authenticated them. It returns "" outside of conversations.
func User(ctx context.Context) string { return enduser.From(ctx) }
