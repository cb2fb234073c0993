package seedmodel

// The invariants, with the numbers of the current protocol.
const (
	noConflict   = "I1: two opposite decisions on one gate were both reported as final"
	noTwoAnswers = "I3: one resume id got two answers"
	once         = "I4: an effect happened twice"
	onlyApproved = "I4: an effect happened without an approval"
	noBypass     = "I5: a gate was decided by a decision on another gate"
	noLateEffect = "I11: an effect happened although its gate was reported as expired"
	overIsOver   = "I11: an expired run became completed"
	oneOwner     = "I16: two requests work on the run at the same time"
	ownLock      = "I16: a request freed the lock of another"
)

// brokenInvariants returns the invariants that do not hold.
func brokenInvariants(w world) []string {
	var list []string
	check := func(promise string, holds bool) {
		if !holds {
			list = append(list, promise)
		}
	}
	said := w.said()
	for q := range maxQuestions {
		happened, told := w.outside.happened[q], w.outside.told[q]
		check(once, happened <= 1)
		check(onlyApproved, happened == 0 || said[q]&approve != 0)
		check(noBypass, w.outside.decided[q]&^said[q] == 0)
		check(noLateEffect, happened == 0 || told&expire == 0)
		check(noConflict, told == 0 || told&(told-1) == 0)
	}
	check(noTwoAnswers, !w.twoAnswers())
	check(oneOwner, w.owners() <= 1)
	check(ownLock, !w.outside.robbed)
	check(overIsOver, !w.outside.revived)
	return list
}

// said returns what people decided, whether or not it was applied.
func (w world) said() (said [maxQuestions]decision) {
	for _, r := range w.requests {
		said[r.question] |= r.decision
	}
	return said
}

func (w world) owners() int {
	owners := 0
	for _, r := range w.requests {
		if r.inside() {
			owners++
		}
	}
	return owners
}

// twoAnswers reports whether one resume id was told that it counts, and also that another one does.
func (w world) twoAnswers() bool {
	for _, a := range w.requests {
		for _, b := range w.requests {
			if a.id != "" && a.id == b.id && a.stage == answered && b.stage == conflicted {
				return true
			}
		}
	}
	return false
}

// settled reports whether the run has ended, or all decisions on it count.
func settled(w world) bool {
	if w.row.status != active || w.provider.stopped {
		return true
	}
	for _, r := range w.requests {
		if r.person != "" && w.outside.decided[r.question] == 0 {
			return false
		}
	}
	return true
}
