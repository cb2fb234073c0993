package conversation

import (
	"slices"
	"strings"
	"unicode"
)

// meaning is what a reply to a yes-or-no question means.
type meaning int

const (
	inDoubt meaning = iota
	clearYes
	clearNo
)

// clearReplies are the clear replies that the generator of replies uses, as people write them.
var clearReplies = map[Language]map[meaning][]string{
	English: {
		clearYes: {"yes", "yeah", "yep", "yes, do it", "yes, go ahead", "I confirm", "that's right", "exactly", "confirm"},
		clearNo:  {"no", "nope", "no way", "don't", "don't do it", "that's wrong", "n"},
	},
	German: {
		clearYes: {"ja", "jawohl", "ja, mach das", "ja, machen Sie das", "genau", "ich bestätige", "das stimmt"},
		clearNo:  {"nein", "nee", "ne", "auf keinen Fall", "lieber nicht", "das stimmt nicht"},
	},
	French: {
		clearYes: {"oui", "oui, vas-y", "allez-y", "c'est ça", "je confirme", "tout à fait", "oui, j'en suis sûr"},
		clearNo:  {"non", "surtout pas", "pas du tout", "ne le fais pas", "c'est faux"},
	},
	Spanish: {
		clearYes: {"sí", "si", "sí, claro", "adelante", "hazlo", "confirmo", "así es", "sí, estoy seguro"},
		clearNo:  {"no", "de ninguna manera", "no lo hagas", "no lo haga", "incorrecto", "eso no"},
	},
}

// politeWords may precede or follow a clear reply.
var politeWords = map[Language][]string{
	English: {"please", "thanks", "thank you"},
	German:  {"bitte", "danke"},
	French:  {"s'il te plaît", "merci"},
	Spanish: {"por favor", "gracias"},
}

// accented are the letters of the four languages with an accent: the letter, the accent after it,
// and both as one letter.
var accented = map[[2]rune]rune{
	{'a', 0x300}: 'à', {'a', 0x301}: 'á', {'a', 0x302}: 'â', {'a', 0x308}: 'ä', {'c', 0x327}: 'ç', {'n', 0x303}: 'ñ',
	{'e', 0x300}: 'è', {'e', 0x301}: 'é', {'e', 0x302}: 'ê', {'e', 0x308}: 'ë', {'i', 0x301}: 'í', {'i', 0x302}: 'î', {'i', 0x308}: 'ï',
	{'o', 0x301}: 'ó', {'o', 0x302}: 'ô', {'o', 0x308}: 'ö', {'u', 0x300}: 'ù', {'u', 0x301}: 'ú', {'u', 0x302}: 'û', {'u', 0x308}: 'ü',
}

// oracle returns what a reply means. It shares no code with the product: it reads a reply letter by
// letter and knows only the replies above. Anything that it cannot read is in doubt.
func oracle(reply string, language Language) meaning {
	text, ok := readLetters([]rune(reply))
	if !ok {
		return inDoubt
	}
	return readable[language][text]
}

// readable are the clear replies as readLetters returns them, also with a polite word before or
// after them. In every language, replies in English count as well.
var readable = func() map[Language]map[string]meaning {
	all := make(map[Language]map[string]meaning)
	for language := range clearReplies {
		all[language] = make(map[string]meaning)
		for _, l := range []Language{language, English} {
			for m, replies := range clearReplies[l] {
				for _, clear := range replies {
					text, _ := readLetters([]rune(clear))
					all[language][text] = m
					for _, word := range slices.Concat(politeWords[language], politeWords[English]) {
						polite, _ := readLetters([]rune(word))
						all[language][polite+" "+text], all[language][text+" "+polite] = m, m
					}
				}
			}
		}
	}
	return all
}()

// readLetters returns the words of a reply in lower case, with one space between them, and false
// for a reply with a character that may change what the words mean.
func readLetters(reply []rune) (string, bool) {
	var out []rune
	letterAt := func(i int) bool { return i >= 0 && i < len(reply) && unicode.IsLetter(reply[i]) }
	endsHere := func(i int) bool { return i >= len(reply) || unicode.IsSpace(reply[i]) }
	onlySpace := func(runes []rune) bool { return strings.TrimSpace(string(runes)) == "" }
	wordBefore := func(i int) bool {
		for i--; i >= 0 && unicode.IsSpace(reply[i]); i-- {
		}
		return letterAt(i) || i >= 0 && unicode.Is(unicode.Mn, reply[i])
	}
	for i, r := range reply {
		switch {
		case unicode.IsLetter(r):
			out = append(out, unicode.ToLower(r))
		case unicode.Is(unicode.Mn, r):
			if len(out) == 0 || accented[[2]rune{out[len(out)-1], r}] == 0 {
				return "", false
			}
			out[len(out)-1] = accented[[2]rune{out[len(out)-1], r}]
		case unicode.IsSpace(r):
			out = append(out, ' ')
		case r == '\'' || r == '’' || r == '-':
			if !letterAt(i-1) || !letterAt(i+1) {
				return "", false
			}
			out = append(out, ' ')
		case r == ',':
			if !wordBefore(i) || !endsHere(i+1) || onlySpace(reply[i+1:]) {
				return "", false
			}
		case r == '.':
			if !wordBefore(i) || !endsHere(i+1) {
				return "", false
			}
		case r == '!':
			if !endsHere(i+1) && reply[i+1] != '!' || i > 0 && reply[i-1] != '!' && !wordBefore(i) || i == 0 {
				return "", false
			}
		case r == '¡':
			if i > 0 && !unicode.IsSpace(reply[i-1]) || !letterAt(i+1) {
				return "", false
			}
		default:
			return "", false
		}
	}
	return strings.Join(strings.Fields(strings.Map(unaccented, string(out))), " "), len(out) > 0
}

// unaccented returns a letter without its accent: people leave accents out.
func unaccented(r rune) rune {
	for pair, letter := range accented {
		if letter == r {
			return pair[0]
		}
	}
	return r
}
