package dialog

import "testing"

func TestResolve_RelevanceFollowsFromTheMention(t *testing.T) {
	annas := []Option{{ID: "s", Label: "Anna Schmidt"}, {ID: "m", Label: "Anna Müller", Aliases: []string{"Annie"}}}
	for name, test := range map[string]struct {
		mention   Mention
		option    string
		relevance Relevance // "" for no question
	}{
		"no candidate":         {Mention{Name: "Anna"}, "", Blocking},
		"none, by the way":     {Mention{Name: "Anna", Incidental: true}, "", Blocking},
		"one candidate":        {Mention{Name: "Anna", Candidates: annas[:1]}, "s", ""},
		"exact label":          {Mention{Name: "anna muller", Candidates: annas}, "m", ""},
		"exact alias":          {Mention{Name: "Annie", Candidates: annas, Incidental: true}, "m", ""},
		"ambiguous":            {Mention{Name: "Anna", Candidates: annas}, "", Blocking},
		"ambiguous by the way": {Mention{Name: "Anna", Candidates: annas, Incidental: true}, "s", NonBlocking},
	} {
		test.mention.Ask = Question{Text: "Which Anna?", AllowOther: true, Facts: []Fact{{Name: "likes", Value: "tea"}}}
		r := test.mention.Resolve()
		relevance := Relevance("")
		if q := r.Question; q != nil {
			relevance = q.Relevance
			if err := q.Validate(); err != nil || q.Text != "Which Anna?" || len(q.Facts) != 1 || !q.AllowOther || q.Default != r.Option {
				t.Errorf("%s: %+v, %v", name, q, err)
			}
		}
		if r.Option != test.option || relevance != test.relevance {
			t.Errorf("%s: %q, %q", name, r.Option, relevance)
		}
	}
}

func TestResolve_UnknownNameIsAskedAbout(t *testing.T) {
	m := Mention{Name: "Bob", Ask: Question{Text: "Which Bob?", AllowOther: true, Remember: &Remember{Key: "bob", Scope: ScopeUser}}, Unknown: "I do not know Bob. Who do you mean?"}
	q := m.Resolve().Question
	if q == nil || q.Kind != Clarification || q.Text != m.Unknown || !q.AllowOther || q.Remember != nil {
		t.Errorf("%+v", q)
	}
}
