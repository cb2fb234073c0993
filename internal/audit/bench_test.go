package audit_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/fermata-go/fermata/internal/audit"
)

func BenchmarkAppend(b *testing.B) {
	head, body := audit.EmptyHead("acme"), bodies()[9]
	b.ReportAllocs()
	for b.Loop() {
		entry, next, err := audit.Append(head, audit.NewRecord(noon, alice, place, body))
		if err != nil {
			b.Fatal(err)
		}
		head = next
		b.SetBytes(int64(len(entry.Raw)))
	}
}

func BenchmarkParse(b *testing.B) {
	entry, _, err := audit.Append(audit.EmptyHead("acme"), sample(0, bodies()[9]))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(entry.Raw)))
	for b.Loop() {
		if _, err := audit.Parse(entry.Raw); err != nil {
			b.Fatal(err)
		}
	}
}

// hundredThousand returns a log of 100,000 records, of all kinds in turn.
func hundredThousand(b *testing.B) *audit.Memory {
	m, all := new(audit.Memory), bodies()
	for i := range 100_000 {
		if _, err := m.Append(b.Context(), "acme", audit.NewRecord(noon, alice, place, all[i%len(all)])); err != nil {
			b.Fatal(err)
		}
	}
	return m
}

func BenchmarkVerify100k(b *testing.B) {
	m, key := hundredThousand(b), audit.NewKey()
	if _, err := audit.CreateCheckpoint(b.Context(), m, "acme", key); err != nil {
		b.Fatal(err)
	}
	head, _ := m.Head(b.Context(), "acme")
	trust := trustIn(b, key, head)
	var file bytes.Buffer
	if _, err := audit.Export(b.Context(), m, "acme", audit.Range{}, audit.JSONL, &file); err != nil {
		b.Fatal(err)
	}
	b.Run("log", func(b *testing.B) {
		for b.Loop() {
			if _, err := audit.Verify(b.Context(), m, "acme", audit.VerifyOptions{Trust: trust}, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("file", func(b *testing.B) {
		b.SetBytes(int64(file.Len()))
		for b.Loop() {
			if _, err := audit.VerifyFile(bytes.NewReader(file.Bytes()), "", audit.VerifyOptions{Trust: trust}, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("root", func(b *testing.B) {
		for b.Loop() {
			if head.Root() == (audit.Hash{}) {
				b.Fatal("no root")
			}
		}
	})
	b.Run("proof", func(b *testing.B) {
		for b.Loop() {
			if _, err := audit.Prove(b.Context(), m, "acme", 4711, trust, io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}
