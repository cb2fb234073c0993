package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/store"
)

// Sealer seals values. A sealed value opens only under its label.
type Sealer interface {
	Seal(label string, data []byte) []byte
	Open(label string, sealed []byte) ([]byte, error)
	// Current reports whether a value is sealed with the key that Seal uses now.
	Current(sealed []byte) bool
}

// Compressor is a Box that can make values smaller before it seals them. What goes into the store is packed if the box can do so.
type Compressor interface {
	Sealer
	SealCompressed(label string, data []byte) []byte
}

// KeyReloader is a Box whose keys come from elsewhere, and may change there. Err says why it cannot tell whether they have; nil if it can.
type KeyReloader interface {
	Sealer
	Err() error
}

// watchKeys tells operators, once each time, that the keys cannot be read again: until they can, nobody may change them, and no process may end.
func (e *Executor) checkKeyReload() {
	box, ok := e.config.Sealer.(KeyReloader)
	if !ok {
		return
	}
	err := box.Err()
	e.stats.mu.Lock()
	before := e.stats.KeyReloadFailing
	e.stats.KeyReloadFailing = err != nil
	e.stats.mu.Unlock()
	switch {
	case err != nil && !before:
		e.config.Log.Error("the key file cannot be read again; the keys that are known stay in use, and another start would fail", "err", err)
	case err == nil && before:
		e.config.Log.Info("the key file can be read again")
	}
}

// shut seals a value for the store, packed if the box can.
func (e *Executor) encryptValue(place string, data []byte) []byte {
	if p, ok := e.config.Sealer.(Compressor); ok {
		return p.SealCompressed(place, data)
	}
	return e.config.Sealer.Seal(place, data)
}

// associatedData is the label under which a value is sealed. It holds the place of the value, so that a value which is moved to another place does not open.
func associatedData(account string, what store.SealedField, id, part string) string {
	return fmt.Sprintf("%q/%q/%s/%q", account, id, what, part) //mutate:label-has-account
}

func (e *Executor) encrypt(account string, what store.SealedField, id string, data []byte) []byte {
	return e.encryptValue(associatedData(account, what, id, ""), data)
}

func (e *Executor) decrypt(account string, what store.SealedField, id string, sealed []byte) ([]byte, error) {
	return e.decryptPart(account, what, id, "", sealed)
}

// openPart opens what came from the store.
func (e *Executor) decryptPart(account string, what store.SealedField, id, part string, sealed []byte) ([]byte, error) {
	data, err := e.config.Sealer.Open(associatedData(account, what, id, part), sealed)
	if err != nil {
		return nil, e.reportUnreadable(account, string(what), id, err)
	}
	return data, nil
}

// unreadable is the error for what does not open, or is gone. Operators hear of it, wherever it was noticed: whoever reads many things goes on without it.
func (e *Executor) reportUnreadable(account, what, id string, why error) error {
	e.stats.mu.Lock()
	e.stats.Unreadable++
	e.stats.mu.Unlock()
	e.config.Log.Error("a sealed value cannot be opened; what there is of it is kept", "account", account, "what", what, "of", id, "err", why)
	return fmt.Errorf("%w: the %s of %s: %w", ErrUnreadable, what, id, why)
}

// The value by which checkKey tells whether a key is the right one.
const (
	keyCheckName = "key check"
	keyCheckText = "fermata"
)

// checkKey refuses a box whose key is not the one with which the store was filled.
func (e *Executor) verifyKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commitTimeout)
	defer cancel()
	place := associatedData("", store.SealedNamedValue, keyCheckName, "")
	kept, err := e.store.PutIfAbsent(ctx, keyCheckName, e.config.Sealer.Seal(place, []byte(keyCheckText)))
	if err != nil {
		return err
	}
	if text, err := e.config.Sealer.Open(place, kept); err != nil || string(text) != keyCheckText {
		return errors.Join(ErrWrongKey, err) //mutate:wrong-key-rejected
	}
	return nil
}

// ReencryptProgress says how far a change of keys has come.
type ReencryptProgress struct{ Seen, Changed int64 }

// reencryptPerPass is how many values are looked at in one step.
const reencryptPerPass = 500

// Reseal seals everything in the store with the current key of the box, while other processes work. Once it has returned, and every process
// has the new key as its current one, older keys are not needed any more. It may be stopped and begun again at any time. tell, if it is not nil, is called
// with the progress. What cannot be opened stays as it is, and is an error in the end, when everything else is sealed anew.
func (e *Executor) Reencrypt(ctx context.Context, tell func(ReencryptProgress)) (ReencryptProgress, error) {
	var sum ReencryptProgress
	var unreadable int64
	var first error
	for after := ""; ; {
		next, err := e.store.Reencrypt(ctx, after, reencryptPerPass, func(v store.SealedValue) ([]byte, error) {
			sum.Seen++
			if e.config.Sealer.Current(v.Data) {
				return nil, nil
			}
			place := associatedData(v.Account, v.Field, v.ID, v.Part)
			data, err := e.config.Sealer.Open(place, v.Data)
			if err != nil { // for the sake of one, all others would keep the old key
				if unreadable++; first == nil {
					first = fmt.Errorf("the %s of %s: %w", v.Field, v.ID, err)
				}
				return nil, nil
			}
			sum.Changed++
			return e.encryptValue(place, data), nil
		})
		if tell != nil {
			tell(sum)
		}
		if err == nil && next == "" && first != nil {
			err = fmt.Errorf("executor: %d values cannot be opened, the first is %w", unreadable, first)
		}
		if err != nil || next == "" {
			return sum, err
		}
		after = next
	}
}

// encryptedState is the state of a run, sealed on its way into the store.
type encryptedState struct {
	store.Checkpoints
	executor *Executor
}

// Load opens the parts of a checkpoint.
func (s *encryptedState) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := s.Checkpoints.Load(ctx, key)
	if err != nil {
		return checkpoint, err
	}
	for name, sealed := range checkpoint.Parts {
		//mutate:part-decrypted
		if checkpoint.Parts[name], err = s.executor.decryptPart(key.Account, store.SealedPart, key.Run, name, sealed); err != nil {
			return store.Checkpoint{}, err
		}
	}
	return checkpoint, nil
}

// Save seals the parts of a delta.
func (s *encryptedState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.Checkpoints.Save(ctx, key, base, s.seal(key, delta))
}

func (s *encryptedState) seal(key store.Key, delta store.Delta) store.Delta {
	put := make([]store.Part, len(delta.Put))
	for i, part := range delta.Put {
		data := part.Data
		if data == nil {
			data = []byte{} // a box does not seal nil
		}
		//mutate:part-encrypted
		put[i] = store.Part{Name: part.Name, Data: s.executor.encryptValue(associatedData(key.Account, store.SealedPart, key.Run, part.Name), data)}
	}
	return store.Delta{Put: put, Delete: delta.Delete}
}
