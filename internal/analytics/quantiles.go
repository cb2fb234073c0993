package analytics

import (
	"maps"
	"math/bits"
	"slices"
)

// quantiles computes percentiles of durations. It keeps a limited number of durations. Beyond that
// it counts them in buckets whose width is 1/64 of their lower bound, so that a percentile is off
// by at most half of that, for any durations in any order.
type quantiles struct {
	most      int // durations that are kept
	n         int
	low, high int64
	kept      []int64          // until there are more than most
	buckets   map[int32]uint32 // after that; four billion entries are out of reach
}

func (s *quantiles) add(millis int64) {
	if s.n == 0 {
		s.low, s.high = millis, millis
	}
	s.n++
	s.low, s.high = min(s.low, millis), max(s.high, millis)
	if s.buckets != nil {
		s.buckets[bucketOf(millis)]++
		return
	}
	s.kept = append(s.kept, millis)
	if len(s.kept) > s.most {
		s.buckets = make(map[int32]uint32)
		for _, one := range s.kept {
			s.buckets[bucketOf(one)]++
		}
		s.kept = nil
	}
}

func (s *quantiles) percentiles() Percentiles {
	ranks := [...]int{rank(s.n, 50), rank(s.n, 90), rank(s.n, 99)}
	var at [len(ranks)]float64
	switch {
	case s.n == 0:
	case s.buckets == nil:
		sorted := slices.Sorted(slices.Values(s.kept))
		for i, r := range ranks {
			at[i] = seconds(sorted[r])
		}
	default:
		passed, i := 0, 0
		for _, c := range slices.Sorted(maps.Keys(s.buckets)) {
			passed += int(s.buckets[c])
			for ; i < len(ranks) && ranks[i] < passed; i++ {
				at[i] = seconds(min(max(bucketMiddle(c), s.low), s.high))
			}
		}
	}
	return Percentiles{N: s.n, P50: at[0], P90: at[1], P99: at[2]}
}

// rank returns the index of a percentile among n sorted values.
func rank(n, percent int) int { return max(0, (n*percent+99)/100-1) }

// bucketBits is the binary logarithm of the number of buckets per doubling.
const bucketBits = 6

// bucketOf returns the bucket of a duration. Buckets are ordered like durations. Those below 128 ms
// have a width of 1 ms. A negative duration, which an adjusted clock can cause, has the negated
// bucket of its absolute value.
func bucketOf(millis int64) int32 {
	size, sign := uint64(millis), int32(1)
	if millis < 0 {
		size, sign = -size, -1
	}
	shift := max(0, bits.Len64(size)-bucketBits-1)
	return sign * (int32(shift)<<bucketBits + int32(size>>shift))
}

// bucketMiddle returns the middle of a bucket.
func bucketMiddle(class int32) int64 {
	if class < 0 {
		return -bucketMiddle(-class)
	}
	shift := max(0, class>>bucketBits-1)
	least := int64(class-shift<<bucketBits) << shift
	return least + (int64(1)<<shift-1)/2
}
