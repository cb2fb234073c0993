package audit

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"time"
)

// NewLine is a record as a store takes it: without its place in the chain and its time, which the store puts in front when it writes it, in the
// transaction of what the record tells of. An error is ErrRecord.
func NewLine(account string, actor Actor, place Location, body Body) ([]byte, error) {
	r := NewRecord(time.Time{}, actor, place, body)
	r.Account = account
	if err := r.checkContent(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return r.encodeContent()
}

// maxPrefix is more than what a store puts in front of a line.
const maxPrefix = 256

// object writes what stands behind the time, as an object of its own.
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
		return nil, fmt.Errorf("%w: it is %d bytes long", ErrRecord, b.Len())
	}
	return b.Bytes(), nil
}
