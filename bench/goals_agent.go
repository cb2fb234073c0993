package main

import "fmt"

// agents returns the goals of the scenarios with agents.
func (rs results) agents(quick bool) []verdict {
	var verdicts []verdict
	if !quick {
		verdicts = append(verdicts, rs.atMostShare("agent/held", 5))
	}
	return append(verdicts,
		rs.sizeWithin(nestedName(0, 0), nestedName(0, maxAgentDepth), 2),
		rs.sizePerStep(nestedName(0, 0), nestedName(0, 1), nestedName(0, maxAgentDepth), maxAgentDepth),
		rs.sizePerStep(nestedName(4*kib, 0), nestedName(4*kib, 1), nestedName(4*kib, maxAgentDepth), maxAgentDepth))
}

// atMostShare: at most one nth of Eino's CPU time.
func (rs results) atMostShare(name string, n int) verdict {
	v := verdict{Goal: fmt.Sprintf("%s: at most 1/%d of Eino's CPU", name, n)}
	if ratio, ok := rs[name].cpuRatio(); ok {
		v.Judged, v.Met, v.Measured = true, ratio*float64(n) <= 1, fraction(ratio, true)
	}
	return v
}

// sizeWithin: the big one stores at most factor times what the small one does.
func (rs results) sizeWithin(small, big string, factor float64) verdict {
	v := verdict{Goal: fmt.Sprintf("%s → %s: at most %g × the stored bytes", small, big, factor)}
	a, haveSmall := rs[small]
	b, haveBig := rs[big]
	if haveSmall && haveBig {
		growth := float64(b.Ours.Stored) / float64(a.Ours.Stored)
		v.Judged, v.Met, v.Measured = true, growth <= factor, fmt.Sprintf("×%.2f", growth)
	}
	return v
}

// sizePerStep: n steps add n times the stored bytes of the first one.
func (rs results) sizePerStep(none, one, many string, n int) verdict {
	v := verdict{Goal: fmt.Sprintf("%s → %s: each level adds as many stored bytes as the first (×%d)", none, many, n)}
	a, haveNone := rs[none]
	b, haveOne := rs[one]
	c, haveMany := rs[many]
	if haveNone && haveOne && haveMany {
		v.growth(float64(b.Ours.Stored-a.Ours.Stored), float64(c.Ours.Stored-a.Ours.Stored), float64(n))
	}
	return v
}
