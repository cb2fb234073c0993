// Package fold compares texts of people regardless of case, accents and punctuation.
package fold

import (
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
