package requests

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
)

// A person who made the last change of the arguments could not approve them, and cannot have the
// action repeated either.
func TestInDoubtRequirement_ExcludesWhomTheActionExcluded(t *testing.T) {
	action := desk.Request{
		Subject:     desk.Subject{Authors: []string{"ann", "arno"}, PriorApprovers: []string{"eve"}},
		Requirement: desk.Requirement{Exclude: []desk.Duty{desk.DutyLastEditor}, MinAuth: desk.AuthSSO, Verbs: []desk.Verb{desk.VerbApprove, desk.VerbAskClarification}},
		Edit:        &desk.Edit{By: "bob"},
	}
	var asked desk.Subject
	need := inheritedNeed(action, &asked)
	if !slices.Contains(need.Exclude, desk.DutyAuthor) || !slices.Equal(asked.Authors, []string{"bob"}) || need.MinAuth != desk.AuthSSO ||
		!slices.Contains(need.Verbs, desk.VerbRespond) || slices.Contains(need.Verbs, desk.VerbAbandon) || !slices.Equal(asked.PriorApprovers, []string{"eve"}) {
		t.Errorf("requirement %+v, subject %+v", need, asked)
	}
	action.Requirement.Exclude, asked = []desk.Duty{desk.DutyAuthor}, desk.Subject{}
	if need := inheritedNeed(action, &asked); !slices.Equal(asked.Authors, []string{"ann", "arno"}) || !slices.Equal(need.Exclude, []desk.Duty{desk.DutyAuthor}) {
		t.Errorf("requirement %+v, subject %+v", need, asked)
	}
}
