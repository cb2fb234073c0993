package conversation

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fermata-go/fermata/internal/dialog/fold"
)

// lexicon holds the phrases of one language, folded.
type lexicon struct {
	yes       []string // a clear yes
	agreement []string // a vague yes, which does not confirm a risky action
	hedges    []string // doubt, which confirms nothing
	no        []string
	escape    []string
	escapeAll []string
	other     []string // "someone else"
	more      []string // next page of options
	counter   []string // counter-questions, as a whole
	asks      []string // first words of questions
	ordinals  [][]string
	fillers   []string // words that say nothing about an option
	polite    []string // removed at both ends
}

var lexicons = map[Language]*lexicon{
	English: {
		yes:       list("yes, yes i do, yes i am sure, yes do it, yes go ahead, yeah, yep, yup, confirm, i confirm, confirmed, approve, approved, go ahead, do it, correct, that is right, that s right, exactly, yes that s right, yes that is right"),
		agreement: list("y, ok, okay, k, sure, fine, alright, all right, sounds good, right, good, mhm, uh huh"),
		hedges:    list("why not, i guess, i guess so, i think, i think so, i believe so, i suppose, i suppose so, i hope so, probably, maybe, perhaps, possibly, presumably, could be, not sure, i m not sure, i am not sure, i don t know, whatever"),
		no:        list("no, n, nope, nah, no way, don t, do not, don t do it, do not do it, no don t, reject, deny, decline, wrong, that is wrong, that s wrong, not that one, no thanks"),
		escape:    list("cancel, cancel that, cancel it, stop, stop it, abort, never mind, nevermind, forget it, forget about it, drop it, leave it, quit"),
		escapeAll: list("cancel everything, cancel all, stop everything, forget everything, cancel all of it"),
		other:     list("someone else, other person, another person, none of these, none of them, neither, neither of them, other, another one, someone different"),
		more:      list("more, next, others, show more, more options, what else"),
		counter:   list("why, why do you ask, why do you need that, why do you want to know, what do you mean, what does that mean, what for, what is that for, who are they, what is this about, i don t understand, i do not understand, help"),
		asks:      list("why, what, who, which, how, where, when"),
		ordinals:  ordinals("first, 1st, number one, one", "second, 2nd, number two, two", "third, 3rd, number three, three", "fourth, 4th, number four, four", "fifth, 5th, number five, five"),
		fillers:   list("the, a, an, one, from, in, on, at, of, with, i, mean, it, its, it s, s, is, that, please, who, works, working, person, option, number, and"),
		polite:    list("please, thanks, thank you, thank you very much"),
	},
	German: {
		yes:       list("ja, ja gerne, jawohl, ja mach das, ja machen sie das, ja bin ich, ja das stimmt, genau, richtig, das stimmt, stimmt, bestatige, ich bestatige, bestatigt, freigeben, mach das, machen sie das, ja ich bin sicher"),
		agreement: list("j, ok, okay, gut, na gut, in ordnung, passt, gerne, klar, von mir aus, meinetwegen, mhm"),
		hedges:    list("glaube schon, ich glaube, ich glaube schon, ich glaube ja, glaube ich, denke schon, ich denke, ich denke schon, ich denke ja, ich nehme an, nehme ich an, ich schatze schon, warum nicht, wieso nicht, wahrscheinlich, wahrscheinlich schon, vermutlich, vielleicht, eventuell, moglicherweise, mag sein, kann sein, schon, wohl, wohl schon, nicht sicher, ich bin nicht sicher, weiss nicht, ich weiss nicht, egal"),
		no:        list("nein, ne, nee, nein danke, auf keinen fall, nicht, bitte nicht, lieber nicht, falsch, das ist falsch, stimmt nicht, das stimmt nicht, ablehnen, tu das nicht, nicht machen"),
		escape:    list("abbrechen, abbruch, brich ab, brechen sie ab, stop, stopp, halt, vergiss es, vergessen sie es, vergiss das, lass es, lassen sie es, lass gut sein"),
		escapeAll: list("alles abbrechen, brich alles ab, vergiss alles, stopp alles"),
		other:     list("jemand anders, jemand anderes, jemand anderen, eine andere, ein anderer, jemand anderer, keine von beiden, keiner von beiden, keine davon, keiner davon, andere, anderer, andere person"),
		more:      list("mehr, weitere, weiter, noch mehr, die nachsten, was noch"),
		counter:   list("warum, wieso, weshalb, warum fragst du, warum fragen sie, wieso fragst du, was meinst du, was meinen sie, was bedeutet das, was heisst das, wofur, wozu, worum geht es, ich verstehe nicht, das verstehe ich nicht, hilfe"),
		asks:      list("warum, wieso, weshalb, was, wer, welche, welcher, welches, wie, wo, wann, wozu, wofur"),
		ordinals:  ordinals("erste, ersten, erster, erstes, nummer eins, eins", "zweite, zweiten, zweiter, zweites, nummer zwei, zwei", "dritte, dritten, dritter, drittes, nummer drei, drei", "vierte, vierten, nummer vier, vier", "funfte, funften, nummer funf, funf"),
		fillers:   list("der, die, das, den, dem, des, ein, eine, einen, aus, auf, am, im, in, von, vom, bei, mit, ich, meine, es, ist, bitte, arbeitet, person, nummer, und"),
		polite:    list("bitte, danke, danke schon, vielen dank"),
	},
	French: {
		yes:       list("oui, oui je confirme, je confirme, confirme, confirmer, oui vas y, oui allez y, vas y, allez y, oui c est ca, c est ca, exactement, tout a fait, oui bien sur, oui j en suis sur, oui j en suis sure, c est exact, exact"),
		agreement: list("o, ok, okay, d accord, bon, bien, bien sur, ca va, entendu, ouais"),
		hedges:    list("pourquoi pas, je crois, je crois que oui, je crois bien, je pense, je pense que oui, je suppose, je suppose que oui, j imagine, probablement, sans doute, peut etre, possible, c est possible, mouais, bof, je ne suis pas sur, je ne suis pas sure, je ne sais pas, je sais pas"),
		no:        list("non, non merci, surtout pas, pas du tout, ne le fais pas, ne le faites pas, refuser, je refuse, faux, c est faux, ce n est pas ca, pas celui la, pas celle la"),
		escape:    list("annuler, annule, annulez, arrete, arretez, stop, laisse tomber, laissez tomber, oublie, oubliez, oublie ca, oubliez ca, abandonner, abandonne"),
		escapeAll: list("tout annuler, annule tout, annulez tout, oublie tout, oubliez tout"),
		other:     list("quelqu un d autre, une autre personne, une autre, un autre, autre, aucun, aucune, aucune des deux, aucun des deux, ni l une ni l autre, ni l un ni l autre"),
		more:      list("plus, suite, suivant, suivants, encore, d autres, quoi d autre"),
		counter:   list("pourquoi, pourquoi cette question, pourquoi tu demandes, pourquoi demandez vous, que veux tu dire, que voulez vous dire, qu est ce que ca veut dire, c est a dire, pour quoi faire, de quoi s agit il, je ne comprends pas, aide"),
		asks:      list("pourquoi, que, quoi, qui, quel, quelle, lequel, laquelle, comment, ou, quand, qu"),
		ordinals:  ordinals("premier, premiere, numero un, un", "deuxieme, second, seconde, numero deux, deux", "troisieme, numero trois, trois", "quatrieme, numero quatre, quatre", "cinquieme, numero cinq, cinq"),
		fillers:   list("le, la, les, l, un, une, de, du, des, d, sur, dans, au, aux, a, en, celui, celle, qui, je, veux, dire, c, est, s il, s, il, te, vous, plait, travaille, personne, numero, et"),
		polite:    list("s il te plait, s il vous plait, merci, merci beaucoup"),
	},
	Spanish: {
		yes:       list("si, si claro, si confirmo, confirmo, confirmar, confirmado, si adelante, adelante, hazlo, hagalo, si hazlo, exacto, exactamente, correcto, eso es, asi es, si eso es, si estoy seguro, si estoy segura, es correcto"),
		agreement: list("s, ok, okay, vale, bueno, bien, esta bien, de acuerdo, claro, aja"),
		hedges:    list("por que no, creo, yo creo, creo que si, pienso que si, supongo, supongo que si, me parece, me parece que si, me imagino, probablemente, quiza, quizas, tal vez, a lo mejor, puede ser, es posible, no estoy seguro, no estoy segura, no se, no lo se, da igual"),
		no:        list("no, no gracias, que no, de ninguna manera, no lo hagas, no lo haga, rechazar, rechazo, mal, falso, incorrecto, eso no, no es eso"),
		escape:    list("cancelar, cancela, cancele, para, pare, alto, stop, olvidalo, olvidelo, dejalo, dejelo, deja, abandonar"),
		escapeAll: list("cancelar todo, cancela todo, cancele todo, olvida todo, olvidalo todo"),
		other:     list("otra persona, alguien mas, otro, otra, ninguno, ninguna, ninguna de las dos, ninguno de los dos, ni una ni otra, ni uno ni otro"),
		more:      list("mas, siguiente, siguientes, otros, mas opciones, que mas"),
		counter:   list("por que, por que preguntas, por que lo pregunta, por que pregunta, que quieres decir, que quiere decir, que significa, que significa eso, para que, de que se trata, no entiendo, no lo entiendo, ayuda"),
		asks:      list("por, que, quien, cual, como, donde, cuando, para"),
		ordinals:  ordinals("primero, primera, primer, numero uno, uno", "segundo, segunda, numero dos, dos", "tercero, tercera, numero tres, tres", "cuarto, cuarta, numero cuatro, cuatro", "quinto, quinta, numero cinco, cinco"),
		fillers:   list("el, la, los, las, lo, un, una, de, del, en, que, con, yo, quiero, decir, me, refiero, a, al, es, por, favor, trabaja, persona, numero, y"),
		polite:    list("por favor, gracias, muchas gracias"),
	},
}

func list(phrases string) []string { return strings.Split(phrases, ", ") }

func ordinals(words ...string) [][]string {
	all := make([][]string, len(words))
	for i, w := range words {
		all[i] = list(w)
	}
	return all
}

// phrases are the lexicons that apply to a reply: those of the language and of English, which many
// users mix in.
type phrases []*lexicon

func phrasesOf(language Language) phrases {
	own, ok := lexicons[language]
	if !ok || language == English {
		return phrases{lexicons[English]}
	}
	return phrases{own, lexicons[English]}
}

// clean returns the folded text without polite words at its ends.
func (p phrases) clean(text string) string {
	text = fold.Text(text)
	for {
		before := text
		for _, l := range p {
			for _, word := range l.polite {
				if rest, ok := strings.CutSuffix(text, " "+word); ok {
					text = rest
				}
				if rest, ok := strings.CutPrefix(text, word+" "); ok {
					text = rest
				}
			}
		}
		if text == before {
			return text
		}
	}
}

// has reports whether the text is one of the phrases, as a whole and without doubt.
func (p phrases) has(text string, of func(*lexicon) []string) bool {
	return fold.Plain(text) && p.resembles(text, of)
}

// resembles is has without regard to punctuation: "yes?" and a struck-through "yes" resemble "yes".
func (p phrases) resembles(text string, of func(*lexicon) []string) bool {
	text = p.clean(text)
	for _, l := range p {
		if slices.Contains(of(l), text) {
			return true
		}
	}
	return false
}

// doubtful reports whether the text is a hedge, or a yes, a no or an escape but for its
// punctuation.
func (p phrases) doubtful(text string) bool {
	return p.resembles(text, hedgePhrases) || !fold.Plain(text) && slices.ContainsFunc([]func(*lexicon) []string{yesPhrases, agreementPhrases, noPhrases, escapePhrases, escapeAllPhrases},
		func(of func(*lexicon) []string) bool { return p.resembles(text, of) })
}

func yesPhrases(l *lexicon) []string       { return l.yes }
func agreementPhrases(l *lexicon) []string { return l.agreement }
func hedgePhrases(l *lexicon) []string     { return l.hedges }
func noPhrases(l *lexicon) []string        { return l.no }
func escapePhrases(l *lexicon) []string    { return l.escape }
func escapeAllPhrases(l *lexicon) []string { return l.escapeAll }
func otherPhrases(l *lexicon) []string     { return l.other }
func morePhrases(l *lexicon) []string      { return l.more }

// isCounterQuestion reports whether the text is a known counter-question, or a question by its
// first word and its question mark.
func (p phrases) isCounterQuestion(text string) bool {
	if p.resembles(text, func(l *lexicon) []string { return l.counter }) {
		return true
	}
	first, _, _ := strings.Cut(fold.Text(text), " ")
	if !strings.HasSuffix(strings.TrimSpace(text), "?") {
		return false
	}
	return slices.ContainsFunc(p, func(l *lexicon) bool { return slices.Contains(l.asks, first) })
}

// ordinal returns the number that the text names, or 0.
func (p phrases) ordinal(text string) int {
	text = p.clean(text)
	for _, candidate := range []string{text, p.withoutFillers(text)} {
		if n, err := strconv.Atoi(candidate); err == nil && n > 0 && n < 1000 {
			return n
		}
		for _, l := range p {
			for i, words := range l.ordinals {
				if slices.Contains(words, candidate) {
					return i + 1
				}
			}
		}
	}
	return 0
}

func (p phrases) withoutFillers(text string) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		return slices.ContainsFunc(p, func(l *lexicon) bool { return slices.Contains(l.fillers, word) })
	}), " ")
}
