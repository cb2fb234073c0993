package dialog

import "errors"

var (
	// ErrUnknownQuestion is returned for a message to a question that the conversation does not
	// have.
	ErrUnknownQuestion = errors.New("dialog: unknown question")
	// ErrClosed is returned for a message to a question that was answered or has ended. Nothing
	// was changed.
	ErrClosed = errors.New("dialog: question is closed")
	// ErrInvalidQuestion is returned for a question that cannot be asked, with the reason.
	ErrInvalidQuestion = errors.New("dialog: invalid question")
	// ErrInvalidReply is returned for an option, field or choice that the question does not have,
	// and for a text over MaxText bytes.
	ErrInvalidReply = errors.New("dialog: invalid reply")
	// ErrNotFound is returned if the account has no such conversation, or if it belongs to another
	// user.
	ErrNotFound = errors.New("dialog: unknown conversation")
	// ErrInvalidID is returned for a conversation id that is empty, too long, or has other
	// characters than letters, digits, "-", "_" and ".".
	ErrInvalidID = errors.New("dialog: invalid conversation id")
	// ErrMessageReused is returned for a message with the id of another message. Nothing was
	// changed.
	ErrMessageReused = errors.New("dialog: the message id was used for another message")
	// ErrGone is returned by [Runs] if a run does not wait for the answer any more.
	ErrGone = errors.New("dialog: the run does not wait for this answer")
	// ErrRejected is returned by [Runs] if a run can never start: its input is too large, its graph
	// is unknown, or another run has its state key.
	ErrRejected = errors.New("dialog: the run cannot be started")
)
