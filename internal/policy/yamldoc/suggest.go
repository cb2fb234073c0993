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

// Suggest returns the end of a message about an unknown word: the closest known word, or all of
// them if none is close.
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
