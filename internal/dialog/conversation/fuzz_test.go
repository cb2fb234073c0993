package conversation

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

// A clear yes, stated independently of the lexicon: it has a word that agrees, none that negates or
// doubts, and is short.
var (
	agrees = regexp.MustCompile(`\b(yes|yeah|yep|yup|confirm\w*|approved?|go ahead|do it|correct\w*|right|exactly|ja|jawohl|genau|richtig|stimmt|bestatig\w*|freigeben|mach das|machen sie das|oui|vas y|allez y|exact\w*|tout a fait|c est ca|si|adelante|hazlo|hagalo|eso es|asi es|es correcto)\b`)
	doubts = regexp.MustCompile(`\b(no|not|never|don|nein|nicht|nie|kein\w*|non|pas|ne|jamais|nunca|but|aber|mais|pero|if|wenn|maybe|guess|think|glaube|crois|creo|supongo|cancel\w*|stop\w*)\b`)
)

// FuzzConfirmation_OnlyAClearYesConfirms sends any replies, with any judgement of a model, to a
// risky confirmation among other questions.
func FuzzConfirmation_OnlyAClearYesConfirms(f *testing.F) {
	for _, seed := range []string{
		"yes\nno", "ok", "ok\nyes", "1\n1", "yes please\nfirst", "ja", "si", "oui, vas-y", "yes but tomorrow", "not yes", "YES!!!", "y", "👍", "the first one\nyes",
		"yeah right, no", "Sí", "d'accord", "\x00yes", "yes\u0301", "cancel everything", "more\nyes", "no\nyes", "yes\nthe second\nok",
	} {
		for settings := range uint16(16) {
			f.Add(seed, settings*4111, 0.99)
		}
	}
	languages := []Language{English, German, French, Spanish, ""}
	verdicts := []Verdict{IsAnswer, IsEscape, IsNewIntent, IsCounterQuestion, IsUnclear, "other"}
	f.Fuzz(func(t *testing.T, text string, settings uint16, score float64) {
		risk := RiskHigh + Risk(settings&1)
		c := Conversation{ID: "c", Language: languages[int(settings>>1)%len(languages)]}
		m := Machine{HandOver: settings&16 != 0}
		now := start
		add := func(id string, q Question) {
			if _, err := m.Add(&c, id, Target{Run: "r", Interrupt: id}, q, Known{}, now); err != nil {
				t.Fatal(err)
			}
		}
		add("risky", Question{Kind: Confirmation, Text: "Delete it?", Risk: risk})
		if settings&32 != 0 {
			add("harmless", Question{Kind: Confirmation, Text: "Send it?"})
		}
		if settings&64 != 0 {
			add("choice", Question{Kind: Disambiguation, Text: "Which?", AllowOther: true, Options: []Option{{ID: "a", Label: "Yes"}, {ID: "b", Label: "Anna"}}})
		}
		if settings&128 != 0 {
			add("text", Question{Kind: Clarification, Text: "Which subject?"})
		}
		m.Next(&c, now)
		var msg Message
		for _, line := range strings.Split(text, "\n") {
			now = now.Add(time.Second)
			msg = Message{Text: line, At: now, Judgement: &Judgement{
				Verdict: verdicts[int(settings>>8)%len(verdicts)], Score: score, Option: ChoiceYes, OptionScore: score, Explanation: "yes", Entity: &Entity{Name: "yes"},
			}}
			if settings&512 != 0 {
				msg.Modality, msg.Recognition = Voice, score
			}
			if settings&1024 != 0 {
				msg.Text, msg.Digits = "", line
			}
			r, err := m.Handle(&c, msg, Known{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range r.Effects {
				d, ok := e.(Deliver)
				if !ok || d.Question != "risky" || !d.Answer.Yes {
					continue
				}
				said := fold.Text(line)
				if msg.Digits != "" || !agrees.MatchString(said) || doubts.MatchString(said) || len(strings.Fields(said)) > 8 {
					t.Errorf("%q confirmed a risky action in %q", line, c.Language)
				}
				if msg.Modality == Voice && (risk == RiskCritical || d.Answer.Method != ByReadBack) {
					t.Errorf("%q was spoken and confirmed an action of risk %d by %s", line, risk, d.Answer.Method)
				}
			}
			m.Next(&c, now)
		}
	})
}
