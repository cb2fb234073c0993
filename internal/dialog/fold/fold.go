// Package fold compares texts of people regardless of case, accents and punctuation, and reports
// whether the punctuation matters.
package fold

import (
	"regexp"
	"strings"
	"unicode"
)

// accents maps the precomposed letters of the supported languages and their neighbours to ASCII.
var accents = strings.NewReplacer(
	"à", "a", "á", "a", "â", "a", "ã", "a", "ä", "a", "å", "a", "ç", "c", "è", "e", "é", "e", "ê", "e", "ë", "e",
	"ì", "i", "í", "i", "î", "i", "ï", "i", "ñ", "n", "ò", "o", "ó", "o", "ô", "o", "õ", "o", "ö", "o", "ø", "o",
	"ù", "u", "ú", "u", "û", "u", "ü", "u", "ý", "y", "ÿ", "y", "ß", "ss", "œ", "oe", "æ", "ae", "š", "s", "ž", "z", "č", "c",
)

// Text returns the comparable form of a text: lower case, without accents and punctuation, words
// separated by one space. "  Müller, Anna!" becomes "muller anna".
func Text(text string) string {
	text = accents.Replace(strings.ToLower(text))
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r): // an accent after its letter
			return -1
		case unicode.IsLetter(r), unicode.IsDigit(r):
			return r
		}
		return ' '
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// composed writes letters with an accent after them as one letter.
var composed = func() *strings.Replacer {
	var pairs []string
	for mark, letters := range map[string]string{
		"\u0300": "aàeèiìoòuù", "\u0301": "aáeéiíoóuú", "\u0302": "aâeêiîoôuû", "\u0303": "aãnñoõ", "\u0308": "aäeëiïoöuü",
		"\u030a": "aå", "\u030c": "sšzžcč", "\u0327": "cç",
	} {
		runes := []rune(letters)
		for i := 0; i < len(runes); i += 2 {
			pairs = append(pairs, string(runes[i])+mark, string(runes[i+1]))
		}
	}
	return strings.NewReplacer(pairs...)
}()

// plain matches words, apostrophes and hyphens within words, commas between words, and full stops
// and exclamation marks after words.
var plain = func() *regexp.Regexp {
	const (
		word      = `[\p{L}\d]+`
		space     = `[\s\p{Z}]`
		end       = space + `*(?:\.|!+)`
		separator = `(?:['’-]|` + space + `+|(?:` + space + `*,|` + end + `)` + space + `+¡?)`
	)
	return regexp.MustCompile(`^` + space + `*¡?` + word + `(?:` + separator + word + `)*(?:` + end + `)?` + space + `*$`)
}()

// Plain reports whether [Text] keeps the meaning of a text. It removes punctuation, symbols and
// combining marks, and most of them question, quote, qualify, contradict or strike out the words
// around them. So only the few that mean nothing are plain.
func Plain(text string) bool { return plain.MatchString(composed.Replace(strings.ToLower(text))) }

// Distance returns the edit distance of two short texts.
func Distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([]int, len(t)+1)
	for j := range row {
		row[j] = j
	}
	for i := range s {
		diagonal := row[0]
		row[0] = i + 1
		for j := range t {
			cost := diagonal
			if s[i] != t[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(t)]
}
