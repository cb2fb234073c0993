package sqlite

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/store"
)

const (
	beginReencryptSQL = `INSERT INTO resealing (one) VALUES (1)`
	endReencryptSQL   = `DELETE FROM resealing`
)

// sealedColumn is a column of sealed values.
type sealedColumn struct {
	field       store.SealedField
	read, write string
	keys        int
}

// sealedColumns lists all of them in processing order. Only append: cursors refer to them by index.
var sealedColumns = []sealedColumn{
	newSealedColumn(store.SealedRef, "runs", "ref", "account, run, x''", "account", "run"),
	newSealedColumn(store.SealedInput, "runs", "input", "account, run, x''", "account", "run"),
	newSealedColumn(store.SealedOutcome, "runs", "outcome", "account, run, x''", "account", "run"),
	newSealedColumn(store.SealedOutcome, "resumes", "outcome", "account, run, x''", "account", "actor", "id"),
	newSealedColumn(store.SealedPart, "checkpoint_parts", "data", "account, run, name", "account", "run", "name"),
	newSealedColumn(store.SealedData, "interrupts", "data", "account, id, x''", "account", "id"),
	newSealedColumn(store.SealedAnswer, "interrupts", "answer", "account, id, x''", "account", "id"),
	newSealedColumn(store.SealedReceipt, "effects", "receipt", "account, interrupt, x''", "account", "interrupt", "number"),
	newSealedColumn(store.SealedNamedValue, "once", "value", "x'', name, x''", "name"),
	newSealedColumn(store.SealedDocument, "papers", "body", "account, id, kind", "account", "kind", "id"),
}

// newSealedColumn creates the statements for a column. They use the primary key, because a full
// vacuum may change the rowid.
func newSealedColumn(what store.SealedField, table, column, names string, keys ...string) sealedColumn {
	var marks, same []string
	for n, key := range keys {
		marks = append(marks, fmt.Sprint("?", n+1))
		same = append(same, fmt.Sprint(key, " = ?", n+1))
	}
	all := strings.Join(keys, ", ")
	return sealedColumn{
		field: what, keys: len(keys),
		read: fmt.Sprintf("SELECT %s, %s, %s FROM %s WHERE (%s) > (%s) AND %s IS NOT NULL ORDER BY %s LIMIT ?%d",
			names, column, all, table, all, strings.Join(marks, ", "), column, all, len(keys)+1),
		// The bytes are compared too, so that a concurrently changed value is kept.
		write: fmt.Sprintf("UPDATE %s SET %s = ?%d WHERE %s AND %s = ?%d",
			table, column, len(keys)+1, strings.Join(same, " AND "), column, len(keys)+2),
	}
}

// storedValue is a sealed value with its position: the column and the key of the row.
type storedValue struct {
	store.SealedValue
	position    reencryptCursor
	replacement []byte
}

type reencryptCursor struct {
	column int
	key    []any // bytes, texts and numbers; nil is the beginning
}

// Reencrypt passes sealed values to a function and stores the results; see [store.Maintenance]. The
// function is called outside any transaction, so it may be slow and may use the Store.
func (s *Store) Reencrypt(ctx context.Context, after string, limit int, reseal func(store.SealedValue) ([]byte, error)) (next string, err error) {
	const op = "re-encrypt values in"
	place, err := parseReencryptCursor(after)
	if err != nil {
		return "", err
	}
	batch, err := s.view().sealedAfter(ctx, place, pageSize(limit, 1000))
	if err != nil {
		return "", s.fail(ctx, op, err)
	}
	var changed []storedValue
	for _, value := range batch {
		if value.replacement, err = reseal(value.SealedValue); err != nil {
			return "", err
		}
		if value.replacement != nil {
			changed = append(changed, value)
		}
	}
	if len(changed) > 0 {
		if _, err := update(ctx, s, op, func(ctx context.Context, t txn) (struct{}, error) { return struct{}{}, t.replace(ctx, changed) }); err != nil {
			return "", err
		}
	}
	if len(batch) == 0 {
		return "", nil
	}
	return batch[len(batch)-1].position.String(), nil
}

// sealedAfter returns the next values, all of one column. EndExecution copies the outcome of a run
// to resumes, so those are not read before the outcomes of the runs are written.
func (t txn) sealedAfter(ctx context.Context, place reencryptCursor, limit int) (batch []storedValue, err error) {
	//mutate:reencryption-one-table
	for ; place.column < len(sealedColumns) && len(batch) == 0; place = (reencryptCursor{column: place.column + 1}) {
		v := sealedColumns[place.column]
		key := place.key
		if key == nil {
			key = make([]any, v.keys)
			for n := range key {
				key[n] = 0 // sorts before all bytes
			}
		}
		//mutate:reencryption-batch
		batch, err = queryAll(ctx, t, func(row rowScanner) (storedValue, error) { return v.scan(row, place.column) }, v.read, append(key, limit)...)
		if err != nil {
			return nil, err
		}
	}
	return batch, nil
}

func (v sealedColumn) scan(row rowScanner, vault int) (value storedValue, err error) {
	value.Field, value.position = v.field, reencryptCursor{vault, make([]any, v.keys)}
	dest := []any{&value.Account, &value.ID, &value.Part, bytesScanner{&value.Data}}
	for n := range value.position.key {
		dest = append(dest, &value.position.key[n])
	}
	err = row.Scan(dest...)
	for n, part := range value.position.key {
		switch part := part.(type) {
		case nil: // the driver returns nil for an empty blob
			value.position.key[n] = []byte{}
		case string:
			value.position.key[n] = textArg(part)
		}
	}
	return value, err
}

// replace writes only re-encrypted values.
func (t txn) replace(ctx context.Context, changed []storedValue) error {
	if _, err := t.exec(ctx, beginReencryptSQL); err != nil {
		return err
	}
	for _, value := range changed {
		if _, err := t.exec(ctx, sealedColumns[value.position.column].write, append(value.position.key, value.replacement, value.Data)...); err != nil {
			return err
		}
	}
	_, err := t.exec(ctx, endReencryptSQL)
	return err
}

// String returns the cursor as text.
func (p reencryptCursor) String() string {
	words := []string{strconv.Itoa(p.column)}
	for _, part := range p.key {
		switch part := part.(type) {
		case int64:
			words = append(words, strconv.FormatInt(part, 10))
		case []byte:
			words = append(words, "x"+hex.EncodeToString(part))
		case textArg:
			words = append(words, "t"+hex.EncodeToString([]byte(part)))
		}
	}
	return strings.Join(words, ".")
}

// parseReencryptCursor returns ErrInvalid for an invalid cursor.
func parseReencryptCursor(cursor string) (place reencryptCursor, err error) {
	if cursor == "" {
		return reencryptCursor{}, nil
	}
	words := strings.Split(cursor, ".")
	place.column, err = strconv.Atoi(words[0])
	if err != nil || place.column < 0 || place.column >= len(sealedColumns) || len(words)-1 != sealedColumns[place.column].keys {
		return reencryptCursor{}, store.ErrInvalid
	}
	for _, text := range words[1:] {
		var part any
		switch text[:min(1, len(text))] {
		case "x":
			part, err = hex.DecodeString(text[1:])
		case "t":
			var decoded []byte
			decoded, err = hex.DecodeString(text[1:])
			part = textArg(decoded)
		default:
			part, err = strconv.ParseInt(text, 10, 64)
		}
		if err != nil {
			return reencryptCursor{}, store.ErrInvalid
		}
		place.key = append(place.key, part)
	}
	return place, nil
}
