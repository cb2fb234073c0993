//go:build unix

package chaos

import (
	"slices"

	"github.com/fermata-go/fermata/audit"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/store"
)

// What is known to go wrong, and is passed over as long as it does: each has a mark by which it can be told from everything else. Whoever mends one of
// them takes it out here.
const (
	// A word that is counted, or that the desk refuses, is kept by a paper; one that the store refuses, by the store. If the same resume id comes twice at
	// the moment at which its request ends, each can keep another answer.
	keptTwice = "a resume id has an answer of the desk and another one of the store"
	// An effect that knows its key is called again by the next owner, also if the ledger has its receipt; the report counts the lines, and not the keys.
	oneKey = "the report takes an effect that was repeated under its own key for two"
	// A page that somebody told and died before they could say so is for nothing when the next one comes to it, and gets no all-clear of its own. If it came
	// after the one that went with the end, the incident stays open.
	openMoot = "a page stays open: it was told by one who died, and was for nothing to the next"
)

// keptTwice reports whether what was said under an id has two answers on record.
func (d *docket) keptTwice(id decisionID) bool {
	byStore := slices.ContainsFunc(d.run.Resumes, func(r store.Resume) bool { return r.Actor == id.actor && r.ID == id.id })
	byDesk := slices.ContainsFunc(d.run.Papers, func(p store.Paper) bool { return p.Kind == "resume" && p.ID == ident.Derive("res", id.actor, id.id) })
	return byStore && byDesk
}

// openMoot reports whether a page was tried again when it was for nothing.
func (d *docket) openMoot(key string) bool {
	return slices.ContainsFunc(d.notices, func(n posted) bool { return n.Key == key && n.moot() && n.became().Tries > 1 })
}

// oneKey reports whether a finding is about an effect whose lines have all the same key.
func (d *docket) oneKey(finding audit.Finding) bool {
	keys := make(map[string]bool)
	for _, e := range d.run.Effects {
		keys[e.Key] = true
	}
	return finding.Code == audit.RanTwice && len(keys) == 1
}
