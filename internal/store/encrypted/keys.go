package encrypted

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// The value that CheckKey keeps in the store to recognise its key.
const (
	keyCheck        = "key check"
	keyCheckText    = "fermata"
	keyCheckTimeout = 30 * time.Second
)

// CheckKey returns ErrWrongKey if the store was written with another key.
func (s *Store) CheckKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keyCheckTimeout)
	defer cancel()
	place := label("", store.SealedNamedValue, keyCheck, "")
	kept, err := s.Store.PutIfAbsent(ctx, keyCheck, s.sealer.Seal(place, []byte(keyCheckText)))
	if err != nil {
		return err
	}
	if text, err := s.sealer.Open(place, kept); err != nil || string(text) != keyCheckText {
		return errors.Join(ErrWrongKey, err) //mutate:wrong-key-rejected
	}
	return nil
}

// KeyErr returns why changes of the key cannot be noticed, or nil. Until it is nil again, the key
// must not be changed, and a restarted process may not find its key.
func (s *Store) KeyErr() error {
	if k, ok := s.sealer.(KeyReloader); ok {
		return k.Err()
	}
	return nil
}

// ReencryptProgress counts the values that a re-encryption has seen and changed.
type ReencryptProgress struct{ Seen, Changed int64 }

// reencryptBatch is how many values are read in one step.
const reencryptBatch = 500

// ReencryptAll encrypts everything in the store with the current key, while other processes work.
// When it has returned and every process uses the new key, older keys can be deleted. It may be
// interrupted and started again at any time. Progress, if not nil, is called after each batch.
// Values that cannot be decrypted are kept as they are; ReencryptAll finishes all others and then
// returns an error.
func (s *Store) ReencryptAll(ctx context.Context, progress func(ReencryptProgress)) (ReencryptProgress, error) {
	var sum ReencryptProgress
	var unreadable int64
	var first error
	for after := ""; ; {
		next, err := s.Store.Reencrypt(ctx, after, reencryptBatch, func(v store.SealedValue) ([]byte, error) {
			sum.Seen++
			if s.sealer.Current(v.Data) {
				return nil, nil
			}
			data, err := s.sealer.Open(label(v.Account, v.Field, v.ID, v.Part), v.Data)
			if err != nil { // one unreadable value must not keep all others on the old key
				if unreadable++; first == nil {
					first = fmt.Errorf("the %s of %s: %w", v.Field, v.ID, err)
				}
				return nil, nil
			}
			sum.Changed++
			return s.seal(v.Account, v.Field, v.ID, v.Part, data), nil
		})
		if progress != nil {
			progress(sum)
		}
		if err == nil && next == "" && first != nil {
			err = fmt.Errorf("encrypted: %d values cannot be decrypted, the first is %w", unreadable, first)
		}
		if err != nil || next == "" {
			return sum, err
		}
		after = next
	}
}
