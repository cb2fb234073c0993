package encrypted

import "errors"

var (
	// ErrWrongKey means that the store was written with another key. Use the key file that belongs
	// to the store.
	ErrWrongKey = errors.New("encrypted: the key does not belong to this store")

	// ErrUnreadable means that a stored value cannot be decrypted: its key is missing, or the value
	// was changed, moved or lost. The stored bytes are kept.
	ErrUnreadable = errors.New("encrypted: unreadable value")
)
