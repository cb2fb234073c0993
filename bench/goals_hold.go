package main

import "fmt"

// judge judges the scenarios hold/…. Times of a quick run, and sizes of a few runs, are not judged.
func (h holdReport) judge(quick bool) (verdicts []verdict) {
	if quick {
		return nil
	}
	for _, row := range h.Rows {
		verdicts = append(verdicts, row.fastEnough(sideOurs, sideRawSQL, 0.4, "40 % of raw SQL", percent),
			row.fastEnough(sideOurs, sideLangGraph, 20, "20 × LangGraph", multiple))
	}
	for _, s := range h.Sizes {
		v := verdict{Goal: fmt.Sprintf("%s: at most 1/5 of LangGraph's bytes on disk", s.name())}
		if ratio, ok := s.ratio(); ok {
			v.Judged, v.Met, v.Measured = true, ratio <= 0.2, fraction(ratio, true)
		}
		verdicts = append(verdicts, v)
	}
	return verdicts
}

// fastEnough: one side has at least factor times the rate of another.
func (r holdRow) fastEnough(side, other string, factor float64, words string, write func(float64, bool) string) verdict {
	v := verdict{Goal: fmt.Sprintf("%s, %s: at least %s", r.Name, r.Operation, words)}
	if ratio, ok := r.ratio(side, other); ok {
		v.Judged, v.Met, v.Measured = true, ratio >= factor, write(ratio, true)
	}
	return v
}
