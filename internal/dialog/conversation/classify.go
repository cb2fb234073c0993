package conversation

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

// reading is the interpretation of a reply to one question.
type reading struct {
	verdict Verdict
	answer  *Answer // for IsAnswer
	// exact means that the reply fits the expected answer, and not only as free text.
	exact bool
	// consult means that a model may know better.
	consult bool
	// doubt is the template of the repetition, for IsUnclear; detail is its {a}.
	doubt, detail string
	more          bool // the next page of options
}

func unclear(doubt string) reading { return reading{verdict: IsUnclear, doubt: doubt} }

func answered(answer Answer) reading { return reading{verdict: IsAnswer, answer: &answer, exact: true} }

// read interprets a reply to a question with exact rules and, if there is one, the judgement of a
// model.
func (m *Machine) read(c *Conversation, a *Asking, msg Message) reading {
	r := m.readExactly(c, a, msg)
	if j := msg.Judgement; j != nil && r.consult {
		return m.readJudgement(a, msg, r, *j)
	}
	return r
}

func (m *Machine) readExactly(c *Conversation, a *Asking, msg Message) reading {
	switch {
	case msg.Choice != "":
		return readChoice(a, msg.Choice)
	case msg.Fields != nil:
		return readFields(a, msg.Fields, msg.At)
	case msg.Digits != "":
		return m.readDigits(a, msg.Digits)
	}
	p := phrasesOf(languageOf(c, msg))
	if strings.TrimSpace(msg.Text) == "" {
		return unclear("unclear")
	}
	if isYesNo(a) {
		return m.readYesNo(p, a, msg)
	}
	if a.Status == Asked || a.Status == Queued || a.Status == HandedOver {
		if r, ok := readOption(p, a, msg.Text); ok {
			return r
		}
		if p.resembles(msg.Text, morePhrases) && pages(a) > 1 && msg.Modality == Voice {
			return reading{verdict: IsCounterQuestion, exact: true, more: true}
		}
	}
	if p.has(msg.Text, escapePhrases) || p.has(msg.Text, escapeAllPhrases) {
		return m.readEscape(msg)
	}
	if p.resembles(msg.Text, escapePhrases) || p.resembles(msg.Text, escapeAllPhrases) {
		return unclear("unclear")
	}
	if p.isCounterQuestion(msg.Text) {
		return reading{verdict: IsCounterQuestion, consult: true}
	}
	switch {
	case a.Status == Collecting:
		return reading{verdict: IsAnswer, answer: &Answer{Text: msg.Text, Method: ByText}, consult: true}
	case a.Question.Kind == Form:
		return m.readNextField(a, msg)
	case a.Question.Kind == Clarification:
		return reading{verdict: IsAnswer, answer: &Answer{Text: msg.Text, Method: ByText}, consult: true}
	}
	r := unclear("not_sure")
	r.consult = true
	return r
}

// isYesNo reports whether the question currently waits for a yes or no.
func isYesNo(a *Asking) bool {
	switch a.Status {
	case Confirming, Comparing, Drafted:
		return true
	case Queued, Asked, HandedOver:
		return a.Question.Kind == Confirmation
	case Collecting, Answered, Escaped, Expired, Lapsed, Withdrawn:
	}
	return false
}

// risky reports whether a yes is needed that cannot be misunderstood.
func risky(a *Asking) bool { return a.Question.Risk >= RiskHigh }

// readYesNo recognizes whole phrases only. Everything else is not a yes, whatever a model thinks.
func (m *Machine) readYesNo(p phrases, a *Asking, msg Message) reading {
	understood := m.understood(msg)
	switch {
	case p.has(msg.Text, yesPhrases), !risky(a) && p.has(msg.Text, agreementPhrases):
		if !understood && (a.Status != Asked || a.Question.Kind != Confirmation) {
			return unclear("clear_yes")
		}
		return answered(Answer{Yes: true, Method: ByPhrase})
	case p.has(msg.Text, agreementPhrases):
		return unclear("clear_yes")
	case p.has(msg.Text, noPhrases):
		if !understood {
			return unclear("clear_yes")
		}
		return answered(Answer{Method: ByPhrase})
	case p.has(msg.Text, escapePhrases), p.has(msg.Text, escapeAllPhrases):
		return m.readEscape(msg)
	case p.isCounterQuestion(msg.Text):
		return reading{verdict: IsCounterQuestion, consult: true}
	case p.doubtful(msg.Text):
		return unclear("clear_yes") // a model is not asked either
	}
	r := unclear("clear_yes")
	r.consult = true
	return r
}

// readEscape asks again if the speech recognition is not sure: doubt is not a cancellation.
func (m *Machine) readEscape(msg Message) reading {
	if !m.understood(msg) {
		return unclear("unclear")
	}
	return reading{verdict: IsEscape, exact: true}
}

func (m *Machine) understood(msg Message) bool {
	return msg.Modality != Voice || msg.Recognition == 0 || msg.Recognition >= m.minRecognition() && msg.Recognition <= 1
}

func readChoice(a *Asking, choice string) reading {
	switch {
	case choice == ChoiceEscape:
		return reading{verdict: IsEscape, exact: true}
	case isYesNo(a):
		if choice != ChoiceYes && choice != ChoiceNo {
			return reading{}
		}
		return answered(Answer{Yes: choice == ChoiceYes, Method: ByButton})
	case choice == ChoiceOther && a.Question.AllowOther:
		return answered(Answer{Option: ChoiceOther, Method: ByButton})
	case slices.ContainsFunc(a.Question.Options, func(o Option) bool { return o.ID == choice }):
		return answered(Answer{Option: choice, Method: ByButton})
	}
	return reading{}
}

// readDigits maps the keys of a telephone to options. A key does not confirm a risky action.
func (m *Machine) readDigits(a *Asking, digits string) reading {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return unclear("unclear")
	}
	if isYesNo(a) {
		switch {
		case n == 2:
			return answered(Answer{Method: ByOrdinal})
		case n == 1 && !risky(a):
			return answered(Answer{Yes: true, Method: ByOrdinal})
		}
		return unclear("clear_yes")
	}
	if id, ok := optionAt(a, n); ok {
		return answered(Answer{Option: id, Method: ByOrdinal})
	}
	return unclear("unclear")
}

func optionAt(a *Asking, n int) (id string, ok bool) {
	switch options := a.Question.Options; {
	case n >= 1 && n <= len(options):
		return options[n-1].ID, true
	case n == len(options)+1 && a.Question.AllowOther:
		return ChoiceOther, true
	}
	return "", false
}

// readOption finds the option that a text names: by number, label, alias or unique fact. A text
// that fits two options is not an answer.
func readOption(p phrases, a *Asking, text string) (reading, bool) {
	if len(a.Question.Options) == 0 && !a.Question.AllowOther {
		return reading{}, false
	}
	if a.Question.AllowOther && p.resembles(text, otherPhrases) {
		return answered(Answer{Option: ChoiceOther, Method: ByName}), true
	}
	named := optionsNamed(p, a.Question.Options, text)
	numbered := ""
	if n := p.ordinal(text); n > 0 {
		numbered, _ = optionAt(a, n)
	}
	switch {
	case len(named) > 1, len(named) == 1 && numbered != "" && numbered != named[0]:
		return unclear("not_sure"), true
	case len(named) == 1:
		return answered(Answer{Option: named[0], Method: ByName}), true
	case numbered != "":
		return answered(Answer{Option: numbered, Method: ByOrdinal}), true
	}
	return reading{}, false
}

// optionsNamed returns the options that contain every word of the text, or only those with exactly
// this label or alias.
func optionsNamed(p phrases, options []Option, text string) []string {
	whole := p.clean(text)
	words := strings.Fields(p.withoutFillers(whole))
	var exact, partial []string
	for _, o := range options {
		names := append([]string{o.Label}, o.Aliases...)
		if slices.ContainsFunc(names, func(name string) bool { return fold.Text(name) == whole }) {
			exact = append(exact, o.ID)
		}
		for _, value := range o.Facts {
			names = append(names, value)
		}
		own := strings.Fields(fold.Text(strings.Join(names, " ")))
		if len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !slices.Contains(own, word) }) {
			partial = append(partial, o.ID)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return partial
}

// numbered matches the number of an option as it is shown.
var numbered = regexp.MustCompile(`^(?:#\d+|\(\d+\)|\d+\))$`)

// certain reports whether a text that fits an option has no doubt: it is plain, or repeats what the
// user was shown.
func certain(options []Option, text string) bool {
	text = strings.TrimSpace(text)
	return fold.Plain(text) || numbered.MatchString(text) || slices.ContainsFunc(options, func(o Option) bool {
		shown := append([]string{o.Label, describe(o)}, o.Aliases...)
		return slices.ContainsFunc(append(shown, slices.Collect(maps.Values(o.Facts))...), func(s string) bool { return strings.EqualFold(s, text) })
	})
}

func (m *Machine) readNextField(a *Asking, msg Message) reading {
	missing := missing(a)
	if len(missing) == 0 || msg.Modality != Voice && len(missing) > 1 {
		r := unclear("choose")
		r.consult = true
		return r
	}
	return readFields(a, map[string]string{missing[0].Name: msg.Text}, msg.At)
}

// readFields validates fields of a form that were sent at a time. The answer has those that were
// given so far.
func readFields(a *Asking, fields map[string]string, at time.Time) reading {
	if a.Status == Drafted {
		if strings.TrimSpace(fields["name"]) == "" {
			return reading{verdict: IsUnclear, doubt: "invalid", detail: "name"}
		}
		return answered(Answer{Yes: true, Fields: fields, Method: ByForm})
	}
	if a.Question.Kind != Form {
		return reading{}
	}
	filled := make(map[string]string)
	for name, value := range fields {
		i := slices.IndexFunc(a.Question.Fields, func(f Field) bool { return f.Name == name })
		if i < 0 {
			return reading{}
		}
		field := a.Question.Fields[i]
		given := value
		value, ok := parse(field, value)
		switch {
		case !ok && field.Type == DateField:
			return reading{verdict: IsUnclear, doubt: "no_date", detail: given}
		case !ok:
			return reading{verdict: IsUnclear, doubt: "invalid", detail: field.Label}
		case field.NotPast && value != "" && value < at.Add(westernmost).UTC().Format(time.DateOnly):
			return reading{verdict: IsUnclear, doubt: "past_date", detail: given}
		}
		if value != "" {
			filled[name] = value
		}
	}
	return answered(Answer{Fields: filled, Method: ByForm})
}

// westernmost is the offset of the last time zone in which a day ends. The time zone of a user is
// not known.
const westernmost = -12 * time.Hour

// parse returns the value in its canonical form, or false. An empty value is not given.
func parse(f Field, value string) (string, bool) {
	value = strings.TrimSpace(value)
	if value == "" {
		return "", f.Optional
	}
	switch f.Type {
	case NumberField:
		_, err := strconv.ParseFloat(strings.ReplaceAll(value, ",", "."), 64)
		return strings.ReplaceAll(value, ",", "."), err == nil
	case DateField:
		_, err := time.Parse(time.DateOnly, value)
		return value, err == nil
	case ChoiceField:
		for i, choice := range f.Choices {
			if strings.EqualFold(choice, value) || fold.Text(choice) == fold.Text(value) && fold.Plain(value) || value == strconv.Itoa(i+1) {
				return choice, true
			}
		}
		return "", false
	case TextField, "":
	}
	return value, true
}

// missing returns the required fields of a form that were not given yet.
func missing(a *Asking) []Field {
	return slices.DeleteFunc(slices.Clone(a.Question.Fields), func(f Field) bool { return f.Optional || a.Filled[f.Name] != "" })
}

// counts reports whether a judgement has scores from 0 to 1. NaN is not one.
func counts(j *Judgement) bool {
	return j != nil && !slices.ContainsFunc([]float64{j.Score, j.OptionScore, j.RunnerUp}, func(score float64) bool { return !(score >= 0 && score <= 1) })
}

// readJudgement applies a model's judgement. It needs a score and, for an option, a margin to the
// next best one. A question that waits for a yes is never answered by it.
func (m *Machine) readJudgement(a *Asking, msg Message, r reading, j Judgement) reading {
	sure := j.Score >= m.minScore()
	switch {
	case r.verdict == IsCounterQuestion:
		r.detail = j.Explanation
		return r
	case a.Status == Collecting:
		if sure && j.Verdict == IsNewIntent {
			return reading{verdict: IsNewIntent}
		}
		return r
	case !sure:
		return r
	}
	switch j.Verdict {
	case IsEscape:
		return m.readEscape(msg)
	case IsNewIntent:
		return reading{verdict: IsNewIntent}
	case IsCounterQuestion:
		return reading{verdict: IsCounterQuestion, detail: j.Explanation}
	case IsUnclear:
		return unclear(orElse(r.doubt, "unclear"))
	case IsAnswer:
	}
	if isYesNo(a) || len(a.Question.Options) == 0 {
		return r
	}
	known := slices.ContainsFunc(a.Question.Options, func(o Option) bool { return o.ID == j.Option })
	if known && j.OptionScore >= m.minScore() && j.OptionScore-j.RunnerUp >= m.minMargin() {
		return reading{verdict: IsAnswer, answer: &Answer{Option: j.Option, Method: BySemantics, Score: j.OptionScore}}
	}
	if a.Question.Kind == Clarification {
		return r
	}
	return unclear("not_sure")
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func languageOf(c *Conversation, msg Message) Language {
	if msg.Language != "" {
		return msg.Language
	}
	return c.Language
}
