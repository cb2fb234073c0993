package memory_test

import (
	"bytes"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
)

// fiveParts is a typical change of one step of a small graph.
func fiveParts() store.Delta {
	data := bytes.Repeat([]byte("x"), 64)
	return store.Delta{Put: []store.Part{
		{Name: "run", Data: data},
		{Name: "state", Data: data},
		{Name: "node/draft", Data: data},
		{Name: "node/review", Data: data},
		{Name: "interrupt/1", Data: data},
	}}
}

func BenchmarkSave(b *testing.B) {
	checkpoints := memory.New()
	key, delta := store.Key{Account: "acme", Run: "run-1"}, fiveParts()
	version := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if version, err = checkpoints.Save(b.Context(), key, version, delta); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreateAndDelete(b *testing.B) {
	checkpoints := memory.New()
	key, delta := store.Key{Account: "acme", Run: "run-1"}, fiveParts()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := checkpoints.Save(b.Context(), key, 0, delta); err != nil {
			b.Fatal(err)
		}
		if err := checkpoints.Delete(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	checkpoints := memory.New()
	key := store.Key{Account: "acme", Run: "run-1"}
	if _, err := checkpoints.Save(b.Context(), key, 0, fiveParts()); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := checkpoints.Load(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
}
