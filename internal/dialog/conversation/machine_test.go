package conversation

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

func TestValidate_RejectsQuestionsThatCannotBeAsked(t *testing.T) {
	annas := []Option{{ID: "a", Label: "Anna"}}
	for name, q := range map[string]Question{
		"no kind":                             {Text: "?"},
		"no text":                             {Kind: Clarification},
		"disambiguation without options":      {Kind: Disambiguation, Text: "?"},
		"confirmation with options":           {Kind: Confirmation, Text: "?", Options: annas},
		"remembered confirmation":             {Kind: Confirmation, Text: "?", Remember: &Remember{Key: "k", Scope: ScopeUser}},
		"non-blocking confirmation":           {Kind: Confirmation, Text: "?", Relevance: NonBlocking},
		"reserved id":                         {Kind: Disambiguation, Text: "?", Options: []Option{{ID: "yes", Label: "Anna"}}},
		"two options with one id":             {Kind: Disambiguation, Text: "?", Options: []Option{{ID: "a", Label: "A"}, {ID: "a", Label: "B"}}},
		"unknown default":                     {Kind: Disambiguation, Text: "?", Options: annas, Default: "b"},
		"non-blocking choice without default": {Kind: Disambiguation, Text: "?", Options: annas, Relevance: NonBlocking},
		"form without fields":                 {Kind: Form, Text: "?"},
		"choice field without choices":        {Kind: Form, Text: "?", Fields: []Field{{Name: "a", Type: ChoiceField}}},
		"a text that must not be past":        {Kind: Form, Text: "?", Fields: []Field{{Name: "a", NotPast: true}}},
		"unknown risk":                        {Kind: Confirmation, Text: "?", Risk: 4},
		"memory without scope":                {Kind: Disambiguation, Text: "?", Options: annas, Remember: &Remember{Key: "k"}},
	} {
		if err := q.Validate(); !errors.Is(err, ErrInvalidQuestion) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHandle_ErrorChangesNothing(t *testing.T) {
	var m Machine
	c := Conversation{ID: "c"}
	q := Question{Kind: Disambiguation, Text: "Which?", Options: []Option{{ID: "a", Label: "A"}, {ID: "b", Label: "B"}}}
	if _, err := m.Add(&c, "q", Target{Run: "r"}, q, Known{}, start); err != nil {
		t.Fatal(err)
	}
	confirm := Question{Kind: Confirmation, Text: "Sure?"}
	c.Modality = Voice
	if _, err := m.Add(&c, "later", Target{Run: "r"}, confirm, Known{}, start); err != nil {
		t.Fatal(err)
	}
	m.Next(&c, start)
	for name, test := range map[string]struct {
		msg  Message
		want error
	}{
		"unknown question":            {Message{Question: "x", Choice: "a"}, ErrUnknownQuestion},
		"unknown option":              {Message{Question: "q", Choice: "c"}, ErrInvalidReply},
		"yes to a choice":             {Message{Question: "q", Choice: ChoiceYes}, ErrInvalidReply},
		"button without its question": {Message{Choice: "a"}, ErrInvalidReply},
		"confirmation not yet asked":  {Message{Question: "later", Choice: ChoiceYes}, ErrInvalidReply},
		"a part of a form":            {Message{Replies: map[string]Reply{"q": {Choice: "a"}, "x": {Text: "b"}}}, ErrUnknownQuestion},
	} {
		before, _ := json.Marshal(c) // has no value that cannot be encoded
		_, err := m.Handle(&c, test.msg, Known{})
		after, _ := json.Marshal(c)
		if !errors.Is(err, test.want) || string(before) != string(after) {
			t.Errorf("%s: %v, changed: %v", name, err, string(before) != string(after))
		}
	}
}

func TestWording_VariantIsTheSameForAConversation(t *testing.T) {
	var w wording
	seen := make(map[string]bool)
	for _, id := range strings.Split("abcdefghijklmnop", "") {
		c := &Conversation{ID: id}
		_, first := w.say(c, "confirmation", "q", "Sure?")
		for range 3 {
			if _, again := w.say(c, "confirmation", "q", "Sure?"); again != first {
				t.Errorf("conversation %s gets %s and %s", id, first, again)
			}
		}
		seen[first] = true
	}
	if len(seen) != 2 {
		t.Errorf("variants %v, want both", seen)
	}
}

func TestWording_TemplateOfTheChannelComesFirst(t *testing.T) {
	w := wording{Templates: map[Language]map[string][]string{English: {"phone/confirmation.voice": {"{q} Press 1."}, "confirmation": {"{q} y/n"}}}}
	for _, test := range []struct {
		channel  string
		modality Modality
		language Language
		want     string
	}{
		{"phone", Voice, English, "phone/confirmation.voice.A"},
		{"phone", Text, English, "confirmation.A"},
		{"web", Text, "it", "confirmation.A"}, // an unknown language is English
	} {
		_, got := w.say(&Conversation{Channel: test.channel, Modality: test.modality, Language: test.language}, "confirmation", "q", "Sure?")
		if got != test.want {
			t.Errorf("%v: %s", test, got)
		}
	}
}

func TestTemplates_EveryLanguageHasEveryTemplate(t *testing.T) {
	for language, set := range templates {
		for name, variants := range templates[English] {
			if len(set[name]) != len(variants) {
				t.Errorf("%s has %d variants of %s, English %d", language, len(set[name]), name, len(variants))
			}
		}
		if len(set) != len(templates[English]) {
			t.Errorf("%s has %d templates, English %d", language, len(set), len(templates[English]))
		}
	}
}

func TestLexicon_PhrasesAreFoldedAndHaveOneMeaning(t *testing.T) {
	for language, l := range lexicons {
		meaning := make(map[string]string)
		for name, list := range map[string][]string{"yes": l.yes, "agreement": l.agreement, "hedge": l.hedges, "no": l.no, "escape": l.escape, "escape all": l.escapeAll, "other": l.other, "more": l.more, "counter": l.counter} {
			for _, phrase := range list {
				if phrase != fold.Text(phrase) {
					t.Errorf("%s: %q is not folded", language, phrase)
				}
				if other, ok := meaning[phrase]; ok && other != name {
					t.Errorf("%s: %q means %s and %s", language, phrase, other, name)
				}
				meaning[phrase] = name
			}
		}
	}
}

func TestAsk_WordsAroundQuestionAreInItsLanguage(t *testing.T) {
	var m Machine
	c := Conversation{ID: "c", Language: German}
	for id, language := range map[string]Language{"own": "", "english": English} {
		q := Question{Kind: Confirmation, Text: "Anna?", Language: language}
		if _, err := m.Add(&c, id, Target{Run: "r"}, q, Known{}, start); err != nil {
			t.Fatal(err)
		}
	}
	for id, want := range map[string][2]string{"own": {"Ja oder nein?", "Ja"}, "english": {"Yes or no?", "Yes"}} {
		a := c.Find(id)
		p := m.words().ask(&c, a)
		if !strings.HasSuffix(p.Text, want[0]) || p.Choices[0].Label != want[1] {
			t.Errorf("%s: %q with %q", id, p.Text, p.Choices[0].Label)
		}
		if again := m.repeat(&c, a, "unclear"); (strings.Contains(again.Text, "understand")) != (id == "english") {
			t.Errorf("%s, again: %q", id, again.Text)
		}
	}
}

// A run that is done again gets an earlier answer only if it means the same as before, and if a
// wrong one has no high risk.
func TestAdd_ReusesOnlyAnswersThatMeanTheSame(t *testing.T) {
	legal := Option{ID: "anna", Label: "Anna Meier", Facts: map[string]string{"team": "legal"}}
	before := Question{Kind: Disambiguation, Text: "Which Anna?", AllowOther: true, Options: []Option{legal, {ID: "tom", Label: "Tom"}}}
	with := func(change func(*Question)) Question {
		q := before
		q.Options = slices.Clone(before.Options)
		change(&q)
		return q
	}
	for name, c := range map[string]struct {
		answer Answer
		again  Question
		want   bool
	}{
		"the same question":    {Answer{Option: "anna"}, before, true},
		"another alias":        {Answer{Option: "anna"}, with(func(q *Question) { q.Options[0].Aliases = []string{"Annie"} }), true},
		"another other option": {Answer{Option: "anna"}, with(func(q *Question) { q.Options[1].Label = "Tim" }), true},
		"a created entity":     {Answer{Option: "ent_1", Text: "Eva"}, before, true},
		"a text":               {Answer{Text: "Eva"}, before, true},
		"another text":         {Answer{Option: "anna"}, with(func(q *Question) { q.Text = "Which one?" }), false},
		"another label":        {Answer{Option: "anna"}, with(func(q *Question) { q.Options[0].Label = "Anna Schmidt" }), false},
		"another fact":         {Answer{Option: "anna"}, with(func(q *Question) { q.Options[0].Facts = map[string]string{"team": "sales"} }), false},
		"no fact":              {Answer{Option: "anna"}, with(func(q *Question) { q.Options[0].Facts = nil }), false},
		"without the option":   {Answer{Option: "anna"}, with(func(q *Question) { q.Options = q.Options[1:] }), false},
		"without an entity":    {Answer{Option: "ent_1"}, with(func(q *Question) { q.AllowOther = false }), false},
		"low risk":             {Answer{Option: "anna"}, with(func(q *Question) { q.Risk = RiskLow }), true},
		"high risk":            {Answer{Option: "anna"}, with(func(q *Question) { q.Risk = RiskHigh }), false},
	} {
		t.Run(name, func(t *testing.T) {
			line := Conversation{ID: "c", Questions: []*Asking{{ID: "before", Question: before, Target: Target{Run: "old"}, Status: Answered, Answer: &c.answer}}}
			var m Machine
			r, err := m.Add(&line, "again", Target{Run: "new", Interrupt: "i"}, c.again, Known{Again: "old"}, start)
			if err != nil {
				t.Fatal(err)
			}
			reused := line.Find("again").Status == Answered && slices.ContainsFunc(r.Effects, func(e Effect) bool {
				d, ok := e.(Deliver)
				return ok && d.Question == "again" && d.Answer.Option == c.answer.Option && d.Answer.Text == c.answer.Text
			})
			if reused != c.want {
				t.Errorf("reused %v, want %v: %+v", reused, c.want, r.Effects)
			}
		})
	}
}

// A run that is started again may act a second time: a vague agreement does not start it.
func TestCorrect_StartingAgainNeedsAClearYes(t *testing.T) {
	q := Question{Kind: Disambiguation, Text: "Which Anna?", Options: []Option{{ID: "a", Label: "Anna Meier"}, {ID: "b", Label: "Anna Schmidt"}}}
	c := Conversation{ID: "c", Questions: []*Asking{{ID: "q", Question: q, Target: Target{Run: "old"}, Status: Answered, Answer: &Answer{Option: "a"}}}}
	var m Machine
	known := Known{Runs: map[string]PastRun{"old": {Request: "mail Anna", Said: "Done.", Ended: true}}}
	if _, err := m.Handle(&c, Message{Question: "q", Choice: "b", At: start, Actor: "ada"}, known); err != nil {
		t.Fatal(err)
	}
	m.Next(&c, start)
	for _, say := range []struct {
		text   string
		starts bool
	}{{"ok", false}, {"yes", true}} {
		r, err := m.Handle(&c, Message{Text: say.text, At: start, Actor: "ada"}, known)
		if err != nil {
			t.Fatal(err)
		}
		if starts := slices.Contains(r.Effects, Effect(StartRun{Again: "old"})); starts != say.starts {
			t.Errorf("%s: starts %v, want %v: %+v", say.text, starts, say.starts, r)
		}
	}
}
