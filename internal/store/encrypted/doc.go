// Package encrypted adds encryption at rest to a store. It is the only package that knows keys,
// associated data and compression.
//
//	inner, err := sqlite.Open(ctx, path)          // or postgres
//	sealer, err := encrypted.OpenKeyFile(keyPath) // AES-256-GCM
//	st := encrypted.New(inner, sealer)            // everything written through st is encrypted
//
// Writes take plaintext and encrypt it. Checkpoints are also decrypted when they are loaded. All
// other reads return records as stored: lists can hold thousands of values of which the caller
// needs a few, and one unreadable value must not fail a list. The accessors ([Store.Input],
// [Store.Data], [Store.Body] and so on) decrypt one value of a record.
//
// A value is bound to its place: account, record id, field and part are associated data, so a
// value that was moved to another place cannot be decrypted.
package encrypted
