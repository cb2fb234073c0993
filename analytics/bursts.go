package analytics

import (
	"cmp"
	"maps"
	"slices"
)

// bursts knows how many words there were within a minute at most. They come in any order, so that nothing can be forgotten on the way: the times of
// a few thousand are kept; of more, how many there were in each half minute of the clock. Of those there are only so many, however many words there are.
type bursts struct {
	words  int // whose times are kept
	most   int // half minutes that are kept
	at     []int64
	halves map[int32]int32 // once there are more words
	seen   int             // the most within a minute when half minutes were last forgotten
}

const (
	minute     = 60_000
	halfMinute = minute / 2
)

func (b *bursts) add(at int64) {
	if b.halves == nil {
		b.at = append(b.at, at)
		if len(b.at) <= b.words {
			return
		}
		b.halves = make(map[int32]int32)
		for _, one := range b.at {
			b.count(one)
		}
		b.at = nil
		return
	}
	b.count(at)
}

func (b *bursts) count(at int64) {
	b.halves[int32(at/halfMinute)]++
	if len(b.halves) > b.most {
		b.forget()
	}
}

// forget drops the quieter half of the half minutes, of equals the earlier ones.
func (b *bursts) forget() {
	b.seen = b.burst()
	quiet := slices.SortedFunc(maps.Keys(b.halves), func(x, y int32) int { return cmp.Or(cmp.Compare(b.halves[x], b.halves[y]), cmp.Compare(x, y)) })
	for _, half := range quiet[:(len(quiet)+1)/2] {
		delete(b.halves, half)
	}
}

func (b *bursts) burst() (most int) {
	if b.halves == nil {
		return mostWithin(b.at, minute)
	}
	most = b.seen
	for half, n := range b.halves {
		most = max(most, int(n+b.halves[half+1]))
	}
	return most
}

// mostWithin is how many of these times lie within a span at most.
func mostWithin(times []int64, span int64) (most int) {
	sorted, first := slices.Sorted(slices.Values(times)), 0
	for i, at := range sorted {
		for at-sorted[first] > span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
