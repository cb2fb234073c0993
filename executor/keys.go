package executor

import (
	"context"
	"errors"
	"fmt"

	"github.com/fermata-go/fermata/store"
)

// Box seals values. A sealed value opens only under its label.
type Box interface {
	Seal(label string, data []byte) []byte
	Open(label string, sealed []byte) ([]byte, error)
	// Current reports whether a value is sealed with the key that Seal uses now.
	Current(sealed []byte) bool
}

// Packer is a Box that can make values smaller before it seals them. What goes into the store is packed if the box can do so.
type Packer interface {
	Box
	Pack(label string, data []byte) []byte
}

// Renewer is a Box whose keys come from elsewhere, and may change there. Err says why it cannot tell whether they have; nil if it can.
type Renewer interface {
	Box
	Err() error
}

// watchKeys tells operators, once each time, that the keys cannot be read again: until they can, nobody may change them, and no process may end.
func (e *Executor) watchKeys() {
	box, ok := e.config.Box.(Renewer)
	if !ok {
		return
	}
	err := box.Err()
	e.stats.mu.Lock()
	before := e.stats.KeysUnread
	e.stats.KeysUnread = err != nil
	e.stats.mu.Unlock()
	switch {
	case err != nil && !before:
		e.config.Log.Error("the key file cannot be read again; the keys that are known stay in use, and another start would fail", "err", err)
	case err == nil && before:
		e.config.Log.Info("the key file can be read again")
	}
}

// shut seals a value for the store, packed if the box can.
func (e *Executor) shut(place string, data []byte) []byte {
	if p, ok := e.config.Box.(Packer); ok {
		return p.Pack(place, data)
	}
	return e.config.Box.Seal(place, data)
}

// label is the label under which a value is sealed. It holds the place of the value, so that a value which is moved to another place does not open.
func label(account string, what store.SealedWhat, id, part string) string {
	return fmt.Sprintf("%q/%q/%s/%q", account, id, what, part) //mutate:label-has-account
}

func (e *Executor) seal(account string, what store.SealedWhat, id string, data []byte) []byte {
	return e.shut(label(account, what, id, ""), data)
}

func (e *Executor) open(account string, what store.SealedWhat, id string, sealed []byte) ([]byte, error) {
	return e.openPart(account, what, id, "", sealed)
}

// openPart opens what came from the store.
func (e *Executor) openPart(account string, what store.SealedWhat, id, part string, sealed []byte) ([]byte, error) {
	data, err := e.config.Box.Open(label(account, what, id, part), sealed)
	if err != nil {
		return nil, e.unreadable(account, string(what), id, err)
	}
	return data, nil
}

// unreadable is the error for what does not open, or is gone. Operators hear of it, wherever it was noticed: whoever reads many things goes on without it.
func (e *Executor) unreadable(account, what, id string, why error) error {
	e.stats.mu.Lock()
	e.stats.Unreadable++
	e.stats.mu.Unlock()
	e.config.Log.Error("a sealed value cannot be opened; what there is of it is kept", "account", account, "what", what, "of", id, "err", why)
	return fmt.Errorf("%w: the %s of %s: %w", ErrUnreadable, what, id, why)
}

// The value by which checkKey tells whether a key is the right one.
const (
	keyCheck     = "key check"
	keyCheckText = "fermata"
)

// checkKey refuses a box whose key is not the one with which the store was filled.
func (e *Executor) checkKey(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	place := label("", store.SealedOnce, keyCheck, "")
	kept, err := e.store.Once(ctx, keyCheck, e.config.Box.Seal(place, []byte(keyCheckText)))
	if err != nil {
		return err
	}
	if text, err := e.config.Box.Open(place, kept); err != nil || string(text) != keyCheckText {
		return errors.Join(ErrKey, err) //mutate:wrong-key-rejected
	}
	return nil
}

// Resealed says how far a change of keys has come.
type Resealed struct{ Seen, Changed int64 }

// resealAtOnce is how many values are looked at in one step.
const resealAtOnce = 500

// Reseal seals everything in the store with the current key of the box, while other processes work. Once it has returned, and every process
// has the new key as its current one, older keys are not needed any more. It may be stopped and begun again at any time. tell, if it is not nil, is called
// with the progress. What cannot be opened stays as it is, and is an error in the end, when everything else is sealed anew.
func (e *Executor) Reseal(ctx context.Context, tell func(Resealed)) (Resealed, error) {
	var sum Resealed
	var unreadable int64
	var first error
	for after := ""; ; {
		next, err := e.store.Reseal(ctx, after, resealAtOnce, func(v store.Sealed) ([]byte, error) {
			sum.Seen++
			if e.config.Box.Current(v.Data) {
				return nil, nil
			}
			place := label(v.Account, v.What, v.ID, v.Part)
			data, err := e.config.Box.Open(place, v.Data)
			if err != nil { // for the sake of one, all others would keep the old key
				if unreadable++; first == nil {
					first = fmt.Errorf("the %s of %s: %w", v.What, v.ID, err)
				}
				return nil, nil
			}
			sum.Changed++
			return e.shut(place, data), nil
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

// sealedState is the state of a run, sealed on its way into the store.
type sealedState struct {
	store.Checkpoints
	executor *Executor
}

// Load opens the parts of a checkpoint.
func (s *sealedState) Load(ctx context.Context, key store.Key) (store.Checkpoint, error) {
	checkpoint, err := s.Checkpoints.Load(ctx, key)
	if err != nil {
		return checkpoint, err
	}
	for name, sealed := range checkpoint.Parts {
		//mutate:part-decrypted
		if checkpoint.Parts[name], err = s.executor.openPart(key.Account, store.SealedPart, key.Run, name, sealed); err != nil {
			return store.Checkpoint{}, err
		}
	}
	return checkpoint, nil
}

// Save seals the parts of a delta.
func (s *sealedState) Save(ctx context.Context, key store.Key, base int64, delta store.Delta) (int64, error) {
	return s.Checkpoints.Save(ctx, key, base, s.seal(key, delta))
}

func (s *sealedState) seal(key store.Key, delta store.Delta) store.Delta {
	put := make([]store.Part, len(delta.Put))
	for i, part := range delta.Put {
		data := part.Data
		if data == nil {
			data = []byte{} // a box does not seal nil
		}
		//mutate:part-encrypted
		put[i] = store.Part{Name: part.Name, Data: s.executor.shut(label(key.Account, store.SealedPart, key.Run, part.Name), data)}
	}
	return store.Delta{Put: put, Delete: delta.Delete}
}
