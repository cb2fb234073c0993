package analytics

import (
	"cmp"
	"maps"
	"slices"
)

// burstCounter finds the maximum number of votes within a minute. Votes come in any order, so it
// cannot discard times as it goes. It keeps up to a few thousand times. Beyond that it counts the
// votes per half minute, for a limited number of half minutes.
type burstCounter struct {
	maxTimes       int // times that are kept
	maxHalfMinutes int // half minutes that are kept
	at             []int64
	halfMinutes    map[int32]int32 // used after maxTimes votes
	evictedMax     int             // the maximum at the last eviction
}

const (
	minute     = 60_000
	halfMinute = minute / 2
)

func (b *burstCounter) add(at int64) {
	if b.halfMinutes == nil {
		b.at = append(b.at, at)
		if len(b.at) <= b.maxTimes {
			return
		}
		b.halfMinutes = make(map[int32]int32)
		for _, one := range b.at {
			b.count(one)
		}
		b.at = nil
		return
	}
	b.count(at)
}

func (b *burstCounter) count(at int64) {
	b.halfMinutes[int32(at/halfMinute)]++
	if len(b.halfMinutes) > b.maxHalfMinutes {
		b.evict()
	}
}

// evict removes the quieter half of the half minutes. Of equal ones it removes the earlier.
func (b *burstCounter) evict() {
	b.evictedMax = b.max()
	quiet := slices.SortedFunc(maps.Keys(b.halfMinutes), func(x, y int32) int {
		return cmp.Or(cmp.Compare(b.halfMinutes[x], b.halfMinutes[y]), cmp.Compare(x, y))
	})
	for _, half := range quiet[:(len(quiet)+1)/2] {
		delete(b.halfMinutes, half)
	}
}

func (b *burstCounter) max() (most int) {
	if b.halfMinutes == nil {
		return maxWithin(b.at, minute)
	}
	most = b.evictedMax
	for half, n := range b.halfMinutes {
		most = max(most, int(n+b.halfMinutes[half+1]))
	}
	return most
}

// maxWithin returns the maximum number of times within a span.
func maxWithin(times []int64, span int64) (most int) {
	sorted, first := slices.Sorted(slices.Values(times)), 0
	for i, at := range sorted {
		for at-sorted[first] > span {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}
