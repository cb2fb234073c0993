package store

import (
	"context"

	"github.com/fermata-go/fermata/internal/chain"
)

// AuditLog stores a hash chain of audit lines for each account. A line is added in the transaction
// of the change that it records, see [Writes], and never changes.
type AuditLog interface {
	// AuditHead returns the head of an account's chain, or the zero Head if it has no lines.
	AuditHead(ctx context.Context, account string) (chain.Head, error)

	// AuditAccounts returns the accounts that have a line, in an order chosen by the store, and the
	// cursor for the next call, or "" at the end. after is "" at the beginning; limit is at most
	// 1000, and 0 means 1000.
	AuditAccounts(ctx context.Context, after string, limit int) (accounts []string, next string, err error)

	// AuditLines returns the lines with a number above after, in order. limit is at most 1000, and
	// 0 means 1000.
	AuditLines(ctx context.Context, account string, after int64, limit int) ([]AuditLine, error)
}

// AuditLine is a line of an audit log as it is stored.
type AuditLine struct {
	Seq int64
	Raw []byte
}
