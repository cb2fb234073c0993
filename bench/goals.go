package main

import "fmt"

// verdict is the result of one goal. Met has no meaning if the goal was not judged.
type verdict struct {
	Goal     string `json:"goal"`
	Measured string `json:"measured"`
	Judged   bool   `json:"judged"`
	Met      bool   `json:"met"`
}

func (v verdict) word() string {
	switch {
	case !v.Judged:
		return "not judged"
	case v.Met:
		return "met"
	}
	return "**NOT met**"
}

// slack is how much worse than linear still counts as linear: caches are finite, and the machine is
// shared.
const slack = 1.3

// results are the measurements by scenario name. Scenarios may be missing.
type results map[string]result

// judge compares the measurements with the goals. Times of a quick run are not judged.
func judge(measured []result, quick bool) []verdict {
	rs := make(results, len(measured))
	for _, r := range measured {
		rs[r.Name] = r
	}
	var verdicts []verdict
	if !quick {
		verdicts = append(verdicts, rs.atMostTenth("line/10"), rs.atMostTenth("wait/1KiB"))
	}
	verdicts = append(verdicts, rs.storedOnce("nest/5", 64*kib))
	if !quick {
		for _, form := range []string{"fan/nodes", "fan/each", "fan/flows", "fan-each-step/nodes", "fan-each-step/each", "fan-each-step/flows"} {
			verdicts = append(verdicts, rs.growsLinearly(form+"/100", form+"/1000", 10)...)
		}
		for _, form := range []string{"wait", "wait-each-step"} {
			verdicts = append(verdicts, rs.growsLinearly(form+"/64KiB", form+"/1MiB", 16)...)
		}
	}
	verdicts = append(verdicts, rs.sizeGrowsLinearly("nest/5", "nest/10", 2))
	if !quick {
		verdicts = append(verdicts, rs.policies()...)
	}
	return append(verdicts, rs.agents(quick)...)
}

// atMostTenth: at most a tenth of Eino's CPU time.
func (rs results) atMostTenth(name string) verdict {
	v := verdict{Goal: fmt.Sprintf("%s: at most 1/10 of Eino's CPU", name)}
	if ratio, ok := rs[name].cpuRatio(); ok {
		v.Judged, v.Met, v.Measured = true, ratio <= 0.1, fraction(ratio, true)
	}
	return v
}

// storedOnce: the state is stored once at any depth.
func (rs results) storedOnce(name string, state int) verdict {
	limit := state*6/5 + 2*kib
	v := verdict{Goal: fmt.Sprintf("%s: at most 1.2 × state + 2 KiB stored (%s bytes)", name, grouped(limit))}
	if r, ok := rs[name]; ok {
		v.Judged, v.Met, v.Measured = true, r.Ours.Stored <= limit, grouped(r.Ours.Stored)
	}
	return v
}

// growsLinearly: factor times as much work costs factor times as much, in every respect.
func (rs results) growsLinearly(small, big string, factor float64) []verdict {
	cpu := verdict{Goal: fmt.Sprintf("%s → %s: CPU no worse than linear (×%g)", small, big, factor)}
	allocs := verdict{Goal: fmt.Sprintf("%s → %s: allocations no worse than linear (×%g)", small, big, factor)}
	a, haveSmall := rs[small]
	b, haveBig := rs[big]
	if haveSmall && haveBig {
		cpu.growth(a.Ours.Best.CPU, b.Ours.Best.CPU, factor)
		allocs.growth(a.Ours.Best.Allocs, b.Ours.Best.Allocs, factor)
	}
	return []verdict{cpu, allocs, rs.sizeGrowsLinearly(small, big, factor)}
}

func (rs results) sizeGrowsLinearly(small, big string, factor float64) verdict {
	v := verdict{Goal: fmt.Sprintf("%s → %s: stored bytes no worse than linear (×%g)", small, big, factor)}
	a, haveSmall := rs[small]
	b, haveBig := rs[big]
	if haveSmall && haveBig {
		v.growth(float64(a.Ours.Stored), float64(b.Ours.Stored), factor)
	}
	return v
}

func (v *verdict) growth(small, big, factor float64) {
	growth := big / small
	v.Judged, v.Met, v.Measured = true, growth <= slack*factor, fmt.Sprintf("×%.1f", growth)
}
