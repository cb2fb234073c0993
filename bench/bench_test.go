package main

import "testing"

// BenchmarkOurs runs our side of each scenario, for profiles:
//
//	go test -run '^$' -bench 'Ours/^wait$/^1KiB$' -cpuprofile cpu.prof
func BenchmarkOurs(b *testing.B) {
	for _, s := range scenarios() {
		benchmark(b, s.name, s.ours)
	}
}

// BenchmarkEino runs the other side.
func BenchmarkEino(b *testing.B) {
	for _, s := range scenarios() {
		benchmark(b, s.name, s.eino)
	}
}

func benchmark(b *testing.B, name string, make func() (*engine, error)) {
	b.Run(name, func(b *testing.B) {
		eng, err := make()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := eng.do(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if eng.stored != nil {
			stored, err := eng.stored(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(stored), "stored-B")
		}
	})
}
