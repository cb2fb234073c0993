package yamldoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fermata-go/fermata/internal/suggest"
)

// Nearest returns the known word that a misspelt one was probably meant to be, or "".
func Nearest(word string, known []string) string {
	return suggest.Closest(word, known, len(word)/3+1)
}

// Suggest ends a message about an unknown word: with the nearest known one, or with all of them if none is near.
func Suggest(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(known) == 0 {
		return ""
	}
	sorted := slices.Sorted(slices.Values(known))
	return "; known: " + strings.Join(sorted, ", ")
}
