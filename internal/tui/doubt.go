package tui

import (
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/schemaform"
)

// InDoubtOf returns the question about an effect whose outcome is unknown; false if the request is
// of another kind.
func InDoubtOf(r api.Request) (fermata.InDoubtRequest, bool) {
	var doubt fermata.InDoubtRequest
	if r.Kind != fermata.EffectInDoubt.Name() || json.Unmarshal(r.Data, &doubt) != nil || doubt.Action == "" {
		return doubt, false
	}
	return doubt, true
}

// inDoubtActions are the two answers about an effect in doubt.
func inDoubtActions() []action {
	answer := func(happened string) schemaform.Members {
		return schemaform.Members{{Name: "happened", Value: json.RawMessage(happened)}}
	}
	return []action{{verb: verbHappened, base: answer("true")}, {verb: verbNotHappened, base: answer("false")}}
}

// InDoubtSentence asks about an effect in doubt in words. It contains text of other people.
func InDoubtSentence(doubt fermata.InDoubtRequest) string {
	cause := "the program stopped during the call"
	if doubt.Error != "" {
		cause = "the call returned the error \"" + doubt.Error + "\""
	}
	return "The action " + doubt.Action + " was started at " + doubt.Started.UTC().Format(time.DateTime) + " UTC, but " + cause +
		". It is unknown whether it happened. Look for the key " + doubt.Key + " at the target. Did it happen?"
}

// What happens after each of the two answers.
const (
	happenedText    = "It happened: the run continues, and the action is not performed again."
	notHappenedText = "It did not happen: the action is performed now."
)

// doubtMembers are the members of the question that are rendered separately.
var doubtMembers = []string{"action", "args", "digest", "key", "started", "error", "try", "receiptSchema"}

// addDoubt renders the question about an effect in doubt.
func (d *detailScreen) addDoubt(s *renderer, doubt fermata.InDoubtRequest) {
	s.add(nil, nil, cells(InDoubtSentence(doubt), modeLine, styleStrong))
	s.blank()
	for _, v := range []struct {
		verb verb
		text string
	}{{verbHappened, happenedText}, {verbNotHappened, notHappenedText}} {
		front := ownText("  "+verbs[v.verb].key+"  ", styleStrong)
		s.add(front, spaces(5), ownText(v.text, styleNormal))
	}
	s.blank()
	s.rowOf("action", cells(doubt.Action, modeLine, styleStrong))
	s.row("key", doubt.Key)
	if doubt.Attempt > 1 {
		s.row("attempt", countOf(doubt.Attempt, "attempt"))
	}
	s.heading("Arguments")
	s.json(doubt.Args)
	d.addOtherMembers(s, doubtMembers)
}
