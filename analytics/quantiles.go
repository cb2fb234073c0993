package analytics

import (
	"maps"
	"math/bits"
	"slices"
)

// quantiles knows the percentiles of durations. A few it keeps; of many it counts how many there are of about the same length, in classes whose
// width is a 64th of their least: a percentile is off by half of that at most, whatever the durations are and in whatever order they come.
type quantiles struct {
	most      int // that are kept
	n         int
	low, high int64
	kept      []int64          // until there are more than most
	buckets   map[int32]uint32 // then; a report over four billion would take days
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

// rank is the place of a percentile among n in their order: the first that so many are not above.
func rank(n, percent int) int { return max(0, (n*percent+99)/100-1) }

// bucketBits is how many classes there are for each doubling, as a power of two.
const bucketBits = 6

// bucketOf is the number of a duration's class. They have the order of the durations; those below 128 ms have one each, and a negative one, which clocks
// that were set can bring about, has that of its opposite with the other sign.
func bucketOf(millis int64) int32 {
	size, sign := uint64(millis), int32(1)
	if millis < 0 {
		size, sign = -size, -1
	}
	shift := max(0, bits.Len64(size)-bucketBits-1)
	return sign * (int32(shift)<<bucketBits + int32(size>>shift))
}

// bucketMiddle is the middle of a class.
func bucketMiddle(class int32) int64 {
	if class < 0 {
		return -bucketMiddle(-class)
	}
	shift := max(0, class>>bucketBits-1)
	least := int64(class-shift<<bucketBits) << shift
	return least + (int64(1)<<shift-1)/2
}
