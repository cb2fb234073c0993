package main

// measured is one side of a scenario.
type measured struct {
	// Best has the minimum of every value over all rounds.
	Best   sample   `json:"best"`
	Rounds []sample `json:"rounds,omitempty"`
	// Stored is the stored bytes while the run waits.
	Stored int `json:"stored,omitempty"`
}

// result is the result of a scenario.
type result struct {
	Name        string    `json:"name"`
	Description string    `json:"what"`
	Unequal     string    `json:"unequal,omitempty"`
	Ours        measured  `json:"ours"`
	Eino        *measured `json:"eino,omitempty"`
}

// newResult takes our side and, if there is one, Eino's.
func newResult(s scenario, sides []*side) result {
	r := result{Name: s.name, Description: s.description, Unequal: s.unequal, Ours: newMeasured(sides[0])}
	if len(sides) > 1 {
		eino := newMeasured(sides[1])
		r.Eino = &eino
	}
	return r
}

func newMeasured(s *side) measured {
	m := measured{Rounds: s.rounds, Stored: s.stored}
	for i, one := range s.rounds {
		if i == 0 {
			m.Best = one
		}
		m.Best = minimum(m.Best, one)
	}
	return m
}

// cpuRatio and allocRatio are our cost per unit of Eino's cost. known is false if that was not
// measured.
func (r result) cpuRatio() (ratio float64, known bool) {
	if r.Eino == nil || r.Eino.Best.CPU == 0 {
		return 0, false
	}
	return r.Ours.Best.CPU / r.Eino.Best.CPU, true
}

func (r result) allocRatio() (ratio float64, known bool) {
	if r.Eino == nil || r.Eino.Best.Allocs == 0 {
		return 0, false
	}
	return r.Ours.Best.Allocs / r.Eino.Best.Allocs, true
}
