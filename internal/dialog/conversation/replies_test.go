package conversation

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/testtier"
)

// qualifiers are what makes a clear reply doubtful, by language.
var qualifiers = map[Language]struct{ conditions, corrections, negations, hedges []string }{
	English: {[]string{"but only tomorrow", "if it is cheap", "unless Tom objects", "after lunch"}, []string{"no wait", "I mean no", "actually cancel that"}, []string{"not", "never", "I don't say"}, []string{"maybe", "I guess", "I think", "ok", "sure"}},
	German:  {[]string{"aber erst morgen", "wenn es billig ist", "außer Tom ist dagegen", "nach dem Essen"}, []string{"nein warte", "ich meine nein", "doch nicht"}, []string{"nicht", "nie", "sag nicht"}, []string{"vielleicht", "glaube ich", "wohl", "ok", "na gut"}},
	French:  {[]string{"mais demain", "si c'est pas cher", "sauf si Tom refuse", "après le repas"}, []string{"non attends", "je veux dire non", "en fait annule"}, []string{"pas", "jamais", "je ne dis pas"}, []string{"peut-être", "je crois", "sans doute", "ok", "d'accord"}},
	Spanish: {[]string{"pero mañana", "si es barato", "salvo que Tom se oponga", "después de comer"}, []string{"no espera", "quiero decir no", "mejor no"}, []string{"no", "nunca", "no digo"}, []string{"quizás", "creo", "supongo", "ok", "vale"}},
}

// marks are signs that question, contradict, qualify or hide the words beside them. The pairs of
// around quote them or strike them out.
var (
	marks  = strings.Fields("? ?! !? ？ ؟ ⁇ ‽ ¿ … ... .. 👎 ❌ 🤔 🙄 ✗ ⛔ (?) (not) /s ;) :( ≠ ¬ != ~ ^ = + % & # @ | \\ / : ; * _ ` < > [ ] { } ( ) \" ' „ “ « » \u200b \u200d \u202e \ufeff \u0336 \u0338 \u20e0 \u0488 0 -")
	around = [][2]string{{"\"", "\""}, {"'", "'"}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"« ", " »"}, {"‘", "’"}, {"「", "」"}, {"`", "`"}, {"~~", "~~"}, {"~", "~"}, {"<s>", "</s>"}, {"(", ")"}, {"[", "]"}, {"¿", "?"}, {"¿ ", " ?"}, {"> ", ""}, {"!", ""}, {"- ", ""}, {"= ", " ?"}}
)

// generator makes replies. With the same seed it makes the same ones.
type generator struct{ *rand.Rand }

func pick[T any](g generator, list []T) T { return list[g.IntN(len(list))] }

// reply returns a reply in a language, and what it means by its construction; open means that the
// oracle decides.
func (g generator) reply(language Language) (text string, means meaning, open bool) {
	means = clearYes
	if g.IntN(3) == 0 {
		means = clearNo
	}
	clear := pick(g, clearReplies[language][means])
	other := pick(g, clearReplies[language][clearYes+clearNo-means])
	separator := pick(g, []string{" ", ", ", ". ", "\n", " - ", "; ", "... "})
	d := qualifiers[language]
	switch g.IntN(11) {
	case 10:
		return g.harmless(pick(g, d.hedges), language), inDoubt, false
	case 0, 1, 2:
		return g.harmless(clear, language), means, false
	case 3, 4: // a mark before, after, or within
		mark, runes := pick(g, marks), []rune(clear)
		at := pick(g, []int{0, len(runes), g.IntN(len(runes) + 1)})
		text = string(runes[:at]) + mark + string(runes[at:])
		if (mark == "-" || mark == "'") && at > 0 && at < len(runes) { // may be part of a word
			return text, 0, true
		}
		return text, inDoubt, false
	case 5:
		a := pick(g, around)
		return a[0] + g.harmless(clear, language) + a[1], inDoubt, false
	case 6:
		parts := []string{clear, pick(g, slices.Concat(d.conditions, d.hedges))}
		if g.IntN(2) == 0 {
			slices.Reverse(parts)
		}
		return strings.Join(parts, separator), inDoubt, false
	case 7:
		return pick(g, []string{clear + separator + other, pick(g, d.negations) + " " + clear, clear + separator + pick(g, d.corrections)}), 0, true
	case 8: // letters that look the same
		return strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r + pick(g, []rune{'ａ' - 'a', '𝐚' - 'a', 'ⓐ' - 'a'})
			}
			return r
		}, clear), inDoubt, false
	}
	runes := []rune(clear) // any change of one character
	at, r := g.IntN(len(runes)), pick(g, []rune("?¿.!,;:'\"-~*_()👎\u0336\u0301\u00a0 aeinost…"))
	switch g.IntN(3) {
	case 0:
		runes[at] = r
	case 1:
		runes = slices.Insert(runes, at, r)
	default:
		runes = slices.Delete(runes, at, at+1)
	}
	return string(runes), 0, true
}

// harmless writes a clear reply in another way that is as clear.
func (g generator) harmless(clear string, language Language) string {
	switch g.IntN(4) {
	case 0:
		clear = strings.ToUpper(clear)
	case 1:
		clear = strings.ToUpper(clear[:1]) + clear[1:]
	case 2: // accents after their letters
		for pair, letter := range accented {
			clear = strings.ReplaceAll(clear, string(letter), string(pair[:]))
		}
	}
	if g.IntN(3) == 0 {
		polite, comma := pick(g, politeWords[language]), pick(g, []string{" ", ", "})
		if g.IntN(2) == 0 {
			clear = polite + comma + clear
		} else {
			clear += comma + polite
		}
	}
	clear += pick(g, []string{"", "", ".", "!", "!!!", " !", "\u00a0!", "\u202f!", "\n"})
	if strings.HasSuffix(clear, "!") && language == Spanish && g.IntN(2) == 0 {
		clear = "¡" + clear
	}
	return pick(g, []string{"", " ", "\t"}) + clear
}

// Whatever the words and signs around it, and whatever a model says: only a clear yes confirms, and
// every clear yes and no counts.
func TestReplies_OnlyAClearYesConfirms(t *testing.T) {
	scores := []float64{1, 0, -1, 80, math.NaN(), math.Inf(1), math.Inf(-1)}
	verdicts := []Verdict{IsAnswer, IsAnswer, IsUnclear, IsCounterQuestion, "other"}
	action := Question{Kind: Confirmation, Text: "Send it?", Risk: RiskHigh}
	choice := Question{Kind: Disambiguation, Text: "Which?", Risk: RiskHigh, Options: []Option{{ID: "a", Label: "Meier"}, {ID: "b", Label: "Weber"}}}
	count := make(map[Language]map[meaning]int)
	for _, language := range []Language{English, German, French, Spanish} {
		count[language] = make(map[meaning]int)
		g := generator{rand.New(rand.NewPCG(39, uint64(len(count))))}
		for range testtier.Count(5_000, 50_000, 500_000) {
			text, want, open := g.reply(language)
			if open {
				want = oracle(text, language)
			} else if got := oracle(text, language); got != want {
				t.Fatalf("%s: %q is %d by its construction and %d for the oracle", language, text, want, got)
			}
			count[language][want]++
			// an action, or the read-back of an option
			a := &Asking{ID: "q", Question: action, Target: Target{Run: "r", Interrupt: "i"}, Status: Asked, AskedAt: start}
			if g.IntN(4) == 0 {
				a.Question, a.Status, a.Candidate = choice, Confirming, &Answer{Option: "a"}
			}
			c := Conversation{ID: "c", Language: language, Questions: []*Asking{a}}
			score := pick(g, scores)
			var m Machine
			r, err := m.Handle(&c, Message{Text: text, At: start, Actor: "ada", Judgement: &Judgement{Verdict: pick(g, verdicts), Score: score, Option: "a", OptionScore: score}}, Known{})
			if err != nil {
				t.Fatal(err)
			}
			if got := confirmed(a, r); got != want {
				t.Errorf("%s: %q with the score %v is %d, want %d", language, text, score, got, want)
			}
		}
		for m, least := range map[meaning]int{clearYes: 500, clearNo: 250, inDoubt: 2_500} {
			if count[language][m] < least {
				t.Errorf("%s: %d replies of meaning %d, want at least %d", language, count[language][m], m, least)
			}
		}
	}
}

// A hedge confirms nothing, however low the risk, and a model is not asked about it. An agreement
// confirms what has no high risk.
func TestReplies_HedgesAreDoubt(t *testing.T) {
	for language, replies := range map[Language]struct{ hedges, agreements []string }{
		English: {[]string{"probably", "I guess so", "I think so", "Why not", "Maybe.", "I suppose so", "not sure"}, []string{"ok", "sure", "sounds good"}},
		German:  {[]string{"wahrscheinlich", "glaube schon", "Ich glaube ja", "warum nicht", "Vielleicht!", "schon", "weiß nicht"}, []string{"ok", "in Ordnung", "klar"}},
		French:  {[]string{"probablement", "je crois", "je crois que oui", "pourquoi pas", "mouais", "peut-être", "probably"}, []string{"ok", "d'accord"}},
		Spanish: {[]string{"probablemente", "supongo", "supongo que sí", "creo que sí", "por qué no", "quizás", "probably"}, []string{"ok", "vale"}},
	} {
		for _, risk := range []Risk{0, RiskLow, RiskHigh} {
			for i, text := range append(slices.Clone(replies.hedges), replies.agreements...) {
				want := inDoubt
				if i >= len(replies.hedges) && risk < RiskHigh {
					want = clearYes
				}
				a := &Asking{ID: "q", Question: Question{Kind: Confirmation, Text: "Send it?", Risk: risk}, Target: Target{Run: "r", Interrupt: "i"}, Status: Asked, AskedAt: start}
				c := Conversation{ID: "c", Language: language, Questions: []*Asking{a}}
				msg := Message{Text: text, At: start, Actor: "ada"}
				var m Machine
				if _, consults := m.Consult(&c, msg); consults {
					t.Errorf("%s: %q is judged by a model", language, text)
				}
				r, err := m.Handle(&c, msg, Known{})
				if err != nil {
					t.Fatal(err)
				}
				if got := confirmed(a, r); got != want || a.Status.Open() == (want == clearYes) {
					t.Errorf("%s: %q with the risk %d is %d, want %d", language, text, risk, got, want)
				}
			}
		}
	}
}

// confirmed returns what a reply has done to a question.
func confirmed(a *Asking, r Result) meaning {
	for _, e := range r.Effects {
		if d, ok := e.(Deliver); ok && (d.Answer.Yes || d.Answer.Option != "") {
			return clearYes
		}
	}
	if a.Status == Answered || a.Question.Kind == Disambiguation && a.Status == Asked {
		return clearNo
	}
	return inDoubt
}
