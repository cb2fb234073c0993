package safehtml

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// scripts have letters that look like Latin ones.
var scripts = []struct {
	name  string
	table *unicode.RangeTable
}{
	{"Cyrillic", unicode.Cyrillic}, {"Greek", unicode.Greek}, {"Armenian", unicode.Armenian}, {"Cherokee", unicode.Cherokee}, {"Coptic", unicode.Coptic}, {"Lisu", unicode.Lisu},
}

// likeLatin are the letters of other scripts that look like Latin ones.
const likeLatin = "аеорсухіјѕһԁԛԝԍӏҺАВЕКМНОРСТУХІЈЅԌԚԜҮҽяꙅ" + "οαιυνρτκχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿγω" + "օսոցհյգզքՕՍ" + "ᎪᏴᏟᎠᎬᎶᎻᎫᎫᏞᎷᎾᏢᏚᎢᏙᏔᏃ" + "ⲟⲣⲥ"

// likePunctuation are characters that look like those with a meaning in paths, addresses and
// numbers.
const likePunctuation = "⁄∕⧸／․‚，．：；＠＃＄％＆＊＋－＝＜＞？！＂＇（）［］｛｝｜～＾＿｀∶꞉ː＼﹨﹕﹒﹐﹣‐‑‒−∗ǃ"

// lookAlikes returns the byte positions of characters that imitate others: letters of another
// script in a Latin word, words of such letters in a Latin text, wide and mathematical forms of
// letters and digits, and characters that look like punctuation.
func lookAlikes(text string) map[int]bool {
	if isASCII(text) {
		return nil
	}
	found := make(map[int]bool)
	latin := strings.ContainsFunc(text, isASCIILetter)
	wordStart := -1
	for i, r := range text + " " {
		inWord := unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.IsDigit(r)
		if inWord && wordStart < 0 {
			wordStart = i
		}
		if !inWord && wordStart >= 0 {
			checkWord(text[wordStart:i], wordStart, latin, found)
			wordStart = -1
		}
		if i < len(text) && (isStyled(r) || strings.ContainsRune(likePunctuation, r)) {
			found[i] = true
		}
	}
	return found
}

func checkWord(word string, at int, latinText bool, found map[int]bool) {
	latin, other, imitations, letters := 0, 0, 0, 0
	for _, r := range word {
		switch {
		case unicode.Is(unicode.Latin, r):
			latin++
		case scriptOf(r) != "":
			other++
		}
		if unicode.IsLetter(r) {
			letters++
			if strings.ContainsRune(likeLatin, r) {
				imitations++
			}
		}
	}
	digits := latinText && latin+other == 0
	for i, r := range word {
		mixed := latin > 0 && scriptOf(r) != ""
		imitates := latinText && letters > 0 && imitations == letters && latin == 0
		foreignDigit := unicode.IsDigit(r) && r > utf8.RuneSelf && (latin > 0 || digits)
		if mixed || imitates || foreignDigit {
			found[at+i] = true
		}
	}
}

// isStyled reports whether a character is a wide or mathematical form of a letter or digit.
func isStyled(r rune) bool {
	return r >= 0xff10 && r <= 0xff19 || r >= 0xff21 && r <= 0xff3a || r >= 0xff41 && r <= 0xff5a || r >= 0x1d400 && r <= 0x1d7ff
}

// scriptOf returns the script of a letter that may imitate Latin; "" for others.
func scriptOf(r rune) string {
	for _, s := range scripts {
		if unicode.Is(s.table, r) {
			return s.name
		}
	}
	return ""
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func isASCIILetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// sameLetters maps letters and digits to the Latin letter that they look like.
var sameLetters = func() map[rune]rune {
	const (
		from = "аеорсухіјѕһԁԛԝӏАВЕКМНОРСТУХІЈЅ" + "οαιυνρτκχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "I1|0"
		to   = "aeopcyxijshdqwlABEKMHOPCTYXIJS" + "oaiuvptkxcjABEZHIKMNOPTYX" + "lllo"
	)
	same, latin := make(map[rune]rune), []rune(to)
	for i, r := range []rune(from) {
		same[r] = latin[i]
	}
	return same
}()

// LooksLike reports whether two names can hardly be told apart, although they differ.
func LooksLike(a, b string) bool { return a != b && skeleton(a) == skeleton(b) }

// skeleton returns a name with the letters that its characters look like, without compatibility
// forms, and with one space between words.
func skeleton(name string) string {
	look := func(r rune) rune {
		for range 2 { // Cyrillic І looks like I, and that like l
			if same, ok := sameLetters[r]; ok {
				r = same
			}
		}
		return r
	}
	words := strings.Fields(norm.NFKC.String(name))
	return strings.ToLower(strings.Map(look, strings.Join(words, " ")))
}
