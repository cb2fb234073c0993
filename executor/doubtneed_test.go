package executor

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/desk"
)

// Whoever changed the arguments last could not say yes to them, and cannot have them used again either.
func TestDoubtNeed_ExcludesWhomTheActionExcluded(t *testing.T) {
	action := desk.Request{
		Asked: desk.Asked{Authors: []string{"ann", "arno"}, PriorApprovers: []string{"eve"}},
		Need:  desk.Requirement{Exclude: []desk.Duty{desk.LastEditor}, MinAuth: desk.AuthSSO, Verbs: []desk.Verb{desk.VerbApprove, desk.VerbAsk}},
		Edit:  &desk.Edit{By: "bob"},
	}
	var asked desk.Asked
	need := doubtNeed(action, &asked)
	if !slices.Contains(need.Exclude, desk.Author) || !slices.Equal(asked.Authors, []string{"bob"}) || need.MinAuth != desk.AuthSSO ||
		!slices.Contains(need.Verbs, desk.VerbRespond) || slices.Contains(need.Verbs, desk.VerbEscape) || !slices.Equal(asked.PriorApprovers, []string{"eve"}) {
		t.Errorf("%+v, %+v", need, asked)
	}
	action.Need.Exclude, asked = []desk.Duty{desk.Author}, desk.Asked{}
	if need := doubtNeed(action, &asked); !slices.Equal(asked.Authors, []string{"ann", "arno"}) || !slices.Equal(need.Exclude, []desk.Duty{desk.Author}) {
		t.Errorf("%+v, %+v", need, asked)
	}
}
