package audit_test

import (
	"context"
	"iter"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

// tampered is a log with records that an attacker changed.
type tampered struct {
	*audit.Memory
	rows [][]byte
}

func (l tampered) Records(_ context.Context, _ string, from, to int64) iter.Seq2[[]byte, error] {
	end := int64(len(l.rows))
	if to > 0 {
		end = min(to, end)
	}
	return seq(l.rows[min(max(from, 1)-1, end):end]...)
}

// rows returns the stored records.
func rows(t testing.TB, log audit.Log, account string) [][]byte {
	t.Helper()
	var all [][]byte
	for raw, err := range log.Records(t.Context(), account, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, slices.Clone(raw))
	}
	return all
}
