package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/store"
)

// slot is a place that holds a sealed value.
type slot struct {
	store.Sealed
	at  string // the same for this place as long as it is there, and no other's
	put func([]byte)
}

// slots are all places, in an order that does not depend on what is in them.
func (r *Runs) slots() []slot {
	var all []slot
	add := func(account string, what store.SealedWhat, id, part string, value []byte, put func([]byte), more ...any) {
		if value != nil {
			all = append(all, slot{
				Sealed: store.Sealed{Account: account, What: what, ID: id, Part: part, Data: value},
				at:     fmt.Sprintf("%s %q %q %q %q", what, account, id, part, fmt.Sprint(more...)), put: put,
			})
		}
	}
	for key, run := range r.book.runs {
		add(key.Account, store.SealedRef, key.Run, "", run.Ref, func(v []byte) { run.Ref = v })
		add(key.Account, store.SealedInput, key.Run, "", run.Input, func(v []byte) { run.Input = v })
		add(key.Account, store.SealedOutcome, key.Run, "", run.Outcome, func(v []byte) { run.Outcome = v })
		for _, i := range run.asked {
			add(key.Account, store.SealedData, i.ID, "", i.Data, func(v []byte) { i.Data = v })
			add(key.Account, store.SealedAnswer, i.ID, "", i.Answer, func(v []byte) { i.Answer = v })
		}
	}
	for key, r := range r.book.resumes {
		add(key.account, store.SealedOutcome, r.Run, "", r.Outcome, func(v []byte) { r.Outcome = v }, fmt.Sprintf("%q %q", key.actor, key.id))
	}
	for key, line := range r.book.effects {
		add(key.account, store.SealedReceipt, key.interrupt, "", line.Receipt, func(v []byte) { line.Receipt = v }, key.number)
	}
	for key, p := range r.book.papers {
		add(key.account, store.SealedPaper, key.id, string(key.kind), p.Body, func(v []byte) { p.Body = v })
	}
	for name, value := range r.book.once {
		add("", store.SealedOnce, name, "", value, func(v []byte) { r.book.once[name] = v })
	}
	for key, run := range r.Store.runs {
		for name, data := range run.parts.All() {
			add(key.Account, store.SealedPart, key.Run, name, data, func(v []byte) { run.parts.Set(name, v) })
		}
	}
	slices.SortFunc(all, func(a, b slot) int { return cmp.Compare(a.at, b.at) })
	return all
}

// Reseal hands sealed values to a function, and keeps what it returns; see [store.Keeping]. The function may use the store.
func (r *Runs) Reseal(ctx context.Context, after string, limit int, reseal func(store.Sealed) ([]byte, error)) (string, error) {
	from, err := base64.RawURLEncoding.DecodeString(after)
	if err != nil {
		return "", store.ErrKey
	}
	batch, err := do(ctx, r, func(*book, time.Time) ([]slot, error) { return r.slots(), nil })
	if err != nil {
		return "", err
	}
	batch = slices.DeleteFunc(batch, func(s slot) bool { return s.at <= string(from) })
	next := ""
	if limit = page(limit, 1000); len(batch) > limit {
		batch = batch[:limit]
		next = base64.RawURLEncoding.EncodeToString([]byte(batch[limit-1].at))
	}
	anew := make(map[string]resealed)
	for _, s := range batch {
		fresh, err := reseal(s.Sealed)
		if err != nil {
			return "", err
		}
		if fresh != nil {
			anew[s.at] = resealed{from: s.Data, to: fresh}
		}
	}
	_, err = do(ctx, r, func(*book, time.Time) (struct{}, error) {
		for _, s := range r.slots() {
			//mutate:memory-reencryption-compares
			if change, ok := anew[s.at]; ok && bytes.Equal(s.Data, change.from) {
				s.put(change.to)
			}
		}
		return struct{}{}, nil
	})
	if err != nil {
		return "", err
	}
	return next, nil
}

type resealed struct{ from, to []byte }

// Size says how much there is; see [store.Keeping]. Bytes counts what is sealed, which is most of it.
func (r *Runs) Size(ctx context.Context) (store.Size, error) {
	return do(ctx, r, func(b *book, _ time.Time) (store.Size, error) {
		size := store.Size{Rows: map[string]int64{
			"runs": int64(len(b.runs)), "resumes": int64(len(b.resumes)), "effects": int64(len(b.effects)), "events": int64(len(b.log.lines)),
			"checkpoints": int64(len(r.Store.runs)), "once": int64(len(b.once)), "papers": int64(len(b.papers)),
		}}
		for _, log := range b.audit {
			size.Rows["audit"] += int64(len(log.lines))
		}
		for _, run := range b.runs {
			size.Rows["interrupts"] += int64(len(run.asked))
		}
		for _, s := range r.slots() {
			size.Bytes += int64(len(s.Data))
		}
		return size, nil
	})
}
