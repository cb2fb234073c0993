package requests

import (
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// A person who made the last change of the arguments could not approve them, and cannot have the
// action repeated either.
func TestInDoubtRequirement_ExcludesWhomTheActionExcluded(t *testing.T) {
	action := desk.Request{
		Subject:     desk.Subject{Authors: []string{"ann", "arno"}, PriorApprovers: []string{"eve"}},
		Requirement: requirement.Requirement{Exclude: []requirement.Duty{requirement.DutyLastEditor}, MinAuth: requirement.AuthSSO, Verbs: []requirement.Verb{requirement.VerbApprove, requirement.VerbAskClarification}},
		Edit:        &desk.Edit{By: "bob"},
	}
	var asked desk.Subject
	need := inheritedNeed(action, &asked)
	if !slices.Contains(need.Exclude, requirement.DutyAuthor) || !slices.Equal(asked.Authors, []string{"bob"}) || need.MinAuth != requirement.AuthSSO ||
		!slices.Contains(need.Verbs, requirement.VerbRespond) || slices.Contains(need.Verbs, requirement.VerbAbandon) || !slices.Equal(asked.PriorApprovers, []string{"eve"}) {
		t.Errorf("requirement %+v, subject %+v", need, asked)
	}
	action.Requirement.Exclude, asked = []requirement.Duty{requirement.DutyAuthor}, desk.Subject{}
	if need := inheritedNeed(action, &asked); !slices.Equal(asked.Authors, []string{"ann", "arno"}) || !slices.Equal(need.Exclude, []requirement.Duty{requirement.DutyAuthor}) {
		t.Errorf("requirement %+v, subject %+v", need, asked)
	}
}
