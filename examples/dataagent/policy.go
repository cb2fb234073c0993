package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata"
)

// statement is what the policy sees in a text.
type statement struct {
	// verb is the first word, in upper case; "" if there is none.
	verb string
	// count is how many statements the text holds.
	count int
	// whole is false if a quotation or a comment does not end.
	complete bool
	// books is true if it names the table in which the shop keeps its keys.
	usesKeysTable bool
}

func (s statement) reads() bool { return s.verb == "SELECT" && s.count == 1 && s.complete }

// ruling says what may be done. It allows what it knows, refuses what no person should have to judge, and asks for the rest.
func (s statement) ruling() fermata.Ruling {
	switch {
	case s.count == 0:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "there is no statement in it"}
	case s.count > 1:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "send one statement at a time, so that a person can see what each does"}
	case s.usesKeysTable:
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "books", Reason: keysTable + " is not for agents"}
	case s.reads():
		return fermata.Ruling{Verdict: fermata.Allow, Rule: "reads", Reason: "it only reads"}
	}
	switch s.verb {
	case "BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE":
		return fermata.Ruling{Verdict: fermata.Deny, Rule: "one-statement", Reason: "each statement is a transaction of its own"}
	case "DELETE", "DROP", "UPDATE", "ALTER", "INSERT", "REPLACE", "CREATE":
		return fermata.Ruling{Rule: "changes", Reason: fmt.Sprintf("%s changes the database for good", s.verb)}
	}
	return fermata.Ruling{Rule: "unknown", Reason: "the policy does not know what it does"}
}

// classify reads a text as SQLite would, as far as it takes to find where a statement begins and ends.
func classify(text string) statement {
	s := statement{complete: true, usesKeysTable: strings.Contains(strings.ToLower(text), keysTable)}
	inside := false // a statement has begun
	for text != "" {
		size, kind := token(text)
		switch kind {
		case semicolon:
			inside = false
		case unfinished:
			s.complete = false
			fallthrough
		case other:
			if !inside {
				s.count++
				inside = true
				if s.count == 1 {
					s.verb = strings.ToUpper(text[:word(text)])
				}
			}
		}
		text = text[size:]
	}
	return s
}

type tokenKind int

const (
	space tokenKind = iota // or a comment
	semicolon
	other
	unfinished // a quotation without an end
)

// token returns the size and the kind of what the text begins with.
func token(text string) (size int, kind tokenKind) {
	switch c := text[0]; {
	case c == ';':
		return 1, semicolon
	case strings.IndexByte(" \t\n\f\r", c) >= 0:
		return 1, space
	case strings.HasPrefix(text, "--"):
		return through(text, "--", "\n"), space
	case strings.HasPrefix(text, "/*"):
		return through(text, "/*", "*/"), space
	case c == '\'' || c == '"' || c == '`': // a doubled quote ends one quotation and begins the next: that comes out the same
		return quotation(text, string(c), string(c))
	case c == '[':
		return quotation(text, "[", "]")
	}
	return max(1, word(text)), other
}

// through returns how long the text is up to and with the end, or to its own.
func through(text, begin, end string) int {
	if i := strings.Index(text[len(begin):], end); i >= 0 {
		return len(begin) + i + len(end)
	}
	return len(text)
}

func quotation(text, begin, end string) (int, tokenKind) {
	if !strings.Contains(text[len(begin):], end) {
		return len(text), unfinished
	}
	return through(text, begin, end), other
}

// word is how long the word is that the text begins with; 0 if it begins with none.
func word(text string) int {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if end < 0 {
		return len(text)
	}
	return end
}
