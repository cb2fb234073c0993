package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// sealedSlot is a location of a sealed value.
type sealedSlot struct {
	store.SealedValue
	key string // a unique, stable key of the location
	set func([]byte)
}

// sealedSlots returns all locations in an order that does not depend on their content.
func (r *Store) sealedSlots() []sealedSlot {
	var all []sealedSlot
	add := func(account string, what store.SealedField, id, part string, value []byte, put func([]byte), more ...any) {
		if value != nil {
			all = append(all, sealedSlot{
				SealedValue: store.SealedValue{Account: account, Field: what, ID: id, Part: part, Data: value},
				key:         fmt.Sprintf("%s %q %q %q %q", what, account, id, part, fmt.Sprint(more...)), set: put,
			})
		}
	}
	for key, run := range r.tables.runs {
		add(key.Account, store.SealedRef, key.Run, "", run.ProviderRef, func(v []byte) { run.ProviderRef = v })
		add(key.Account, store.SealedInput, key.Run, "", run.Input, func(v []byte) { run.Input = v })
		add(key.Account, store.SealedOutcome, key.Run, "", run.Outcome, func(v []byte) { run.Outcome = v })
		for _, i := range run.interrupts {
			add(key.Account, store.SealedData, i.ID, "", i.Data, func(v []byte) { i.Data = v })
			add(key.Account, store.SealedAnswer, i.ID, "", i.Answer, func(v []byte) { i.Answer = v })
		}
	}
	for key, r := range r.tables.resumes {
		add(key.account, store.SealedOutcome, r.Run, "", r.Outcome, func(v []byte) { r.Outcome = v }, fmt.Sprintf("%q %q", key.actor, key.id))
	}
	for key, line := range r.tables.effects {
		add(key.account, store.SealedReceipt, key.interrupt, "", line.Receipt, func(v []byte) { line.Receipt = v }, key.attempt)
	}
	for key, p := range r.tables.documents {
		add(key.account, store.SealedDocument, key.id, string(key.kind), p.Body, func(v []byte) { p.Body = v })
	}
	for name, value := range r.tables.named {
		add("", store.SealedNamedValue, name, "", value, func(v []byte) { r.tables.named[name] = v })
	}
	for key, run := range r.Checkpoints.runs {
		for name, data := range run.parts.All() {
			add(key.Account, store.SealedPart, key.Run, name, data, func(v []byte) { run.parts.Set(name, v) })
		}
	}
	slices.SortFunc(all, func(a, b sealedSlot) int { return cmp.Compare(a.key, b.key) })
	return all
}

// Reencrypt passes sealed values to a function and stores the results; see [store.Maintenance]. The
// function may use the store.
func (r *Store) Reencrypt(ctx context.Context, after string, limit int, reseal func(store.SealedValue) ([]byte, error)) (string, error) {
	from, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return "", store.ErrInvalid
	}
	batch, err := update(ctx, r, func(*tables, time.Time) ([]sealedSlot, error) { return r.sealedSlots(), nil })
	if err != nil {
		return "", err
	}
	batch = slices.DeleteFunc(batch, func(s sealedSlot) bool { return s.key <= string(from) })
	next := ""
	if limit = pageSize(limit, 1000); len(batch) > limit {
		batch = batch[:limit]
		next = base64.RawURLEncoding.EncodeToString([]byte(batch[limit-1].key))
	}
	replacements := make(map[string]replacement)
	for _, s := range batch {
		fresh, err := reseal(s.SealedValue)
		if err != nil {
			return "", err
		}
		if fresh != nil {
			replacements[s.key] = replacement{from: s.Data, to: fresh}
		}
	}
	_, err = update(ctx, r, func(*tables, time.Time) (struct{}, error) {
		for _, s := range r.sealedSlots() {
			//mutate:memory-reencryption-compares
			if change, ok := replacements[s.key]; ok && bytes.Equal(s.Data, change.from) {
				s.set(change.to)
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

type replacement struct{ from, to []byte }

// Size returns how much data is stored; see [store.Maintenance]. Bytes counts what is sealed, which
// is most of it.
func (r *Store) Size(ctx context.Context) (store.Size, error) {
	return update(ctx, r, func(b *tables, _ time.Time) (store.Size, error) {
		size := store.Size{Rows: map[string]int64{
			"runs": int64(len(b.runs)), "resumes": int64(len(b.resumes)), "effects": int64(len(b.effects)), "events": int64(len(b.events.entries)),
			"checkpoints": int64(len(r.Checkpoints.runs)), "once": int64(len(b.named)), "papers": int64(len(b.documents)),
		}}
		for _, log := range b.audit {
			size.Rows["audit"] += int64(len(log.lines))
		}
		for _, run := range b.runs {
			size.Rows["interrupts"] += int64(len(run.interrupts))
		}
		for _, s := range r.sealedSlots() {
			size.Bytes += int64(len(s.Data))
		}
		return size, nil
	})
}
