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
	// and for a text over 16 KiB.
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
)
