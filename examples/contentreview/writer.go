package main

import (
	"fmt"
	"slices"
	"strings"
)

// compose simulates a model that writes the text. It works offline and is deterministic.
func compose(topic string, feedback []string) string {
	claim := "It is the best idea of the year: it always works, and nobody needs to think twice."
	if len(feedback) > 0 {
		claim = "It is worth a try: it works for many, and thinking twice is part of it."
	}
	paragraphs := []string{
		"Five minutes on " + topic,
		fmt.Sprintf("Many talk about %s, and few take the time to look closely. This is the short version.", topic),
		claim,
	}
	short := false
	for _, note := range feedback {
		if strings.Contains(strings.ToLower(note), "short") {
			short = true
			continue
		}
		paragraphs = append(paragraphs, "From the review: "+strings.TrimRight(note, ".")+".")
	}
	if short {
		return strings.Join(slices.Delete(paragraphs, 1, 2), "\n\n")
	}
	return strings.Join(append(paragraphs, callToAction), "\n\n")
}

const callToAction = "Try it this week, and tell us what you found."

// inspect is the automatic check: warnings for the reviewer, and violations that block the text.
func inspect(content string) (warnings []string, violation string) {
	words := strings.FieldsFunc(strings.ToLower(content), func(r rune) bool { return !('a' <= r && r <= 'z') })
	for _, word := range []string{"confidential", "password", "secret"} {
		if slices.Contains(words, word) {
			return []string{}, fmt.Sprintf("the text says “%s”", word)
		}
	}
	warnings = []string{}
	for _, word := range []string{"best", "always", "nobody"} {
		if slices.Contains(words, word) {
			warnings = append(warnings, fmt.Sprintf("“%s” is a claim that needs proof", word))
		}
	}
	if !strings.HasSuffix(content, callToAction) {
		warnings = append(warnings, "the reader is not told what to do next")
	}
	return warnings, ""
}
