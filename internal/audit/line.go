package audit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"
)

// NewLine returns a record as a store accepts it: without number, previous hash and time. The store
// adds them in the transaction of the change. An error is ErrRecord.
func NewLine(account string, actor Actor, place Location, body Body) ([]byte, error) {
	r := NewRecord(time.Time{}, actor, place, body)
	r.Account = account
	if err := r.checkContent(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return r.encodeContent()
}

// maxPrefix is more than the length of the prefix that a store adds.
const maxPrefix = 256

// encodeContent returns the part after the time, as a JSON object.
func (r Record) encodeContent() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString(`{"account":`)
	if err := appendJSON(&b, r.Account); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	fmt.Fprintf(&b, `,"nonce":"%s","kind":"%s"`, hex.EncodeToString(r.Nonce[:]), r.Kind())
	for _, part := range []struct {
		name  string
		value any
	}{{"actor", r.Actor}, {"place", r.Location}, {"body", r.Body}} {
		fmt.Fprintf(&b, `,"%s":`, part.name)
		if err := appendJSON(&b, part.value); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrRecord, err)
		}
	}
	b.WriteByte('}')
	if b.Len() > MaxRecord-maxPrefix {
		return nil, fmt.Errorf("%w: %d bytes are too long", ErrRecord, b.Len())
	}
	return b.Bytes(), nil
}
