package sqlite

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/store"
)

const (
	beginResealSQL = `INSERT INTO resealing (one) VALUES (1)`
	endResealSQL   = `DELETE FROM resealing`
)

// vault is a column of sealed values.
type vault struct {
	what        store.SealedWhat
	read, write string
	keys        int
}

// vaults are all of them, in the order in which they are gone through. Only add at the end: cursors name them by their place.
var vaults = []vault{
	newVault(store.SealedRef, "runs", "ref", "account, run, x''", "account", "run"),
	newVault(store.SealedInput, "runs", "input", "account, run, x''", "account", "run"),
	newVault(store.SealedOutcome, "runs", "outcome", "account, run, x''", "account", "run"),
	newVault(store.SealedOutcome, "resumes", "outcome", "account, run, x''", "account", "actor", "id"),
	newVault(store.SealedPart, "checkpoint_parts", "data", "account, run, name", "account", "run", "name"),
	newVault(store.SealedData, "interrupts", "data", "account, id, x''", "account", "id"),
	newVault(store.SealedAnswer, "interrupts", "answer", "account, id, x''", "account", "id"),
	newVault(store.SealedReceipt, "effects", "receipt", "account, interrupt, x''", "account", "interrupt", "number"),
	newVault(store.SealedOnce, "once", "value", "x'', name, x''", "name"),
	newVault(store.SealedPaper, "papers", "body", "account, id, kind", "account", "kind", "id"),
}

// newVault makes the statements for a column. They go by the primary key, because a row keeps that: a full vacuum may give it
// another rowid.
func newVault(what store.SealedWhat, table, column, names string, keys ...string) vault {
	var marks, same []string
	for n, key := range keys {
		marks = append(marks, fmt.Sprint("?", n+1))
		same = append(same, fmt.Sprint(key, " = ?", n+1))
	}
	all := strings.Join(keys, ", ")
	return vault{
		what: what, keys: len(keys),
		read: fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE (%s) > (%s) AND %s IS NOT NULL ORDER BY %s LIMIT ?%d",
			names, column, all, table, all, strings.Join(marks, ", "), column, all, len(keys)+1),
		// The bytes are compared, too: what was changed meanwhile stays as it is.
		write: fmt.Sprintf("UPDATE %s SET %s = ?%d WHERE %s AND %s = ?%d",
			table, column, len(keys)+1, strings.Join(same, " AND "), column, len(keys)+2),
	}
}

// keptValue is a sealed value and where it stands: its vault, and its key there.
type keptValue struct {
	store.Sealed
	place resealPlace
	fresh []byte
}

type resealPlace struct {
	vault int
	key   []any // bytes, words and numbers; nil is the beginning
}

// Reseal hands sealed values to a function, and keeps what that returns; see [store.Keeping]. The function is called outside of any
// transaction: it may take its time, and use the Store.
func (s *Store) Reseal(ctx context.Context, after string, limit int, reseal func(store.Sealed) ([]byte, error)) (next string, err error) {
	const op = "seal values anew in"
	place, err := parsePlace(after)
	if err != nil {
		return "", err
	}
	batch, err := s.look().sealedBehind(ctx, place, page(limit, 1000))
	if err != nil {
		return "", s.fail(ctx, op, err)
	}
	var changed []keptValue
	for _, value := range batch {
		if value.fresh, err = reseal(value.Sealed); err != nil {
			return "", err
		}
		if value.fresh != nil {
			changed = append(changed, value)
		}
	}
	if len(changed) > 0 {
		if _, err := do(ctx, s, op, func(ctx context.Context, t turn) (struct{}, error) { return struct{}{}, t.replace(ctx, changed) }); err != nil {
			return "", err
		}
	}
	if len(batch) == 0 {
		return "", nil
	}
	return batch[len(batch)-1].place.String(), nil
}

// sealedBehind returns the next values. They are of one vault: a rest hands the outcome of a run to resumes, so those are not read before what is to
// become of the runs' is written.
func (t turn) sealedBehind(ctx context.Context, place resealPlace, limit int) (batch []keptValue, err error) {
	//mutate:reencryption-one-table
	for ; place.vault < len(vaults) && len(batch) == 0; place = (resealPlace{vault: place.vault + 1}) {
		v := vaults[place.vault]
		key := place.key
		if key == nil {
			key = make([]any, v.keys)
			for n := range key {
				key[n] = 0 // which is before all bytes
			}
		}
		//mutate:reencryption-batch
		batch, err = list(ctx, t, func(row scanner) (keptValue, error) { return v.scan(row, place.vault) }, v.read, append(key, limit)...)
		if err != nil {
			return nil, err
		}
	}
	return batch, nil
}

func (v vault) scan(row scanner, vault int) (value keptValue, err error) {
	value.What, value.place = v.what, resealPlace{vault, make([]any, v.keys)}
	dest := []any{&value.Account, &value.ID, &value.Part, sealed{&value.Data}}
	for n := range value.place.key {
		dest = append(dest, &value.place.key[n])
	}
	err = row.Scan(dest...)
	for n, part := range value.place.key {
		switch part := part.(type) {
		case nil: // the driver's word for an empty blob
			value.place.key[n] = []byte{}
		case string:
			value.place.key[n] = word(part)
		}
	}
	return value, err
}

// replace writes what is sealed anew, and nothing else.
func (t turn) replace(ctx context.Context, changed []keptValue) error {
	if _, err := t.exec(ctx, beginResealSQL); err != nil {
		return err
	}
	for _, value := range changed {
		if _, err := t.exec(ctx, vaults[value.place.vault].write, append(value.place.key, value.fresh, value.Data)...); err != nil {
			return err
		}
	}
	_, err := t.exec(ctx, endResealSQL)
	return err
}

// String is the cursor of a place.
func (p resealPlace) String() string {
	words := []string{strconv.Itoa(p.vault)}
	for _, part := range p.key {
		switch part := part.(type) {
		case int64:
			words = append(words, strconv.FormatInt(part, 10))
		case []byte:
			words = append(words, "x"+hex.EncodeToString(part))
		case word:
			words = append(words, "t"+hex.EncodeToString([]byte(part)))
		}
	}
	return strings.Join(words, ".")
}

// parsePlace returns ErrKey for what is no cursor.
func parsePlace(cursor string) (place resealPlace, err error) {
	if cursor == "" {
		return resealPlace{}, nil
	}
	words := strings.Split(cursor, ".")
	place.vault, err = strconv.Atoi(words[0])
	if err != nil || place.vault < 0 || place.vault >= len(vaults) || len(words)-1 != vaults[place.vault].keys {
		return resealPlace{}, store.ErrKey
	}
	for _, text := range words[1:] {
		var part any
		switch text[:min(1, len(text))] {
		case "x":
			part, err = hex.DecodeString(text[1:])
		case "t":
			var decoded []byte
			decoded, err = hex.DecodeString(text[1:])
			part = word(decoded)
		default:
			part, err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil {
			return resealPlace{}, store.ErrKey
		}
		place.key = append(place.key, part)
	}
	return place, nil
}
