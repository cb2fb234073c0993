package dialog

import (
	"context"

	"github.com/fermata-go/fermata"
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
