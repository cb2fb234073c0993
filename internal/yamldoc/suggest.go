package yamldoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/suggest"
)

// Nearest returns the known word that is closest to a misspelt one, or "".
func Nearest(word string, known []string) string {
	return suggest.Closest(word, known, len(word)/3+1)
}

// DidYouMean returns the end of a message about an unknown word: the closest known word, or "".
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Suggest returns the end of a message about an unknown word: the closest known word, or all of
// them if none is close.
func Suggest(word string, known []string) string {
	if near := DidYouMean(word, known); near != "" || len(known) == 0 {
		return near
	}
	return "; known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// NotOneOf returns the message about a word that is not allowed.
func NotOneOf(word string, allowed []string) string {
	return fmt.Sprintf("%q is not one of %s%s", word, strings.Join(allowed, ", "), DidYouMean(word, allowed))
}
